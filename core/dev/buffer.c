/* buffer.c: device memory that is counted. Knows no work: who submits work counts the buffers it touches. */
#include "private.h"

#include <stdint.h>

int weir__buffer_new(weir__device *d, size_t bytes, const char *what, weir__buffer **out, weir_error **error) {
    weir_system *s = d->system;
    size_t allocated = bytes ? bytes : 1;
    if (bytes > SIZE_MAX / 2)
        return weir_fail(error, WEIR_ENOMEM, "device %s: no memory for %s: %zu bytes", d->table->name, what, bytes);
    weir__buffer *b = weir__alloc(s, sizeof *b);
    if (!b)
        return weir_fail(error, WEIR_ENOMEM, "device %s: no memory for %s", d->table->name, what);
    b->pointer = d->table->memory(d, allocated);
    if (!b->pointer) {
        weir__free(s, b);
        return weir_fail(error, WEIR_ENOMEM, "device %s: no memory for %s: %zu bytes", d->table->name, what, bytes);
    }
    b->device = d;
    b->size = bytes;
    b->allocated = allocated;
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
    b->device->table->memory_free(b->device, b->pointer, b->allocated);
    weir__free(b->device->system, b);
}

size_t weir__buffer_size(const weir__buffer *b) {
    return b->size;
}
void *weir__buffer_pointer(weir__buffer *b) {
    return b->pointer;
}

static void handle_ref(void *b) {
    weir__buffer_ref(b);
}
static void handle_unref(void *b) {
    weir__buffer_unref(b);
}
const weir_handle_type weir__buffer_handle = {"buffer", handle_ref, handle_unref};
