/* options.c: reading the map of options and the texts and ids of a message (actors.h). */
#include "actors.h"

#include <stdio.h>
#include <string.h>

weir_cursor weir__options(const weir_body *b, uint32_t index) {
    uint32_t count = 0;
    weir_cursor c = weir_read(b, &count);
    for (uint32_t i = 0; i < index && i < count; i++)
        weir_read_skip(&c);
    return index < count ? c : weir_read(NULL, NULL);
}

/* 1: found, 0: absent or nil */
static int find(weir_cursor map, const char *key, weir_cursor *value) {
    if (!weir_read_find(map, key, value))
        return 0;
    weir_cursor peek = *value;
    return weir_read_value(&peek).kind != WEIR_NIL;
}

/* What stands where something else was wanted. */
static const char *found(weir_cursor at, char *to, size_t room) {
    weir_value v = weir_read_value(&at);
    switch (v.kind) {
    case WEIR_BOOL:
        return v.b ? "true" : "false";
    case WEIR_INT:
        snprintf(to, room, "%lld", (long long)v.i);
        return to;
    case WEIR_UINT:
        snprintf(to, room, "%llu", (unsigned long long)v.u);
        return to;
    case WEIR_DOUBLE:
        snprintf(to, room, "%.9g", v.d);
        return to;
    case WEIR_STR:
    case WEIR_BIN:
        return "a string";
    case WEIR_ARRAY:
        return "an array";
    case WEIR_MAP:
        return "a map";
    default:
        return "an object";
    }
}

bool weir__option_int(weir_cursor map, const char *key, int64_t min, int64_t max, int64_t *v, weir_error **error) {
    weir_cursor value;
    int64_t n;
    if (!find(map, key, &value))
        return true;
    weir_cursor at = value;
    if (!weir_read_int(&at, &n) || n < min || n > max) {
        char text[32];
        weir_fail(error, WEIR_EINVAL, "option \"%s\" is %s, wanted an integer from %lld to %lld", key, found(value, text, sizeof text),
                  (long long)min, (long long)max);
        return false;
    }
    *v = n;
    return true;
}

bool weir__option_double(weir_cursor map, const char *key, double min, double max, double *v, weir_error **error) {
    weir_cursor value;
    double d;
    if (!find(map, key, &value))
        return true;
    weir_cursor at = value;
    if (!weir_read_double(&at, &d) || !(d >= min && d <= max)) {
        char text[32];
        weir_fail(error, WEIR_EINVAL, "option \"%s\" is %s, wanted a number from %g to %g", key, found(value, text, sizeof text), min, max);
        return false;
    }
    *v = d;
    return true;
}

bool weir__option_bool(weir_cursor map, const char *key, bool *v, weir_error **error) {
    weir_cursor value;
    if (!find(map, key, &value) || weir_read_bool(&value, v))
        return true;
    weir_fail(error, WEIR_EINVAL, "option \"%s\": wanted true or false", key);
    return false;
}

bool weir__option_bytes(weir_cursor map, const char *key, const char **data, size_t *size, weir_error **error) {
    weir_cursor value;
    if (!find(map, key, &value) || weir_read_bytes(&value, data, size))
        return true;
    weir_fail(error, WEIR_EINVAL, "option \"%s\": wanted a string", key);
    return false;
}

/* ---- text ---- */

/* Next part of a text value; `left` counts the parts of an array. False: malformed. */
static bool next_part(weir_cursor *c, weir__part *part, bool special) {
    uint32_t n;
    if (weir_read_bytes(c, &part->text, &part->size)) {
        part->special = special;
        return true;
    }
    return weir_read_array(c, &n) && n == 2 && weir_read_bytes(c, &part->text, &part->size) && weir_read_bool(c, &part->special);
}

static bool open_parts(weir_cursor *value, uint32_t *count) {
    weir_cursor peek = *value;
    *count = 1;
    return weir_read_value(&peek).kind == WEIR_ARRAY ? weir_read_array(value, count) : true;
}

size_t weir__encode_size(weir_cursor value) {
    uint32_t count;
    size_t bytes = 0;
    weir__part part;
    if (!open_parts(&value, &count))
        return 0;
    while (count-- && next_part(&value, &part, false))
        bytes += part.size;
    return bytes;
}

int weir__encode_value(weir_system *s, const weir__tokenizer *t, weir_cursor value, bool special, bool bounds, weir__ids *ids,
                       weir_error **error) {
    weir__part inline_parts[32], *parts = inline_parts;
    uint32_t count;
    if (!open_parts(&value, &count) || count > 65536)
        return weir_fail(error, WEIR_ETYPE, "text: wanted a string or an array of [text, special]");
    if (count > 32 && !(parts = weir__alloc(s, sizeof *parts * count)))
        return weir_fail(error, WEIR_ENOMEM, "text: no memory for %u parts", count);
    int code = WEIR_OK;
    for (uint32_t i = 0; i < count && !code; i++)
        if (!next_part(&value, &parts[i], special))
            code = weir_fail(error, WEIR_ETYPE, "text: part %u is no string and no [text, special]", i);
    if (!code)
        code = weir__tokenizer_encode(t, parts, count, bounds, ids, error);
    if (parts != inline_parts)
        weir__free(s, parts);
    return code;
}

/* ---- ids ---- */

static int check_ids(const weir__ids *ids, int32_t vocab, weir_error **error) {
    for (size_t i = 0; i < ids->size; i++)
        if (ids->data[i] < 0 || ids->data[i] >= vocab)
            return weir_fail(error, WEIR_ETOKEN, "token %d (number %zu) is outside the vocabulary of %d", ids->data[i], i, vocab);
    return WEIR_OK;
}

int weir__read_ids(weir_system *s, weir_cursor value, int32_t vocab, weir__ids *ids, weir_error **error) {
    const char *bytes = NULL;
    size_t size = 0;
    uint32_t count = 0;
    bool packed = weir_read_bytes(&value, &bytes, &size);
    if (packed ? size % 4 != 0 : !weir_read_array(&value, &count))
        return weir_fail(error, WEIR_ETYPE, "tokens: wanted an array of integers, or bytes of int32");
    size_t n = packed ? size / 4 : count;
    *ids = (weir__ids){weir__alloc(s, n * 4 + 4), n, n + 1};
    if (!ids->data)
        return weir_fail(error, WEIR_ENOMEM, "tokens: no memory for %zu", n);
    int code = WEIR_OK;
    if (packed && size)
        memcpy(ids->data, bytes, size);
    for (size_t i = 0; i < n && !packed && !code; i++) {
        int64_t v;
        if (!weir_read_int(&value, &v) || v < INT32_MIN || v > INT32_MAX)
            code = weir_fail(error, WEIR_ETYPE, "tokens: number %zu is no integer", i);
        else
            ids->data[i] = (int32_t)v;
    }
    if (!code)
        code = check_ids(ids, vocab, error);
    if (code)
        weir__ids_free(s, ids);
    return code;
}
