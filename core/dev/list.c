/* list.c: recorded device work: kernels bound to entry points, with copies of their arguments, and the buffers they touch. Knows neither how a list is
 * run nor what its kernels do. */
#include "private.h"

#include <stdio.h>
#include <string.h>

int weir__list_new(weir__device *d, const char *name, weir__list **out, weir_error **error) {
    weir__list *l = weir__alloc(d->system, sizeof *l);
    if (!l)
        return weir_fail(error, WEIR_ENOMEM, "list %s: no memory", name);
    l->device = d;
    atomic_init(&l->refs, 1);
    snprintf(l->name, sizeof l->name, "%s", name);
    *out = l;
    return WEIR_OK;
}

weir__list *weir__list_ref(weir__list *l) {
    atomic_fetch_add_explicit(&l->refs, 1, memory_order_relaxed);
    return l;
}

void weir__list_unref(weir__list *l) {
    /* acq_rel: every owner's last use comes before the decrement that frees */
    if (!l || atomic_fetch_sub_explicit(&l->refs, 1, memory_order_acq_rel) != 1)
        return;
    weir_system *s = l->device->system;
    const weir__device_table *table = l->device->table;
    if (table->list_free)
        table->list_free(l);
    for (size_t i = 0; i < l->length && table->entry_unref; i++)
        table->entry_unref(l->items[i].entry);
    for (size_t i = 0; i < l->buffer_count; i++)
        weir__buffer_unref(l->buffers[i]);
    weir__free(s, l->buffers);
    weir__free(s, l->items);
    weir__free(s, l->chunks_memory);
    weir__free(s, l);
}

size_t weir__list_length(const weir__list *l) {
    return l->length;
}

/* The acquire pairs with the release in weir__item_done: a list that is not queued any more is not read any more either. */
static bool is_queued(const weir__list *l) {
    return atomic_load_explicit(&l->queued, memory_order_acquire) != 0;
}

static bool reserve_chunks(weir__list *l, size_t capacity) {
    weir_system *s = l->device->system;
    void *memory = weir__alloc(s, capacity * sizeof *l->chunks + WEIR__CACHE_LINE);
    if (!memory)
        return false;
    uintptr_t aligned = ((uintptr_t)memory + WEIR__CACHE_LINE - 1) & ~(uintptr_t)(WEIR__CACHE_LINE - 1);
    weir__free(s, l->chunks_memory);
    l->chunks_memory = memory;
    l->chunks = (weir__chunks *)aligned;
    return true;
}

/* Makes room for `more` items; on failure the list is as it was. */
static bool reserve_items(weir__list *l, size_t more) {
    if (l->length + more <= l->capacity)
        return true;
    size_t capacity = l->capacity ? 2 * l->capacity : 16;
    if (capacity < l->length + more)
        capacity = l->length + more;
    weir__list_item *items = weir__realloc(l->device->system, l->items, capacity * sizeof *items);
    if (!items)
        return false;
    l->items = items;
    if (!reserve_chunks(l, capacity))
        return false;
    l->capacity = capacity;
    return true;
}

static bool reserve_buffers(weir__list *l, size_t more) {
    if (l->buffer_count + more <= l->buffer_capacity)
        return true;
    size_t capacity = l->buffer_count + more + l->buffer_capacity;
    weir__buffer **buffers = weir__realloc(l->device->system, l->buffers, capacity * sizeof(weir__buffer *));
    if (!buffers)
        return false;
    l->buffers = buffers;
    l->buffer_capacity = capacity;
    return true;
}

int weir__list_add(weir__list *l, enum weir_kernel kernel, const void *args, bool joined, weir_error **error) {
    weir__device *d = l->device;
    if (is_queued(l))
        return weir_fail(error, WEIR_EBUSY, "list %s: queued, cannot be changed", l->name);
    if ((unsigned)kernel >= WEIR_KERNEL_COUNT)
        return weir_fail(error, WEIR_EINVAL, "list %s: kernel %d: there are %d", l->name, (int)kernel, WEIR_KERNEL_COUNT);
    weir__entry *entry = NULL;
    const char *why = d->table->bind(d, kernel, args, &entry);
    if (why)
        return weir_fail(error, WEIR_EUNSUPPORTED, "device %s: list %s, item %zu, kernel %s: %s", d->name, l->name, l->length,
                         weir_kernel_name(kernel), why);
    if (!reserve_items(l, 1)) {
        if (d->table->entry_unref)
            d->table->entry_unref(entry);
        return weir_fail(error, WEIR_ENOMEM, "list %s: no memory for %zu items", l->name, l->length + 1);
    }
    weir__list_item *item = &l->items[l->length++];
    memset(item, 0, sizeof *item);
    item->entry = entry;
    item->joined = joined;
    memcpy(item->args, args, weir_kernel_args_size(kernel));
    return WEIR_OK;
}

int weir__list_append(weir__list *l, const weir__list *other, weir_error **error) {
    if (other->device != l->device)
        return weir_fail(error, WEIR_EINVAL, "list %s: list %s is of another device", l->name, other->name);
    if (is_queued(l))
        return weir_fail(error, WEIR_EBUSY, "list %s: queued, cannot be changed", l->name);
    size_t items = other->length, buffers = other->buffer_count;
    if (!reserve_items(l, items) || !reserve_buffers(l, buffers))
        return weir_fail(error, WEIR_ENOMEM, "list %s: no memory for %zu items", l->name, l->length + items);
    if (items)
        memcpy(l->items + l->length, other->items, items * sizeof *l->items);
    for (size_t i = 0; i < items && l->device->table->entry_ref; i++)
        l->device->table->entry_ref(other->items[i].entry);
    l->length += items;
    for (size_t i = 0; i < buffers; i++)
        l->buffers[l->buffer_count++] = weir__buffer_ref(other->buffers[i]);
    return WEIR_OK;
}

int weir__list_own(weir__list *l, weir__buffer *b) {
    if (is_queued(l))
        return WEIR_EBUSY;
    if (!reserve_buffers(l, 1))
        return WEIR_ENOMEM;
    l->buffers[l->buffer_count++] = weir__buffer_ref(b);
    return WEIR_OK;
}
