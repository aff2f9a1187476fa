/* error_body.c: an error as a message body, [code, text, actor, nil, cause text], for where it has to leave the process. */
#include "internal.h"

weir_body *weir__error_pack(weir_system *s, const weir_error *e) {
    const weir_error *cause = weir_error_cause(e);
    return weir_pack(s, "issns", (int64_t)weir_error_code(e), weir_error_text(e), weir_error_actor(e),
                     cause ? weir_error_text(cause) : NULL);
}

/* A string, or nil; false: something else. `text` is a part of the body and not zero-ended. */
static bool read_text(weir_cursor *c, const char **text, size_t *n) {
    *text = NULL;
    *n = 0;
    if (weir_read_bytes(c, text, n))
        return true;
    weir_cursor at = *c;
    if (weir_read_value(&at).kind != WEIR_NIL)
        return false;
    *c = at;
    return true;
}

/* Codes that this build does not know, from a newer one, stay numbers. */
weir_error *weir__error_unpack(const weir_body *b) {
    uint32_t count;
    int64_t code;
    const char *text, *actor, *cause;
    size_t text_size, actor_size, cause_size;
    weir_cursor c = weir_read(b, &count);
    bool ok = count >= 5 && weir_read_int(&c, &code) && code > 0 && code <= INT32_MAX && read_text(&c, &text, &text_size) &&
              read_text(&c, &actor, &actor_size) && weir_read_skip(&c) && read_text(&c, &cause, &cause_size);
    if (!ok)
        return weir_error_new(WEIR_EMSGPACK, NULL, NULL, "an error reply that is not [code, text, actor, data, cause]");
    char name[WEIR_MAX_NAME];
    size_t n = actor_size < sizeof name ? actor_size : sizeof name - 1;
    if (actor)
        memcpy(name, actor, n);
    name[n] = 0;
    weir_error *why = cause ? weir_error_new((int)code, NULL, NULL, "%.*s", (int)cause_size, cause) : NULL;
    return weir_error_new((int)code, actor ? name : NULL, why, "%.*s", (int)text_size, text ? text : "");
}
