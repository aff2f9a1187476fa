/* write.c: making bodies: msgpack-c's packer writes straight into the body, which moves to a larger block when it has to. */
#include <msgpack/pack.h>

#include "internal.h"

enum {
    WRITE_FIRST = 88, /* with a body's head this is one small block of the pools */
    FIXARRAY = 0x90,
    FIXMAP = 0x80,
    HANDLES_FIRST = 4
};

/* An open array or map. Its head grows from 1 to 3 to 5 bytes as elements are added, so its count need not be known before. */
typedef struct level {
    uint32_t head;  /* offset of its first byte */
    uint32_t count; /* values so far; of a map: keys and values */
    bool map;
} level;

struct weir_writer {
    weir_system *system;
    weir_body *body;
    msgpack_packer packer;
    int error;
    unsigned depth; /* open levels */
    level levels[WEIR_MAX_DEPTH];
};

static void fail(weir_writer *w, int code) {
    if (!w->error)
        w->error = code;
}

/* Room for n more bytes; false: an error sticks. */
static bool room(weir_writer *w, size_t n) {
    size_t size = w->body->size;
    if (n <= w->body->room - size)
        return true;
    if (n > WEIR_MAX_BODY - size) {
        fail(w, WEIR_ETOOBIG);
        return false;
    }
    size_t want = 2 * (size_t)w->body->room;
    want = want < size + n ? size + n : want > WEIR_MAX_BODY ? WEIR_MAX_BODY : want;
    if (weir__body_grow(&w->body, want))
        return true;
    fail(w, WEIR_ENOMEM);
    return false;
}

static int append(void *data, const char *p, size_t n) {
    weir_writer *w = data;
    if (!room(w, n))
        return -1;
    memcpy(w->body->data + w->body->size, p, n);
    w->body->size += (uint32_t)n;
    return 0;
}

/* The head of the innermost level becomes `size` bytes long: what stands behind it moves. */
static bool widen(weir_writer *w, const level *l, uint32_t old, uint32_t size) {
    if (!room(w, size - old))
        return false;
    uint8_t *head = w->body->data + l->head;
    memmove(head + size, head + old, w->body->size - l->head - old);
    w->body->size += size - old;
    return true;
}

/* A value is about to be written into the innermost level. */
static bool begin_value(weir_writer *w) {
    if (!w || w->error)
        return false;
    if (!w->depth) {
        fail(w, WEIR_EINVAL);
        return false;
    }
    level *l = &w->levels[w->depth - 1];
    uint32_t unit = l->map ? 2 : 1;
    if (l->count == 15 * unit && !widen(w, l, 1, 3))
        return false;
    if (l->count == 65535 * unit && !widen(w, l, 3, 5))
        return false;
    l->count++;
    return true;
}

static void write_head(weir_writer *w, const level *l) {
    uint8_t *p = w->body->data + l->head;
    uint32_t n = l->map ? l->count / 2 : l->count;
    if (n <= 15) {
        p[0] = (uint8_t)((l->map ? FIXMAP : FIXARRAY) | n);
        return;
    }
    unsigned bytes = n <= 65535 ? 2 : 4;
    p[0] = (uint8_t)((l->map ? 0xde : 0xdc) + (bytes == 4));
    for (unsigned i = 0; i < bytes; i++)
        p[1 + i] = (uint8_t)(n >> (8 * (bytes - 1 - i)));
}

static void open_level(weir_writer *w, bool map) {
    if (w->depth == WEIR_MAX_DEPTH) {
        fail(w, WEIR_EDEPTH);
        return;
    }
    char head = 0;
    w->levels[w->depth++] = (level){w->body->size, 0, map};
    append(w, &head, 1);
}

/* map: what is to be closed; -1: whichever is open. The array of arguments is closed by finish. */
static void close_level(weir_writer *w, int map) {
    if (!w || w->error)
        return;
    const level *l = &w->levels[w->depth - 1];
    if (w->depth < 2 || (map >= 0 && l->map != map) || (l->map && l->count % 2)) {
        fail(w, WEIR_EINVAL);
        return;
    }
    write_head(w, l);
    w->depth--;
}

static bool writer_init(weir_writer *w, weir_system *s) {
    w->system = s;
    w->error = WEIR_OK;
    w->depth = 0;
    w->body = weir__body_new(s, WRITE_FIRST);
    if (!w->body)
        return false;
    msgpack_packer_init(&w->packer, w, append);
    open_level(w, false);
    return true;
}

/* Large bodies give the room back that growing left over. */
static weir_body *trim(weir_body *b) {
    enum { TRIM_LEAST = 4096 };
    if (b->room > TRIM_LEAST && b->room - b->size > b->size / 4)
        weir__body_grow(&b, b->size);
    return b;
}

static bool valid(const weir_body *b) {
    size_t at;
    const char *what;
    return weir__msgpack_check(b->data, b->size, 0, b->n_handles, &at, &what) == WEIR_OK;
}

static weir_body *writer_finish(weir_writer *w) {
    if (!w->error && w->depth != 1)
        fail(w, WEIR_EINVAL);
    if (w->error) {
        weir_body_free(w->body);
        return NULL;
    }
    write_head(w, &w->levels[0]);
    weir_body *b = trim(w->body);
#ifndef NDEBUG
    weir__check(valid(b), "the writer made a body that is not valid msgpack");
#else
    (void)valid;
#endif
    return b;
}

/* ---- the writer ---- */

weir_writer *weir_write_begin(weir_system *s) {
    if (!weir__check(s, "no system"))
        return NULL;
    weir_writer *w = weir__pool_take(s, sizeof *w, NULL);
    if (w && !writer_init(w, s)) {
        weir__pool_give(s, w, sizeof *w);
        return NULL;
    }
    return w;
}

weir_body *weir_write_end(weir_writer *w) {
    if (!w)
        return NULL;
    weir_body *b = writer_finish(w);
    weir__pool_give(w->system, w, sizeof *w);
    return b;
}

void weir_write_abort(weir_writer *w) {
    if (!w)
        return;
    weir_body_free(w->body);
    weir__pool_give(w->system, w, sizeof *w);
}

int weir_write_error(const weir_writer *w) {
    return w ? w->error : WEIR_ENOMEM;
}

void weir_write_nil(weir_writer *w) {
    if (begin_value(w))
        msgpack_pack_nil(&w->packer);
}

void weir_write_bool(weir_writer *w, bool v) {
    if (begin_value(w))
        v ? msgpack_pack_true(&w->packer) : msgpack_pack_false(&w->packer);
}

void weir_write_int(weir_writer *w, int64_t v) {
    if (begin_value(w))
        msgpack_pack_int64(&w->packer, v);
}

void weir_write_uint(weir_writer *w, uint64_t v) {
    if (begin_value(w))
        msgpack_pack_uint64(&w->packer, v);
}

void weir_write_double(weir_writer *w, double v) {
    if (begin_value(w))
        msgpack_pack_double(&w->packer, v);
}

/* Whether a string of n bytes may be written: msgpack-c would wrap its length to 32 bits. */
static bool begin_bytes(weir_writer *w, const void *p, size_t n) {
    if (!begin_value(w))
        return false;
    if (n > WEIR_MAX_BODY)
        fail(w, WEIR_ETOOBIG);
    else if (!p && n)
        fail(w, WEIR_EINVAL);
    else if (room(w, n + 5))
        return true;
    return false;
}

void weir_write_str(weir_writer *w, const char *s, size_t n) {
    if (begin_bytes(w, s, n) && msgpack_pack_str(&w->packer, n) == 0 && n)
        msgpack_pack_str_body(&w->packer, s, n);
}

void weir_write_bin(weir_writer *w, const void *p, size_t n) {
    if (begin_bytes(w, p, n) && msgpack_pack_bin(&w->packer, n) == 0 && n)
        msgpack_pack_bin_body(&w->packer, p, n);
}

void weir_write_array(weir_writer *w) {
    if (begin_value(w))
        open_level(w, false);
}

void weir_write_map(weir_writer *w) {
    if (begin_value(w))
        open_level(w, true);
}

void weir_write_close(weir_writer *w) {
    close_level(w, -1);
}

static bool keep_handle(weir_writer *w, weir_handle h) {
    weir_body *b = w->body;
    if (b->n_handles == b->max_handles) {
        uint32_t max = b->max_handles ? b->max_handles * 2 : HANDLES_FIRST;
        weir_handle *handles = weir__realloc(w->system, b->handles, max * sizeof *handles);
        if (!handles)
            return false;
        b->handles = handles;
        b->max_handles = max;
    }
    b->handles[b->n_handles++] = h;
    return true;
}

void weir_write_handle(weir_writer *w, weir_handle h) {
    if (!begin_value(w)) {
        h.type->unref(h.object);
        return;
    }
    uint32_t i = w->body->n_handles;
    if (!keep_handle(w, h)) {
        fail(w, WEIR_ENOMEM);
        h.type->unref(h.object);
        return;
    }
    uint8_t index[4] = {(uint8_t)(i >> 24), (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i};
    if (msgpack_pack_ext(&w->packer, sizeof index, WEIR__EXT_HANDLE) == 0)
        msgpack_pack_ext_body(&w->packer, index, sizeof index);
}

/* ---- weir_pack ---- */

static void pack_text(weir_writer *w, const char *text) {
    if (text)
        weir_write_str(w, text, strlen(text));
    else
        weir_write_nil(w);
}

static void pack_sized(weir_writer *w, char type, va_list *args) {
    const char *p = va_arg(*args, const char *);
    size_t n = va_arg(*args, size_t);
    if (type == 'S')
        weir_write_str(w, p, n);
    else
        weir_write_bin(w, p, n);
}

/* One letter of the format with its argument; false: no such letter. */
static bool pack_one(weir_writer *w, char type, va_list *args) {
    switch (type) {
    case 'i':
        weir_write_int(w, va_arg(*args, int64_t));
        return true;
    case 'u':
        weir_write_uint(w, va_arg(*args, uint64_t));
        return true;
    case 'd':
        weir_write_double(w, va_arg(*args, double));
        return true;
    case 's':
        pack_text(w, va_arg(*args, const char *));
        return true;
    case 'S':
    case 'b':
        pack_sized(w, type, args);
        return true;
    case 't':
        weir_write_bool(w, va_arg(*args, int) != 0);
        return true;
    case 'n':
        weir_write_nil(w);
        return true;
    case 'h':
        weir_write_handle(w, va_arg(*args, weir_handle));
        return true;
    case '[':
        weir_write_array(w);
        return true;
    case '{':
        weir_write_map(w);
        return true;
    case ']':
    case '}':
        close_level(w, type == '}');
        return true;
    default:
        return false;
    }
}

/* After an error the rest of the format is still walked, because the handles in it were taken; for want of memory even without a writer. */
weir_body *weir_pack(weir_system *s, const char *format, ...) {
    weir_writer writer, *w = &writer;
    if (!weir__check(s && format, "no system or no format"))
        return NULL;
    if (!writer_init(w, s))
        w = NULL;
    va_list args;
    va_start(args, format);
    for (; *format && pack_one(w, *format, &args); format++)
        ;
    va_end(args);
    if (w && *format)
        fail(w, WEIR_EINVAL);
    return w ? writer_finish(w) : NULL;
}
