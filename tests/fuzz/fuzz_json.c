/* fuzz_json.c: any text through the JSON reader. What it takes and refuses is what jansson's strict decoding does, but for depth, endless numbers and keys with NUL in
 * them (it has no room for those); every string is as long as said and compares with itself; a path is found or not without harm. */
#include "../../core/text/json.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok) {
    if (!ok)
        __builtin_trap();
}

static void check_string(weir__json_text s) {
    char *to = malloc(s.size + 1);
    check(to);
    size_t n = weir__json_unescape(s, to);
    check(n <= s.size && weir__json_same(s, to, n) && weir__utf8_valid(to, n) == n);
    free(to);
}

static bool read_scalar(weir__json *j) {
    weir__json_text text;
    double x;
    bool truth;
    switch (weir__json_peek(j)) {
    case WEIR__JSON_STRING:
        if (!weir__json_string(j, &text))
            return false;
        check_string(text);
        return true;
    case WEIR__JSON_NUMBER:
        return weir__json_double(j, &x);
    case WEIR__JSON_BOOL:
        return weir__json_bool(j, &truth);
    default:
        return weir__json_null(j);
    }
}

/* One step of a walk over all of the text; `levels`: which of the open ones are objects. */
static bool step(weir__json *j, bool *levels) {
    weir__json_text key;
    if (j->due) {
        enum weir__json_kind kind = weir__json_peek(j);
        if (kind != WEIR__JSON_OBJECT && kind != WEIR__JSON_ARRAY)
            return read_scalar(j);
        levels[j->depth] = kind == WEIR__JSON_OBJECT;
        return kind == WEIR__JSON_OBJECT ? weir__json_object(j) : weir__json_array(j);
    }
    if (!levels[j->depth - 1])
        return weir__json_next(j) || !j->code;
    if (weir__json_next_key(j, &key))
        check_string(key);
    return !j->code;
}

static int walk(const char *text, size_t size) {
    bool levels[WEIR_MAX_DEPTH + 1];
    weir_error *error = NULL;
    weir__json j;
    weir__json_init(&j, "fuzz", text, size, &error);
    while (step(&j, levels) && (j.depth > 0 || j.due))
        ;
    int code = weir__json_finish(&j);
    check(!code == !error);
    weir_error_free(error);
    return code;
}

/* Digits in a row beyond what the reader converts. */
static bool long_number(const char *text, size_t size) {
    size_t run = 0;
    for (size_t i = 0; i < size && run <= 256; i++)
        run = memchr("0123456789.eE+-", text[i], 15) ? run + 1 : 0;
    return run > 256;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1); /* of its exact size, so that reading past it shows */
    json_error_t why;
    weir__json j;
    if (!text)
        return 0;
    memcpy(text, data, size);
    int code = walk(text, size);
    json_t *other = json_loadb(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &why);
    if (memchr(text, 0, size)) /* wrong everywhere; jansson takes one for the end of the text */
        check(code != WEIR_OK);
    else if (code != WEIR_EDEPTH && !long_number(text, size) && (other || json_error_code(&why) != json_error_null_byte_in_key))
        check((code == WEIR_OK) == (other != NULL));
    json_decref(other);
    weir__json_init(&j, "fuzz", text, size, NULL);
    weir__json_find(&j, "a.b");
    weir__json_init(&j, "fuzz", text, size, NULL);
    weir__json_skip(&j);
    check(code || !j.code);
    free(text);
    return 0;
}
