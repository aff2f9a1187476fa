/* buffer.c: device memory that is counted. Knows no work: who submits work counts the buffers it touches. */
#include "private.h"

#include <stdint.h>

static int buffer_new(weir__device *d, size_t bytes, bool host, const char *what, weir__buffer **out, weir_error **error) {
    weir_system *s = d->system;
    size_t allocated = bytes ? bytes : 1;
    if (bytes > SIZE_MAX / 2)
        return weir_fail(error, WEIR_ENOMEM, "device %s: no memory for %s: %zu bytes", d->name, what, bytes);
    weir__buffer *b = weir__alloc(s, sizeof *b);
    if (!b)
        return weir_fail(error, WEIR_ENOMEM, "device %s: no memory for %s", d->name, what);
    b->pointer = d->table->memory(d, allocated, host);
    if (!b->pointer) {
        weir__free(s, b);
        if (weir__device_lost(d))
            return weir_fail(error, WEIR_EDEVICE, "device %s is lost (%s): no memory for %s", d->name, weir__device_lost(d), what);
        return weir_fail(error, WEIR_ENOMEM, "device %s: no memory for %s: %zu bytes", d->name, what, bytes);
    }
    b->device = d;
    b->size = bytes;
    b->allocated = allocated;
    b->host = host;
    atomic_init(&b->refs, 1);
    *out = b;
    return WEIR_OK;
}

int weir__buffer_new(weir__device *d, size_t bytes, const char *what, weir__buffer **out, weir_error **error) {
    return buffer_new(d, bytes, false, what, out, error);
}

int weir__buffer_new_host(weir__device *d, size_t bytes, const char *what, weir__buffer **out, weir_error **error) {
    return buffer_new(d, bytes, true, what, out, error);
}

int weir__buffer_new_nowhere(weir__device *d, weir__buffer **out, weir_error **error) {
    enum { SOMEWHERE = 1 << 16 }; /* aligned as memory is, and not NULL, which arguments have a meaning for */
    weir__buffer *b = weir__alloc(d->system, sizeof *b);
    if (!b)
        return weir_fail(error, WEIR_ENOMEM, "device %s: no memory", d->name);
    b->device = d;
    b->pointer = (void *)(uintptr_t)SOMEWHERE;
    atomic_init(&b->refs, 1);
    *out = b;
    return WEIR_OK;
}

weir__buffer *weir__buffer_ref(weir__buffer *b) {
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void weir__buffer_unref(weir__buffer *b) {
    /* acq_rel: every owner's last use comes before the decrement that frees */
    if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (b->allocated)
        b->device->table->memory_free(b->device, b->pointer, b->allocated, b->host);
    weir__free(b->device->system, b);
}

size_t weir__buffer_size(const weir__buffer *b) {
    return b->size;
}
void *weir__buffer_pointer(weir__buffer *b) {
    return b->pointer;
}
void *weir__buffer_host(weir__buffer *b) {
    return b->host || b->device->table->shares_memory ? b->pointer : NULL;
}

/* ---- mirrors ---- */

int weir__mirror_new(weir__device *d, size_t bytes, const char *what, weir__mirror *m, weir_error **error) {
    *m = (weir__mirror){0};
    int code = weir__buffer_new(d, bytes, what, &m->device, error);
    if (code)
        return code;
    if (d->table->shares_memory) {
        m->host = weir__buffer_ref(m->device);
        return WEIR_OK;
    }
    code = weir__buffer_new_host(d, bytes, what, &m->host, error);
    if (code)
        weir__mirror_free(m);
    return code;
}

void weir__mirror_free(weir__mirror *m) {
    weir__buffer_unref(m->device);
    weir__buffer_unref(m->host);
    *m = (weir__mirror){0};
}

int weir__mirror_push(weir__stream *st, const weir__mirror *m, size_t offset, size_t bytes) {
    return m->device == m->host || !bytes ? WEIR_OK : weir__stream_copy(st, m->device, offset, m->host, offset, bytes);
}

int weir__mirror_pull(weir__stream *st, const weir__mirror *m, size_t offset, size_t bytes) {
    return m->device == m->host || !bytes ? WEIR_OK : weir__stream_copy(st, m->host, offset, m->device, offset, bytes);
}

static void handle_ref(void *b) {
    weir__buffer_ref(b);
}
static void handle_unref(void *b) {
    weir__buffer_unref(b);
}
const weir_handle_type weir__buffer_handle = {"buffer", handle_ref, handle_unref};
