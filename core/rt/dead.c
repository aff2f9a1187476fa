/* dead.c: dead letters: counted, traced, and the last of them kept to be read. */
#include "internal.h"

void weir__dead_init(weir_system *s) {
    pthread_mutex_init(&s->graveyard.lock, NULL);
}

void weir__dead_fini(weir_system *s) {
    for (size_t i = 0; i < WEIR_DEAD_LETTERS; i++)
        weir_body_free(s->graveyard.graves[i].body);
    pthread_mutex_destroy(&s->graveyard.lock);
}

/* What a body with handles holds may be large, and somebody waits for its end. */
static weir_body *keep(weir_body *b) {
    return b && !b->n_handles && b->size <= WEIR_DEAD_LETTER_BYTES ? weir_body_ref(b) : NULL;
}

void weir__bury(weir_system *s, const weir_message *m, int why) {
    weir__graveyard *y = &s->graveyard;
    weir_body *body = keep(m->body);
    weir__trace(s, WEIR_TRACE_DEAD, m->from, m->to, m->verb, weir__body_size(m->body), why);
    pthread_mutex_lock(&y->lock);
    weir__grave *g = &y->graves[y->count++ % WEIR_DEAD_LETTERS];
    weir_body *old = g->body;
    *g = (weir__grave){weir_now(s), m->from, m->to, m->verb, why, weir__body_size(m->body), body};
    pthread_mutex_unlock(&y->lock);
    weir_body_free(old);
}

void weir__dead_letter(weir__loop *l, const weir_message *m, int why) {
    weir__add(&l->dead, 1);
    weir__bury(l->system, m, why);
}

void weir_dead_letters(weir_system *s, void (*fn)(void *data, const weir_dead_letter *letter), void *data) {
    weir__graveyard *y = &s->graveyard;
    pthread_mutex_lock(&y->lock);
    uint64_t first = y->count > WEIR_DEAD_LETTERS ? y->count - WEIR_DEAD_LETTERS : 0;
    for (uint64_t i = first; i < y->count; i++) {
        const weir__grave *g = &y->graves[i % WEIR_DEAD_LETTERS];
        weir_dead_letter letter = {g->at, g->from, g->to, weir_verb_name(s, g->verb), g->why, g->bytes, g->body};
        fn(data, &letter);
    }
    pthread_mutex_unlock(&y->lock);
}
