// event.cpp: events: what was recorded last, and waits for it by streams and by the host. Recording in a capture marks a place in its graph.
#include "state.h"

static int check_event(CUevent e) {
    return emu.events.count(e) ? 0 : misuse(CUDA_ERROR_INVALID_HANDLE, "misuse", "an event that is not alive");
}

static string name_of(CUevent e) {
    return "e" + std::to_string(e->id);
}

EXPORT CUresult cuEventCreate(CUevent *out, unsigned) {
    ENTER(cuEventCreate, CONTEXT);
    *out = new CUevent_st;
    (*out)->id = ++emu.next_event;
    emu.events.insert(*out);
    return 0;
}

EXPORT CUresult cuEventDestroy_v2(CUevent e) {
    ENTER(cuEventDestroy, RELEASE);
    if (int code = check_event(e))
        return code;
    emu.events.erase(e);
    delete e;
    return call.pending;
}

EXPORT CUresult cuEventRecord(CUevent e, CUstream s) {
    ENTER(cuEventRecord, CONTEXT);
    if (int code = check_event(e))
        return code;
    if (int code = check_stream(s))
        return code;
    if (s->capture) {
        log_line(s, "record s" + std::to_string(s->id) + " " + name_of(e));
        e->capture = s->capture;
        e->front = s->front;
        e->record.reset();
        return 0;
    }
    e->capture.reset();
    e->record = std::make_shared<Record>();
    return submit(s, make_node(RECORD, name_of(e).c_str()), e->record);
}

static int wait_captured(CUstream s, CUevent e) {
    if (e->capture->ended)
        return misuse(CUDA_ERROR_INVALID_VALUE, "misuse", "a wait for an event of a capture that has ended");
    if (s->capture && s->capture != e->capture) {
        s->capture->bad = e->capture->bad = true;
        return fail(CUDA_ERROR_STREAM_CAPTURE_MERGE, "a wait would merge two captures");
    }
    if (!s->capture) {
        s->capture = e->capture;
        s->front.clear();
        s->capture->members.insert(s);
    }
    log_line(s, "wait s" + std::to_string(s->id) + " " + name_of(e));
    s->front.insert(e->front.begin(), e->front.end());
    return 0;
}

EXPORT CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned) {
    ENTER(cuStreamWaitEvent, CONTEXT);
    if (int code = check_event(e))
        return code;
    if (int code = check_stream(s))
        return code;
    if (e->capture)
        return wait_captured(s, e);
    if (!e->record) // never recorded: nothing to wait for
        return 0;
    if (s->capture) {
        s->capture->bad = true;
        return fail(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "a stream that captures waits for work outside the capture");
    }
    return submit(s, make_node(WAIT, name_of(e).c_str()), e->record);
}

EXPORT CUresult cuEventSynchronize(CUevent e) {
    ENTER(cuEventSynchronize, CONTEXT);
    if (int code = check_event(e))
        return code;
    if (e->capture)
        return fail(CUDA_ERROR_CAPTURED_EVENT, "the event was recorded in a capture");
    std::shared_ptr<Record> r = e->record;
    if (!r)
        return 0;
    if (!r->done && r->stream)
        demand(r->stream, r->number);
    emu.changed.wait(call.lock, [&] { return r->done; });
    token_acquire(&r->token);
    join(emu.host, r->clock);
    return emu.lost;
}

EXPORT CUresult cuEventQuery(CUevent e) {
    ENTER(cuEventQuery, CONTEXT);
    if (int code = check_event(e))
        return code;
    if (e->capture)
        return fail(CUDA_ERROR_CAPTURED_EVENT, "the event was recorded in a capture");
    Record *r = e->record.get();
    if (!r)
        return 0;
    if (!r->done) {
        if (r->stream && ++r->stream->polls % 4 == 0)
            demand(r->stream, r->stream->done + 1);
        return CUDA_ERROR_NOT_READY;
    }
    token_acquire(&r->token);
    join(emu.host, r->clock);
    return 0;
}

EXPORT CUresult cuEventElapsedTime(float *ms, CUevent from, CUevent to) {
    ENTER(cuEventElapsedTime, CONTEXT);
    if (check_event(from) || check_event(to))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!from->record || !to->record)
        return fail(CUDA_ERROR_INVALID_HANDLE, "an event that was never recorded");
    if (!from->record->done || !to->record->done)
        return CUDA_ERROR_NOT_READY;
    *ms = (float)((to->record->time - from->record->time) * 1e3);
    return 0;
}
