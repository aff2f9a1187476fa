/* ledger.c: lines by sender, receiver and kind in one table; the trace that finds dead letters; the final comparison. */
#include "ledger.h"

#include <inttypes.h>

enum { FIRST_ROOM = 1024 };

static const char *const verbs[LEDGER_KINDS] = {"mail", "ask"};

/* splitmix64's finaliser. */
uint64_t ledger_mix(uint64_t z) {
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void ledger_init(ledger *g, bool hashing) {
    memset(g, 0, sizeof *g);
    pthread_mutex_init(&g->lock, NULL);
    g->room = FIRST_ROOM;
    g->buckets = calloc(g->room, sizeof *g->buckets);
    assert_non_null(g->buckets);
    g->hashing = hashing;
}

void ledger_fini(ledger *g) {
    for (size_t i = 0; i < g->room; i++)
        for (ledger_line *l = g->buckets[i], *next; l; l = next) {
            next = l->next;
            free(l);
        }
    free(g->buckets);
    pthread_mutex_destroy(&g->lock);
}

static size_t bucket(size_t room, weir_address from, weir_address to, enum ledger_kind kind) {
    return ledger_mix(ledger_mix(from) + to * LEDGER_KINDS + kind) & (room - 1);
}

static void grow(ledger *g) {
    size_t room = g->room * 2;
    ledger_line **wider = calloc(room, sizeof *wider);
    assert_non_null(wider);
    for (size_t i = 0; i < g->room; i++)
        for (ledger_line *l = g->buckets[i], *next; l; l = next) {
            next = l->next;
            size_t at = bucket(room, l->from, l->to, l->kind);
            l->next = wider[at];
            wider[at] = l;
        }
    free(g->buckets);
    g->buckets = wider;
    g->room = room;
}

static ledger_line *find_locked(ledger *g, weir_address from, weir_address to, enum ledger_kind kind) {
    ledger_line *l = g->buckets[bucket(g->room, from, to, kind)];
    while (l && (l->from != from || l->to != to || l->kind != kind))
        l = l->next;
    if (l)
        return l;
    if (g->count++ == g->room)
        grow(g);
    l = calloc(1, sizeof *l);
    assert_non_null(l);
    size_t at = bucket(g->room, from, to, kind);
    l->from = from;
    l->to = to;
    l->kind = kind;
    l->next = g->buckets[at];
    return g->buckets[at] = l;
}

ledger_line *ledger_find(ledger *g, weir_address from, weir_address to, enum ledger_kind kind) {
    pthread_mutex_lock(&g->lock);
    ledger_line *l = find_locked(g, from, to, kind);
    pthread_mutex_unlock(&g->lock);
    return l;
}

void ledger_add(ledger_flow *f, uint64_t number, size_t bytes) {
    f->count++;
    f->bytes += bytes;
    f->mix += ledger_mix(number);
}

void ledger_violation(ledger *g, const char *format, ...) {
    va_list args;
    pthread_mutex_lock(&g->lock);
    if (!g->violation[0]) {
        size_t n = (size_t)snprintf(g->violation, sizeof g->violation, "event %" PRIu64 ": ", g->events);
        va_start(args, format);
        vsnprintf(g->violation + n, sizeof g->violation - n, format, args);
        va_end(args);
    }
    pthread_mutex_unlock(&g->lock);
}

static enum ledger_kind kind_of(const char *verb) {
    enum ledger_kind k = LEDGER_MAIL;
    while (k < LEDGER_KINDS && strcmp(verbs[k], verb) != 0)
        k++;
    return k;
}

static void hash(ledger *g, uint64_t word) {
    g->hash = ledger_mix(g->hash + word + UINT64_C(0x9e3779b97f4a7c15));
}

void ledger_trace(void *data, enum weir_trace kind, weir_address from, weir_address to, const char *verb, size_t bytes, int why) {
    ledger *g = data;
    if (g->hashing) {
        g->events++;
        hash(g, from);
        hash(g, to);
        hash(g, (uint64_t)kind << 56 | (uint64_t)why << 48 | (uint64_t)(unsigned char)verb[0] << 40 | bytes);
    }
    if (kind != WEIR_TRACE_DEAD)
        return;
    enum ledger_kind k = kind_of(verb);
    pthread_mutex_lock(&g->lock);
    g->dead++;
    if (k < LEDGER_KINDS) {
        ledger_line *l = find_locked(g, from, to, k);
        l->dead.count++;
        l->dead.bytes += bytes;
    }
    pthread_mutex_unlock(&g->lock);
}

typedef struct reading {
    ledger *books;
    uint64_t at; /* number of the next letter */
} reading;

static void read_letter(void *data, const weir_dead_letter *letter) {
    reading *r = data;
    ledger *g = r->books;
    enum ledger_kind kind = kind_of(letter->verb);
    int64_t number;
    weir_cursor c = weir_read(letter->body, NULL);
    if (r->at++ < g->seen || kind == LEDGER_KINDS || !weir_read_int(&c, &number))
        return;
    ledger_line *l = find_locked(g, letter->from, letter->to, kind);
    l->dead.mix += ledger_mix((uint64_t)number);
    l->read++;
    g->read++;
}

void ledger_read(ledger *g, weir_system *s, bool all) {
    if (g->dead - g->seen < (all ? 1 : WEIR_DEAD_LETTERS / 4))
        return;
    reading r = {g, g->dead > WEIR_DEAD_LETTERS ? g->dead - WEIR_DEAD_LETTERS : 0};
    weir_dead_letters(s, read_letter, &r);
    g->seen = g->dead;
}

static void total(ledger_flow *sum, const ledger_flow *f) {
    sum->count += f->count;
    sum->bytes += f->bytes;
}

/* Mail balances exactly; of calls no more arrive than were made. */
static void close_line(ledger *g, const ledger_line *l) {
    uint64_t ends = l->handled.count + l->dead.count, bytes = l->handled.bytes + l->dead.bytes;
    bool exact = l->kind == LEDGER_MAIL;
    if (exact ? ends != l->accepted.count || bytes != l->accepted.bytes : ends > l->accepted.count || bytes > l->accepted.bytes)
        ledger_violation(g,
                         "%s %" PRIu64 " -> %" PRIu64 ": accepted %" PRIu64 " (%" PRIu64 " bytes), handled %" PRIu64 " (%" PRIu64
                         "), dead %" PRIu64 " (%" PRIu64 ")",
                         verbs[l->kind], l->from, l->to, l->accepted.count, l->accepted.bytes, l->handled.count, l->handled.bytes,
                         l->dead.count, l->dead.bytes);
    else if (exact && l->read == l->dead.count && l->handled.mix + l->dead.mix != l->accepted.mix)
        ledger_violation(g, "%" PRIu64 " -> %" PRIu64 ": one message was handled or died for another", l->from, l->to);
}

void ledger_close(ledger *g, ledger_flow *mail, ledger_flow *ask) {
    for (size_t i = 0; i < g->room; i++)
        for (const ledger_line *l = g->buckets[i]; l; l = l->next) {
            close_line(g, l);
            total(l->kind == LEDGER_MAIL ? mail : ask, &l->accepted);
        }
}
