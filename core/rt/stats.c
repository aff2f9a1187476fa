/* stats.c: what can be counted and looked at of a system: its counters, the trace. */
#include "internal.h"

void weir_set_trace(weir_system *s, weir_trace_fn *fn, void *data) {
    if (fn)
        atomic_store_explicit(&s->trace_data, data, memory_order_relaxed);
    atomic_store_explicit(&s->trace, fn, memory_order_release); /* pairs with the acquire in weir__trace */
}

static void add_loop(const weir__loop *l, weir_system_stats *out) {
    out->sent += weir__get(&l->sent);
    out->handled += weir__get(&l->handled);
    out->dead += weir__get(&l->dead);
    out->dropped += weir__get(&l->dropped);
    out->queued += weir__get(&l->queued) + weir__get(&l->away_sent);
    out->calls += weir__get(&l->calls_made);
    out->calls_ended += weir__get(&l->calls_ended);
    out->late_replies += weir__get(&l->late);
    out->timers += weir__get(&l->timers_live);
}

/* What was posted or sent to another loop and did not arrive yet is queued. The arrivals are read first, so that there are never more of them. */
void weir_system_get_stats(weir_system *s, weir_system_stats *out) {
    uint64_t arrived = 0;
    for (unsigned i = 0; i < s->n_loops; i++)
        arrived += atomic_load_explicit(&s->loops[i]->arrived, memory_order_acquire);
    uint64_t posted = atomic_load(&s->posted), spilled = atomic_load(&s->spilled);
    *out = (weir_system_stats){
        .sent = posted + spilled,
        .dead = spilled,
        .dropped = spilled,
        .queued = posted - arrived,
        .refused = atomic_load(&s->refused),
        .actors = atomic_load(&s->living),
        .spawned = atomic_load(&s->spawned),
        .bytes = atomic_load(&s->bytes),
        .blocks = atomic_load(&s->blocks),
    };
    for (unsigned i = 0; i < s->n_loops; i++)
        add_loop(s->loops[i], out);
}
