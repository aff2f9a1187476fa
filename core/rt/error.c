/* error.c: error objects and the table of codes. Errors belong to no system: they are made where none is at hand, on any thread, with malloc;
 * without memory there is one fixed error for each code. */
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

static const struct {
    const char *name, *text;
    int http;
    bool retry;
} codes[WEIR_CODES] = {
    {"OK", "no error", 200, false},
#define WEIR_ERROR(name, text, http, retry) {#name, text, http, retry},
#include "../errors.def"
#undef WEIR_ERROR
};

struct weir_error {
    _Atomic uint32_t refs; /* 0: one of the fixed errors, never freed */
    int code;
    weir_error *cause;
    const char *actor, *text; /* behind the struct */
};

static const weir_error fixed[WEIR_CODES] = {
    {0, WEIR_OK, NULL, NULL, "no error"},
#define WEIR_ERROR(name, text, http, retry) {0, WEIR_##name, NULL, NULL, text " (no memory for the details)"},
#include "../errors.def"
#undef WEIR_ERROR
};

static bool known(int code) {
    return code >= 0 && code < WEIR_CODES;
}

const char *weir_code_name(int code) {
    return known(code) ? codes[code].name : "?";
}

const char *weir_code_text(int code) {
    return known(code) ? codes[code].text : "unknown error";
}

int weir_code_http(int code) {
    return known(code) ? codes[code].http : 500;
}

bool weir_code_retry(int code) {
    return known(code) && codes[code].retry;
}

static weir_error *make(int code, const char *actor, weir_error *cause, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    size_t text = n < 0 ? 1 : (size_t)n + 1, name = actor ? strlen(actor) + 1 : 0;
    weir_error *e = malloc(sizeof *e + text + name);
    if (!e) {
        weir_error_free(cause);
        return (weir_error *)&fixed[known(code) ? code : WEIR_ENOMEM]; /* never written: it has no owners to count */
    }
    char *p = (char *)(e + 1);
    *e = (weir_error){1, code, cause, actor ? p + text : NULL, p};
    p[0] = 0;
    vsnprintf(p, text, format, args);
    if (actor)
        memcpy(p + text, actor, name);
    return e;
}

weir_error *weir_error_new(int code, const char *actor, weir_error *cause, const char *format, ...) {
    va_list args;
    va_start(args, format);
    weir_error *e = make(code, actor, cause, format, args);
    va_end(args);
    return e;
}

weir_error *weir_error_ref(const weir_error *e) {
    weir_error *owned = (weir_error *)e;
    if (e && atomic_load_explicit(&owned->refs, memory_order_relaxed))
        atomic_fetch_add_explicit(&owned->refs, 1, memory_order_relaxed);
    return owned;
}

void weir_error_free(weir_error *e) {
    while (e && atomic_load_explicit(&e->refs, memory_order_relaxed)) {
        if (atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1)
            return;
        weir_error *cause = e->cause;
        free(e);
        e = cause;
    }
}

int weir_error_code(const weir_error *e) {
    return e ? e->code : WEIR_OK;
}

const char *weir_error_text(const weir_error *e) {
    return e ? e->text : codes[WEIR_OK].text;
}

const char *weir_error_actor(const weir_error *e) {
    return e ? e->actor : NULL;
}

const weir_error *weir_error_cause(const weir_error *e) {
    return e ? e->cause : NULL;
}

int weir_fail(weir_error **error, int code, const char *format, ...) {
    if (!error)
        return code;
    va_list args;
    va_start(args, format);
    *error = make(code, NULL, NULL, format, args);
    va_end(args);
    return code;
}

#ifndef NDEBUG
bool weir__check_failed(const char *function, const char *text) {
    fprintf(stderr, "weir: %s: %s\n", function, text);
    fflush(stderr);
    __builtin_trap();
}
#endif
