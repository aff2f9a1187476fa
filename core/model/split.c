/* split.c: parses names of parts and opens the parts of a split GGUF file (split.h). What llama.cpp writes: every part has split.no (from 0), split.count and
 * split.tensors.count (of all parts); the first one also has the settings. */
#include "split.h"

#include "gguf_internal.h"

#include <stdio.h>
#include <string.h>

#define GGUF_SUFFIX ".gguf"
enum { DIGITS = 5, MOST_DIGITS = 9, MOST_COUNT = UINT16_MAX };

/* The digits that end at `end`, most significant first. Afterwards *end is before them. False: none, or not as many as wanted. */
static bool digits_before(const char *text, size_t *end, size_t digits, uint64_t *v) {
    size_t from = *end;
    while (from > 0 && *end - from < MOST_DIGITS && text[from - 1] >= '0' && text[from - 1] <= '9')
        from--;
    size_t n = *end - from;
    if (n == 0 || (digits > 0 && n != digits))
        return false;
    *v = 0;
    for (size_t i = from; i < *end; i++)
        *v = *v * 10 + (uint64_t)(text[i] - '0');
    *end = from;
    return true;
}

static bool text_before(const char *text, size_t *end, const char *wanted) {
    size_t n = strlen(wanted);
    if (*end < n || memcmp(text + *end - n, wanted, n) != 0)
        return false;
    *end -= n;
    return true;
}

bool weir__split_parse(const char *path, const char *suffix, size_t digits, weir__split *split) {
    size_t end = strlen(path);
    if (!text_before(path, &end, suffix) || !digits_before(path, &end, digits, &split->count) || !text_before(path, &end, "-of-") ||
        !digits_before(path, &end, digits, &split->no) || !text_before(path, &end, "-"))
        return false;
    split->prefix = end;
    return end > 0 && path[end - 1] != '/';
}

/* How many parts the keys of a file speak of; 1: it was not cut. */
static int read_count(const weir__gguf *g, uint32_t *count, weir_error **error) {
    int64_t n = 1;
    int code = weir__gguf_get_int(g, "split.count", false, 0, MOST_COUNT, &n, error);
    *count = n > 1 ? (uint32_t)n : 1;
    return code;
}

static int check_name(const char *path, uint32_t count, weir__split *name, weir_error **error) {
    if (!weir__split_parse(path, GGUF_SUFFIX, DIGITS, name))
        return weir_fail(error, WEIR_EFORMAT,
                         "%s: key \"split.count\": found %u, but the other parts are found by names like NAME-00001-of-%05u.gguf", path,
                         count, count);
    if (name->count != count)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"split.count\": found %u, wanted %llu as the file's name says", path, count,
                         (unsigned long long)name->count);
    if (name->no < 1 || name->no > count)
        return weir_fail(error, WEIR_EFORMAT, "%s: the file's name says part %llu, wanted 1 to %u", path, (unsigned long long)name->no,
                         count);
    return WEIR_OK;
}

/* What a part says of itself: its number and how many there are. */
static int check_part(const weir__gguf *g, uint32_t no, uint32_t count, weir_error **error) {
    int64_t n = -1;
    int code = weir__gguf_get_int(g, "split.no", true, 0, MOST_COUNT, &n, error);
    if (!code && n != no)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"split.no\": found %lld, wanted %u as the file's name says", weir__gguf_path(g),
                         (long long)n, no);
    if (!code)
        code = weir__gguf_get_int(g, "split.count", true, 0, MOST_COUNT, &n, error);
    if (!code && n != count)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"split.count\": found %lld, wanted %u as in the other parts", weir__gguf_path(g),
                         (long long)n, count);
    return code;
}

/* A later part repeats nothing but what the first part says too: another value would be a setting that is ignored. */
static int check_keys(const weir__gguf *first, const weir__gguf *g, weir_error **error) {
    for (size_t i = 0; i < weir__gguf_key_count(g); i++) {
        char shown[128];
        const weir__gguf_key *key = weir__gguf_key_at(g, i);
        if (key->name.size > 6 && memcmp(key->name.data, "split.", 6) == 0)
            continue;
        int64_t at = weir__index_find(&first->key_index, key->name.data, key->name.size);
        const weir__gguf_key *same = at >= 0 ? weir__gguf_key_at(first, (size_t)at) : NULL;
        if (!same || same->type != key->type || same->element != key->element || same->size != key->size ||
            (key->size > 0 && memcmp(same->data, key->data, key->size) != 0))
            return weir_fail(error, WEIR_EFORMAT, "%s: key \"%s\": found in a later part, and %s has %s", weir__gguf_path(g),
                             weir__quote(shown, sizeof shown, key->name.data, key->name.size), weir__gguf_path(first),
                             same ? "another value" : "no such key");
    }
    return WEIR_OK;
}

static int check_tensors(const weir__parts *p, weir_error **error) {
    uint64_t found = 0;
    int64_t wanted = 0;
    for (uint32_t i = 0; i < p->count; i++)
        found += weir__gguf_tensor_count(p->gguf[i]);
    for (uint32_t i = 0; i < p->count; i++) {
        int code = weir__gguf_get_int(p->gguf[i], "split.tensors.count", true, 0, INT64_MAX, &wanted, error);
        if (code)
            return code;
        if ((uint64_t)wanted != found)
            return weir_fail(error, WEIR_EFORMAT, "%s: key \"split.tensors.count\": found %lld, but the %u parts have %llu tensors",
                             weir__gguf_path(p->gguf[i]), (long long)wanted, p->count, (unsigned long long)found);
    }
    return WEIR_OK;
}

static int open_part(weir_system *s, const char *path, uint32_t no, uint32_t count, weir__gguf **out, weir_error **error) {
    weir_error *why = NULL;
    int code = weir__gguf_open(s, path, out, &why);
    if (code == WEIR_ENOENT) {
        weir_error_free(why);
        return weir_fail(error, code, "%s: part %u of %u is missing", path, no, count);
    }
    if (code && error)
        *error = why;
    else
        weir_error_free(why);
    return code;
}

/* Opens the parts that are not there yet, beside one that is. */
static int open_others(weir__parts *p, const char *path, const weir__split *name, weir_error **error) {
    size_t room = strlen(path) + 1;
    char *other = weir__alloc(p->system, room);
    int code = other ? WEIR_OK : weir_fail(error, WEIR_ENOMEM, "%s", path);
    for (uint32_t i = 0; i < p->count && !code; i++) {
        snprintf(other, room, "%.*s-%05u-of-%05u" GGUF_SUFFIX, (int)name->prefix, path, i + 1, p->count);
        if (!p->gguf[i])
            code = open_part(p->system, other, i + 1, p->count, &p->gguf[i], error);
        if (!code)
            code = check_part(p->gguf[i], i, p->count, error);
    }
    weir__free(p->system, other);
    for (uint32_t i = 1; i < p->count && !code; i++)
        code = check_keys(p->gguf[0], p->gguf[i], error);
    return code ? code : check_tensors(p, error);
}

int weir__parts_open(weir_system *s, const char *path, weir__parts **out, weir_error **error) {
    weir__gguf *g;
    weir__split name = {.no = 1};
    uint32_t count;
    int code = weir__gguf_open(s, path, &g, error);
    if (code)
        return code;
    code = read_count(g, &count, error);
    if (!code && count > 1)
        code = check_name(path, count, &name, error);
    weir__parts *p = code ? NULL : weir__alloc(s, sizeof *p + count * sizeof *p->gguf);
    if (!p) {
        weir__gguf_free(g);
        return code ? code : weir_fail(error, WEIR_ENOMEM, "%s: no memory for %u parts", path, count);
    }
    p->system = s;
    p->count = count;
    p->gguf[name.no - 1] = g;
    code = count > 1 ? open_others(p, path, &name, error) : WEIR_OK;
    if (code)
        weir__parts_free(p);
    else
        *out = p;
    return code;
}

void weir__parts_free(weir__parts *p) {
    for (uint32_t i = 0; p && i < p->count; i++)
        weir__gguf_free(p->gguf[i]);
    if (p)
        weir__free(p->system, p);
}
