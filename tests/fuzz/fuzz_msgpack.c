/* fuzz_msgpack.c: any bytes as a body from outside. What is refused is refused with a code and an offset; what is accepted reads to its very end, and
 * what the writer makes of it reads the same and is accepted again. A cursor on unchecked bytes stays inside them. */
#include "../../core/rt/rt.h"

#include <stdlib.h>
#include <string.h>

static weir_system *s;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok) {
    if (!ok)
        __builtin_trap();
}

/* Writes one head or plain value; *inside: the values that follow in it. ext has no writer: false. */
static bool copy_value(weir_writer *w, const weir_value *v, uint64_t *inside) {
    *inside = 0;
    switch (v->kind) {
    case WEIR_NIL:
        weir_write_nil(w);
        return true;
    case WEIR_BOOL:
        weir_write_bool(w, v->b);
        return true;
    case WEIR_INT:
        weir_write_int(w, v->i);
        return true;
    case WEIR_UINT:
        weir_write_uint(w, v->u);
        return true;
    case WEIR_DOUBLE:
        weir_write_double(w, v->d);
        return true;
    case WEIR_STR:
        weir_write_str(w, v->s.data, v->s.size);
        return true;
    case WEIR_BIN:
        weir_write_bin(w, v->s.data, v->s.size);
        return true;
    case WEIR_ARRAY:
        weir_write_array(w);
        *inside = v->count;
        return true;
    case WEIR_MAP:
        weir_write_map(w);
        *inside = 2 * (uint64_t)v->count;
        return true;
    default:
        return false;
    }
}

/* NULL if it holds an ext. */
static weir_body *copy(const weir_body *b) {
    uint64_t left[WEIR_MAX_DEPTH + 1];
    uint32_t count;
    unsigned depth = 0;
    weir_cursor c = weir_read(b, &count);
    weir_writer *w = weir_write_begin(s);
    left[0] = count;
    for (;;) {
        for (; depth && !left[depth]; depth--)
            weir_write_close(w);
        if (!left[depth])
            break;
        left[depth]--;
        weir_value v = weir_read_value(&c);
        uint64_t inside;
        must(v.kind != WEIR_END && v.kind != WEIR_HANDLE);
        if (!copy_value(w, &v, &inside)) {
            weir_write_abort(w);
            return NULL;
        }
        if (v.kind == WEIR_ARRAY || v.kind == WEIR_MAP) {
            must(++depth < WEIR_MAX_DEPTH);
            left[depth] = inside;
        }
    }
    must(c.p == c.end && weir_write_error(w) == WEIR_OK);
    return weir_write_end(w);
}

static bool same_value(const weir_value *a, const weir_value *b) {
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case WEIR_BOOL:
        return a->b == b->b;
    case WEIR_ARRAY:
    case WEIR_MAP:
        return a->count == b->count;
    case WEIR_STR:
    case WEIR_BIN:
        return a->s.size == b->s.size && memcmp(a->s.data, b->s.data, a->s.size) == 0;
    case WEIR_INT:
    case WEIR_UINT:
    case WEIR_DOUBLE:
        return memcmp(&a->u, &b->u, sizeof a->u) == 0;
    default:
        return true;
    }
}

static void compare(const weir_body *a, const weir_body *b) {
    weir_cursor x = weir_read(a, NULL), y = weir_read(b, NULL);
    weir_value v, u;
    do {
        v = weir_read_value(&x);
        u = weir_read_value(&y);
        must(same_value(&v, &u) || (v.kind == WEIR_DOUBLE && v.d != v.d));
    } while (v.kind != WEIR_END);
}

static void accepted(const weir_body *b) {
    uint32_t count, skipped = 0;
    weir_cursor c = weir_read(b, &count), value;
    while (weir_read_skip(&c))
        skipped++;
    must(skipped == count && c.p == c.end);
    c = weir_read(b, NULL);
    weir_read_find(c, "key", &value);
    weir_body *again = copy(b);
    if (!again)
        return;
    compare(b, again);
    size_t n;
    const void *bytes = weir_body_bytes(again, &n);
    weir_body *third;
    must(weir_body_from_bytes(s, bytes, n, &third, NULL) == WEIR_OK);
    weir_body_free(third);
    weir_body_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weir_body *b = NULL;
    weir_error *e = NULL;
    if (!s && weir_system_new(NULL, &s, NULL) != WEIR_OK)
        abort();
    int code = weir_body_from_bytes(s, data, size, &b, &e);
    must(code == weir_error_code(e) && (code == WEIR_OK || code == WEIR_EMSGPACK || code == WEIR_EDEPTH));
    if (b)
        accepted(b);
    weir_cursor c = {data, data + size, NULL}, value;
    weir_read_find(c, "key", &value);
    while (weir_read_skip(&c))
        must(c.p <= c.end);
    weir_error_free(e);
    weir_body_free(b);
    return 0;
}
