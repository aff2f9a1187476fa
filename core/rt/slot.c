/* slot.c: what any thread may read of an actor while it may end: its name and counters, kept in its place in the table. */
#include "internal.h"

/* Everything is read whole and in order (acquire), and the id once more at the end: what was read while the place got its next actor is refused. */
void weir__slot_name(weir__slot *slot, const char *name) {
    char text[WEIR_MAX_NAME] = "";
    uint64_t word;
    strncpy(text, name ? name : "actor", sizeof text - 1);
    for (size_t i = 0; i < sizeof text / sizeof word; i++) {
        memcpy(&word, text + i * sizeof word, sizeof word);
        atomic_store_explicit(&slot->name[i], word, memory_order_relaxed);
    }
}

static void read_name(const weir__slot *slot, char *name) {
    for (size_t i = 0; i < WEIR_MAX_NAME / sizeof(uint64_t); i++) {
        uint64_t word = atomic_load_explicit(&slot->name[i], memory_order_acquire);
        memcpy(name + i * sizeof word, &word, sizeof word);
    }
}

bool weir__slot_text(const weir_system *s, weir_address a, char *name) {
    const weir__slot *slot = weir__ids_find(&s->actors, a);
    if (!slot)
        return false;
    read_name(slot, name);
    return weir__slot_still(slot, a);
}

static uint64_t get(const weir__counter *c) {
    return atomic_load_explicit(c, memory_order_acquire);
}

static void fill(const weir__slot *slot, weir_actor_stats *out) {
    *out = (weir_actor_stats){
        .handled = get(&slot->handled),
        .sent = get(&slot->sent),
        .refused = get(&slot->refused),
        .dead = get(&slot->lost),
        .queued_peak = get(&slot->peak),
        .calls_open = get(&slot->calls_open),
        .busy = (int64_t)get(&slot->busy),
        .loop = atomic_load_explicit(&slot->loop, memory_order_relaxed)->index,
    };
    weir__slot_load(slot, &out->queued, &out->queued_bytes);
    read_name(slot, out->name);
}

int weir_actor_get_stats(weir_system *s, weir_address a, weir_actor_stats *out) {
    const weir__slot *slot = weir__ids_find(&s->actors, a);
    if (!slot)
        return WEIR_ENOACTOR;
    fill(slot, out);
    return weir__slot_still(slot, a) ? WEIR_OK : WEIR_ENOACTOR;
}

void weir_actors(weir_system *s, void (*fn)(void *data, weir_address a, const weir_actor_stats *stats), void *data) {
    uint32_t count = atomic_load_explicit(&s->actors.count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        weir_actor_stats stats;
        weir_address a = weir__ids_living(&s->actors, i);
        if (a && weir_actor_get_stats(s, a, &stats) == WEIR_OK)
            fn(data, a, &stats);
    }
}

unsigned weir_loop_of(weir_system *s, weir_address a) {
    const weir__slot *slot = weir__ids_find(&s->actors, a);
    return slot ? atomic_load_explicit(&slot->loop, memory_order_relaxed)->index : 0;
}
