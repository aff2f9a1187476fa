/* common.c: what the spawning functions share, and the table of behaviours (actors.h). */
#include "actors.h"

#include <string.h>

static weir_error *no_memory(void) {
    return weir_error_new(WEIR_ENOMEM, NULL, NULL, "no memory for a reply");
}

void weir__reply_made(weir_actor *self, const weir_message *m, weir_body *body) {
    if (body)
        weir_reply(self, m, body);
    else
        weir_reply_error(self, m, no_memory());
}

void weir__answer_made(weir_actor *self, weir_reply_to to, weir_body *body) {
    if (body)
        weir_answer(self, to, body);
    else
        weir_answer_error(self, to, no_memory());
}

void weir__write_key(weir_writer *w, const char *key) {
    weir_write_str(w, key, strlen(key));
}

bool weir__own_notice(const weir_actor *self, const weir_message *m) {
    return weir_message_from(m) == weir_self(self);
}

bool weir__read_neighbour(weir_actor *self, const weir_message *m, const char *key, weir_address *out) {
    int64_t address = 0;
    weir_error *error = NULL;
    bool ok = weir__option_int(weir__options(weir_message_body(m), 0), key, 0, INT64_MAX, &address, &error);
    if (!ok)
        weir_reply_error(self, m, error);
    *out = (weir_address)address;
    return ok;
}

weir_error *weir__stream_refused(const weir__device *d, const char *stream, int code) {
    return weir_error_new(code, NULL, NULL, "work was refused by stream %s of device %s: %s", stream, weir__device_name(d),
                          weir_code_text(code));
}

weir_error *weir__reason(weir_error *error) {
    const weir_error *e = error;
    while (e && weir_error_code(e) != WEIR_EDEVICE)
        e = weir_error_cause(e);
    if (!e || e == error)
        return error;
    weir_error *reason = weir_error_ref(e);
    weir_error_free(error);
    return reason;
}

bool weir__is_gone(int code) {
    return code == WEIR_EEXITED || code == WEIR_EKILLED || code == WEIR_ENOACTOR;
}

weir_error *weir__lost_error(const weir__device *d) {
    return weir_error_new(WEIR_EDEVICE, NULL, NULL, "device %s is lost: %s", weir__device_name(d), weir__device_lost(d));
}

weir_error *weir__why_failed(const weir__device *d, weir_error *error) {
    int code = weir_error_code(error);
    if (!d || !weir__device_lost(d) || code == WEIR_EDEVICE || code == WEIR_ECANCELLED)
        return error;
    weir_error_free(error);
    return weir__lost_error(d);
}

void weir__exit_lost(weir_actor *self, const weir__device *d) {
    weir_exit(self, weir__lost_error(d));
}

void weir__on_device_lost(weir_actor *self, const weir_message *m, const weir__device *d) {
    if (weir__own_notice(self, m) && weir__device_lost(d))
        weir__exit_lost(self, d);
}

int weir__actor_stream(weir_system *s, weir_address owner, weir__device *d, const char *name, weir__stream **out, weir_error **error) {
    int code = weir__stream_new(d, owner, name, out, error);
    if (code)
        weir_kill(s, owner);
    return code;
}

const weir_behaviour *const *weir__behaviours(void) {
    static const weir_behaviour *const all[] = {&weir__model_behaviour,
                                                &weir__residency_behaviour,
                                                &weir__policy_behaviour,
                                                &weir__experts_behaviour,
                                                &weir__stepper_behaviour,
                                                &weir__generator_behaviour,
                                                NULL};
    return all;
}
