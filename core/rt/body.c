/* body.c: bodies as counted, immutable values, and the check of bytes from outside: iterative, linear, without allocation, one depth for all. */
#include "internal.h"

/* ---- counted values ---- */

weir_body *weir__body_new(weir_system *s, size_t room) {
    size_t got;
    weir_body *b = weir__pool_take(s, sizeof *b + room, &got);
    if (!b)
        return NULL;
    b->system = s;
    b->handles = NULL;
    atomic_init(&b->refs, 1);
    b->size = 0;
    b->room = (uint32_t)(got - sizeof *b);
    b->n_handles = b->max_handles = 0;
    return b;
}

bool weir__body_grow(weir_body **body, size_t room) {
    weir_body *old = *body, *b = weir__body_new(old->system, room);
    if (!b)
        return false;
    memcpy(b->data, old->data, old->size);
    b->size = old->size;
    b->handles = old->handles;
    b->n_handles = old->n_handles;
    b->max_handles = old->max_handles;
    weir__pool_give(old->system, old, sizeof *old + old->room);
    *body = b;
    return true;
}

weir_body *weir_body_ref(weir_body *b) {
    if (b)
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

/* The count of a body that only its last owner sees needs no atomic subtraction. */
void weir_body_free(weir_body *b) {
    if (!b)
        return;
    if (atomic_load_explicit(&b->refs, memory_order_acquire) != 1 && atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
        return;
    for (uint32_t i = 0; i < b->n_handles; i++)
        b->handles[i].type->unref(b->handles[i].object);
    weir__free(b->system, b->handles);
    weir__pool_give(b->system, b, sizeof *b + b->room);
}

const void *weir_body_bytes(const weir_body *b, size_t *size) {
    if (size)
        *size = weir__body_size(b);
    return b ? b->data : NULL;
}

/* ---- the check (format: https://github.com/msgpack/msgpack/blob/master/spec.md) ---- */

typedef struct scan {
    const uint8_t *p;
    size_t n, at;
    const char *what; /* the fault found at `at` */
} scan;

/* How a value begins: `length` bytes of a number behind the first byte, then `fixed` bytes, or as many as the number says times `each`. */
typedef struct shape {
    uint8_t number; /* bytes of the length or count */
    uint8_t fixed;  /* payload bytes beside it */
    uint8_t kind;   /* what the number counts */
} shape;
enum { NOTHING, BYTES, VALUES, PAIRS, INVALID };

/* From 0xc0 to 0xdf. */
static const shape shapes[32] = {
    {0, 0, NOTHING}, {0, 0, INVALID}, {0, 0, NOTHING}, {0, 0, NOTHING},                   /* nil, unused, false, true */
    {1, 0, BYTES},   {2, 0, BYTES},   {4, 0, BYTES},                                      /* bin */
    {1, 1, BYTES},   {2, 1, BYTES},   {4, 1, BYTES},                                      /* ext: the type is one byte more */
    {0, 4, NOTHING}, {0, 8, NOTHING},                                                     /* float, double */
    {0, 1, NOTHING}, {0, 2, NOTHING}, {0, 4, NOTHING}, {0, 8, NOTHING},                   /* unsigned */
    {0, 1, NOTHING}, {0, 2, NOTHING}, {0, 4, NOTHING}, {0, 8, NOTHING},                   /* signed */
    {0, 2, NOTHING}, {0, 3, NOTHING}, {0, 5, NOTHING}, {0, 9, NOTHING}, {0, 17, NOTHING}, /* fixext */
    {1, 0, BYTES},   {2, 0, BYTES},   {4, 0, BYTES},                                      /* str */
    {2, 0, VALUES},  {4, 0, VALUES},  {2, 0, PAIRS},   {4, 0, PAIRS},
};

static int fault(scan *c, size_t at, int code, const char *what) {
    c->at = at;
    c->what = what;
    return code;
}

/* Ext values of the type that stands for handles: only as the writer makes them, only with an index that is there. */
static int check_ext(scan *c, const uint8_t *first, int64_t handles) {
    unsigned number = shapes[*first - 0xc0].number;
    if (first[1 + number] != WEIR__EXT_HANDLE)
        return WEIR_OK;
    if (handles < 0)
        return fault(c, (size_t)(first - c->p), WEIR_EMSGPACK, "a handle (ext type 1) cannot come from outside");
    if (*first != 0xd6 || weir__big_endian(first + 2, 4) >= (uint64_t)handles)
        return fault(c, (size_t)(first - c->p), WEIR_EMSGPACK, "a handle without its object");
    return WEIR_OK;
}

static bool is_ext(uint8_t byte) {
    return (byte >= 0xc7 && byte <= 0xc9) || (byte >= 0xd4 && byte <= 0xd8);
}

/* One head with its payload; *values: how many values it says follow inside it, *container: whether it is an array or a map. */
static int step(scan *c, int64_t handles, uint64_t *values, bool *container) {
    size_t start = c->at, left = c->n - start;
    const uint8_t *p = c->p + start;
    *values = 0;
    *container = false;
    if (!left)
        return fault(c, start, WEIR_EMSGPACK, "the bytes end inside a value");
    uint8_t byte = *p;
    uint64_t bytes = 1, number = 0;
    uint8_t kind = NOTHING;
    if (byte >= 0xc0 && byte <= 0xdf) {
        shape f = shapes[byte - 0xc0];
        kind = f.kind;
        bytes += f.number + f.fixed;
        if (kind == INVALID)
            return fault(c, start, WEIR_EMSGPACK, "the byte c1 begins no value");
        if (bytes > left)
            return fault(c, start, WEIR_EMSGPACK, "the bytes end inside a value");
        number = weir__big_endian(p + 1, f.number);
    } else if (byte >= 0x80 && byte < 0xc0) {
        kind = byte < 0x90 ? PAIRS : byte < 0xa0 ? VALUES : BYTES;
        number = byte & (kind == BYTES ? 0x1f : 0x0f);
    }
    bytes += kind == BYTES ? number : 0;
    *values = kind == VALUES ? number : kind == PAIRS ? 2 * number : 0;
    *container = kind == VALUES || kind == PAIRS;
    if (bytes > left || *values > left - bytes)
        return fault(c, start, WEIR_EMSGPACK, "a length is larger than the bytes that are left");
    c->at += bytes;
    return is_ext(byte) ? check_ext(c, p, handles) : WEIR_OK;
}

int weir__msgpack_check(const uint8_t *p, size_t n, unsigned depth, int64_t handles, size_t *at, const char **what) {
    scan c = {p, n, 0, NULL};
    uint64_t left[WEIR_MAX_DEPTH + 1]; /* values still to come, by depth */
    unsigned outside = depth;
    int code = WEIR_OK;
    left[depth] = 1;
    while (code == WEIR_OK) {
        while (left[depth] == 0 && depth > outside)
            depth--;
        if (left[depth] == 0)
            break;
        size_t start = c.at;
        uint64_t values;
        bool container;
        left[depth]--;
        code = step(&c, handles, &values, &container);
        if (code == WEIR_OK && container && depth == WEIR_MAX_DEPTH)
            code = fault(&c, start, WEIR_EDEPTH, "nested too deeply");
        else if (code == WEIR_OK && container)
            left[++depth] = values;
    }
    if (code == WEIR_OK && c.at != n)
        code = fault(&c, c.at, WEIR_EMSGPACK, "bytes follow the value");
    *at = c.at;
    *what = c.what;
    return code;
}

static bool begins_array(uint8_t byte) {
    return (byte >= 0x90 && byte < 0xa0) || byte == 0xdc || byte == 0xdd;
}

int weir_body_from_bytes(weir_system *s, const void *bytes, size_t size, weir_body **out, weir_error **error) {
    size_t at = 0;
    const char *what = "the arguments are no array";
    if (!weir__check(s && out && (bytes || !size), "no system, no bytes or no place for the body"))
        return weir_fail(error, WEIR_EINVAL, "weir_body_from_bytes: no system, no bytes or no place for the body");
    if (size > WEIR_MAX_BODY)
        return weir_fail(error, WEIR_ETOOBIG, "a body of %zu bytes; at most %u are accepted", size, WEIR_MAX_BODY);
    int code = size && !begins_array(*(const uint8_t *)bytes) ? WEIR_EMSGPACK : weir__msgpack_check(bytes, size, 0, -1, &at, &what);
    if (code != WEIR_OK)
        return weir_fail(error, code, "msgpack of %zu bytes, at offset %zu: %s", size, at, what);
    weir_body *b = weir__body_new(s, size);
    if (!b)
        return weir_fail(error, WEIR_ENOMEM, "no memory for a body of %zu bytes", size);
    memcpy(b->data, bytes, size);
    b->size = (uint32_t)size;
    *out = b;
    return WEIR_OK;
}
