/* read.c: reading bodies with a cursor: in order, without allocating, never beyond the end. Bytes that were checked (body.c) or made by the writer
 * read to the end; any others end early with WEIR_END. */
#include "internal.h"

static weir_value end_value(void) {
    return (weir_value){.kind = WEIR_END};
}

static weir_value unsigned_value(uint64_t v) {
    if (v > INT64_MAX)
        return (weir_value){.kind = WEIR_UINT, .u = v};
    return (weir_value){.kind = WEIR_INT, .i = (int64_t)v};
}

/* Sign-extends the number's highest byte. */
static weir_value signed_value(uint64_t v, unsigned bytes) {
    unsigned shift = 64 - 8 * bytes;
    return (weir_value){.kind = WEIR_INT, .i = (int64_t)(v << shift) >> shift};
}

static weir_value float_value(uint64_t bits, unsigned bytes) {
    double d;
    if (bytes == 4) {
        uint32_t low = (uint32_t)bits;
        float f;
        memcpy(&f, &low, sizeof f);
        d = (double)f;
    } else {
        memcpy(&d, &bits, sizeof d);
    }
    return (weir_value){.kind = WEIR_DOUBLE, .d = d};
}

/* Moves past `n` bytes behind the cursor; false if they are not there. */
static bool take(weir_cursor *c, uint64_t n, const uint8_t **p) {
    if (n > (uint64_t)(c->end - c->p))
        return false;
    *p = c->p;
    c->p += n;
    return true;
}

static weir_value bytes_value(weir_cursor *c, enum weir_kind kind, uint64_t n) {
    const uint8_t *p;
    if (!take(c, n, &p))
        return end_value();
    return (weir_value){.kind = kind, .s = {(const char *)p, (uint32_t)n}};
}

/* An ext of the handles' type is a handle if the body has that many; from outside it cannot come (body.c). */
static weir_value ext_value(weir_cursor *c, uint64_t n) {
    const uint8_t *type;
    if (!take(c, 1, &type))
        return end_value();
    weir_value v = bytes_value(c, WEIR_EXT, n);
    v.ext_type = (int8_t)*type;
    if (v.kind != WEIR_EXT || v.ext_type != WEIR__EXT_HANDLE || n != 4 || !c->body)
        return v;
    uint64_t index = weir__big_endian((const uint8_t *)v.s.data, 4);
    if (index < c->body->n_handles)
        return (weir_value){.kind = WEIR_HANDLE, .handle = c->body->handles[index]};
    return v;
}

static weir_value count_value(enum weir_kind kind, uint64_t n) {
    return (weir_value){.kind = kind, .count = (uint32_t)n};
}

/* From 0xc0 to 0xdf: what a number of `bytes` bytes behind the first one means. */
static weir_value sized_value(weir_cursor *c, uint8_t byte, unsigned bytes) {
    const uint8_t *p;
    if (!take(c, bytes, &p))
        return end_value();
    uint64_t n = weir__big_endian(p, bytes);
    if (byte <= 0xc6)
        return bytes_value(c, WEIR_BIN, n);
    if (byte <= 0xc9)
        return ext_value(c, n);
    if (byte <= 0xcb)
        return float_value(n, bytes);
    if (byte <= 0xcf)
        return unsigned_value(n);
    if (byte <= 0xd3)
        return signed_value(n, bytes);
    if (byte <= 0xdb)
        return bytes_value(c, WEIR_STR, n);
    return count_value(byte <= 0xdd ? WEIR_ARRAY : WEIR_MAP, n);
}

static weir_value simple_value(uint8_t byte) {
    if (byte == 0xc1)
        return end_value();
    if (byte == 0xc0)
        return (weir_value){.kind = WEIR_NIL};
    return (weir_value){.kind = WEIR_BOOL, .b = byte == 0xc3};
}

/* c4..c6 bin, c7..c9 ext, ca cb float, cc..cf unsigned, d0..d3 signed, d4..d8 fixext, d9..db str, dc..df array and map */
static const uint8_t number_bytes[32] = {0, 0, 0, 0, 1, 2, 4, 1, 2, 4, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 0, 0, 0, 0, 0, 1, 2, 4, 2, 4, 2, 4};

static weir_value any_value(weir_cursor *c) {
    uint8_t byte = *c->p++;
    if (byte < 0x80 || byte >= 0xe0)
        return (weir_value){.kind = WEIR_INT, .i = (int8_t)byte};
    if (byte < 0x90)
        return count_value(WEIR_MAP, byte & 0x0f);
    if (byte < 0xa0)
        return count_value(WEIR_ARRAY, byte & 0x0f);
    if (byte < 0xc0)
        return bytes_value(c, WEIR_STR, byte & 0x1f);
    if (byte < 0xc4)
        return simple_value(byte);
    if (byte >= 0xd4 && byte <= 0xd8)
        return ext_value(c, UINT64_C(1) << (byte - 0xd4));
    return sized_value(c, byte, number_bytes[byte - 0xc0]);
}

weir_value weir_read_value(weir_cursor *c) {
    if (c->p >= c->end)
        return end_value();
    const uint8_t *start = c->p;
    weir_value v = any_value(c);
    if (v.kind == WEIR_END)
        c->p = start;
    return v;
}

/* An array or map of up to 15, a string of up to 31 bytes: most heads are of one byte, and are read without making a value of them. */
static bool short_head(weir_cursor *c, uint8_t first, uint8_t mask, uint32_t *n) {
    if (c->p >= c->end || (*c->p & ~mask) != first)
        return false;
    *n = *c->p++ & mask;
    return true;
}

weir_cursor weir_read(const weir_body *b, uint32_t *count) {
    weir_cursor c = {NULL, NULL, b};
    uint32_t n = 0;
    if (b) {
        c.p = b->data;
        c.end = b->data + b->size;
        if (!weir_read_array(&c, &n))
            c.p = c.end;
    }
    if (count)
        *count = n;
    return c;
}

bool weir_read_skip(weir_cursor *c) {
    weir_cursor at = *c;
    for (uint64_t left = 1; left; left--) {
        weir_value v = weir_read_value(&at);
        if (v.kind == WEIR_END)
            return false;
        left += v.kind == WEIR_ARRAY ? v.count : v.kind == WEIR_MAP ? 2 * (uint64_t)v.count : 0;
    }
    *c = at;
    return true;
}

/* ---- typed reads: on false the cursor stays ---- */

static weir_value read_kind(weir_cursor *c, enum weir_kind kind, bool *ok) {
    weir_cursor at = *c;
    weir_value v = weir_read_value(&at);
    *ok = v.kind == kind;
    if (*ok)
        *c = at;
    return v;
}

bool weir_read_int(weir_cursor *c, int64_t *out) {
    weir_cursor at = *c;
    weir_value v = weir_read_value(&at);
    const double two63 = 9223372036854775808.0;
    if (v.kind == WEIR_INT)
        *out = v.i;
    else if (v.kind == WEIR_DOUBLE && v.d >= -two63 && v.d < two63 && v.d == (double)(int64_t)v.d)
        *out = (int64_t)v.d;
    else
        return false;
    *c = at;
    return true;
}

bool weir_read_double(weir_cursor *c, double *out) {
    weir_cursor at = *c;
    weir_value v = weir_read_value(&at);
    const double two63 = 9223372036854775808.0, two64 = 2 * two63;
    double d = v.kind == WEIR_INT ? (double)v.i : (double)v.u;
    if (v.kind == WEIR_DOUBLE)
        *out = v.d;
    else if ((v.kind == WEIR_INT && d < two63 && (int64_t)d == v.i) || (v.kind == WEIR_UINT && d < two64 && (uint64_t)d == v.u))
        *out = d;
    else
        return false;
    *c = at;
    return true;
}

bool weir_read_bool(weir_cursor *c, bool *out) {
    bool ok;
    weir_value v = read_kind(c, WEIR_BOOL, &ok);
    if (ok)
        *out = v.b;
    return ok;
}

bool weir_read_bytes(weir_cursor *c, const char **s, size_t *n) {
    weir_cursor at = *c;
    weir_value v = weir_read_value(&at);
    if (v.kind != WEIR_STR && v.kind != WEIR_BIN)
        return false;
    *s = v.s.data;
    *n = v.s.size;
    *c = at;
    return true;
}

bool weir_read_array(weir_cursor *c, uint32_t *n) {
    bool ok;
    uint32_t count;
    if (!short_head(c, 0x90, 0x0f, &count)) {
        count = read_kind(c, WEIR_ARRAY, &ok).count;
        if (!ok)
            return false;
    }
    if (n)
        *n = count;
    return true;
}

bool weir_read_map(weir_cursor *c, uint32_t *n) {
    bool ok;
    weir_value v = read_kind(c, WEIR_MAP, &ok);
    if (ok && n)
        *n = v.count;
    return ok;
}

bool weir_read_handle(weir_cursor *c, const char *type, void **object) {
    weir_cursor at = *c;
    weir_value v = weir_read_value(&at);
    if (v.kind != WEIR_HANDLE || strcmp(v.handle.type->name, type) != 0)
        return false;
    *object = v.handle.object;
    *c = at;
    return true;
}

bool weir_read_find(weir_cursor map, const char *key, weir_cursor *value) {
    uint32_t pairs;
    size_t n = strlen(key);
    if (!weir_read_map(&map, &pairs))
        return false;
    for (; pairs; pairs--) {
        const char *s;
        size_t size;
        weir_cursor at = map;
        bool equal = weir_read_bytes(&at, &s, &size) && size == n && memcmp(s, key, n) == 0;
        if (!weir_read_skip(&map))
            return false;
        if (equal) {
            *value = map;
            return map.p < map.end;
        }
        if (!weir_read_skip(&map))
            return false;
    }
    return false;
}
