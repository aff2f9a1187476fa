/* stats.c: what can be counted and looked at: the system's counters, an actor's counters, the trace. */
#include "internal.h"

void weir_set_trace(weir_system *s, weir_trace_fn *fn, void *data) {
    s->trace = fn;
    s->trace_data = data;
}

void weir_system_get_stats(weir_system *s, weir_system_stats *out) {
    *out = (weir_system_stats){
        .sent = s->sent + atomic_load(&s->posted),
        .handled = s->handled,
        .dead = s->dead,
        .queued = s->queued + atomic_load(&s->inflight),
        .refused = atomic_load(&s->refused),
        .calls = s->calls_made,
        .calls_ended = s->calls_ended,
        .late_replies = s->late,
        .actors = s->living,
        .spawned = s->spawned,
        .timers = s->timers_live,
        .bytes = atomic_load(&s->bytes),
        .blocks = atomic_load(&s->blocks),
    };
}

static void fill(const weir_actor *a, weir_actor_stats *out) {
    *out = (weir_actor_stats){
        .handled = a->handled,
        .sent = a->sent,
        .refused = atomic_load_explicit(&a->slot->refused, memory_order_relaxed),
        .dead = a->lost,
        .queued_peak = a->peak,
        .calls_open = a->calls_open,
        .busy = a->busy,
    };
    weir__slot_load(a->slot, &out->queued, &out->queued_bytes);
    memcpy(out->name, a->name, sizeof out->name);
}

int weir_actor_get_stats(weir_system *s, weir_address address, weir_actor_stats *out) {
    weir_actor *a = weir__actor(s, address);
    if (!a)
        return WEIR_ENOACTOR;
    fill(a, out);
    return WEIR_OK;
}

void weir_actors(weir_system *s, void (*fn)(void *data, weir_address a, const weir_actor_stats *stats), void *data) {
    for (uint32_t i = 0; i < s->actors.used; i++) {
        weir__slot *slot = weir__ids_at(&s->actors, i);
        if (!atomic_load_explicit(&slot->id.live, memory_order_relaxed))
            continue;
        weir_actor_stats stats;
        fill(slot->actor, &stats);
        fn(data, slot->actor->address, &stats);
    }
}
