/* bench.c: runs one benchmark and checks what it came to. Knows none of them. */
#include "bench.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void bench_fail(bench *b, int code, const char *format, ...) {
    int none = 0;
    if (!atomic_compare_exchange_strong(&b->failed, &none, code))
        return;
    va_list ap;
    va_start(ap, format);
    vsnprintf(b->failure, sizeof b->failure, format, ap);
    va_end(ap);
    if (b->system)
        weir_system_quit(b->system);
}

void bench_fini(weir_system *s, void *state) {
    (void)s;
    free(state);
}

static void *spawn(bench *b, const weir_behaviour *kind, size_t size, int loop, weir_address *out) {
    bench **state = calloc(1, size);
    weir_spawn_options o = {.loop = loop};
    int code = WEIR_ENOMEM;
    if (state) {
        *state = b;
        code = weir_spawn(b->system, kind, state, &o, out, NULL);
    }
    if (code == WEIR_OK)
        return state;
    bench_fail(b, code, "spawning %s: %s", kind->name, weir_code_text(code));
    return NULL;
}

void *bench_spawn(bench *b, const weir_behaviour *kind, size_t size, weir_address *out) {
    return spawn(b, kind, size, b->loop, out);
}

void *bench_spawn_here(bench *b, const weir_behaviour *kind, size_t size, weir_address *out) {
    return spawn(b, kind, size, WEIR_LOOP_HERE, out);
}

void bench_send(bench *b, weir_actor *self, weir_address to, weir_verb verb, weir_body *body) {
    int code = weir_send(self, to, verb, body);
    if (code != WEIR_OK)
        bench_fail(b, code, "%s, sending %s: %s", weir_actor_name(self), weir_verb_name(b->system, verb), weir_code_text(code));
}

void bench_int(bench *b, weir_actor *self, weir_address to, weir_verb verb, int64_t value) {
    bench_send(b, self, to, verb, weir_pack(b->system, "i", value));
}

int64_t bench_first(bench *b, const weir_message *m) {
    int64_t v = 0;
    weir_cursor c = weir_read(weir_message_body(m), NULL);
    if (!weir_read_int(&c, &v))
        bench_fail(b, WEIR_ETYPE, "%s came without a number", weir_verb_name(b->system, weir_message_verb(m)));
    return v;
}

const bench_kind *bench_find(const char *name) {
    for (const bench_kind *const *kind = bench_kinds; *kind; kind++)
        if (strcmp((*kind)->name, name) == 0)
            return *kind;
    return NULL;
}

/* What is wrong with the end of a run, if anything is. All threads of the system have ended. */
static int judge(bench *b, const weir_system_stats *stats, bench_result *out) {
    if (!b->failed && stats->sent != stats->handled)
        bench_fail(b, WEIR_EINVAL, "%llu messages sent, %llu handled", (unsigned long long)stats->sent, (unsigned long long)stats->handled);
    if (!b->failed && out->value != out->expected)
        bench_fail(b, WEIR_EINVAL, "%lld, wanted %lld", (long long)out->value, (long long)out->expected);
    memcpy(out->failure, b->failure, sizeof out->failure);
    return b->failed;
}

static void run(bench *b, const bench_kind *kind, bench_result *out) {
    weir_error *e = NULL;
    int64_t start = weir_now(b->system);
    kind->start(b);
    if (!b->failed && weir_system_run(b->system, NULL, NULL, &e) != WEIR_OK)
        bench_fail(b, weir_error_code(e), "%s", weir_error_text(e));
    weir_error_free(e);
    out->ns = weir_now(b->system) - start;
}

int bench_open(bench *b, const bench_options *o) {
    weir_error *e = NULL;
    weir_system_options options = {.driver = o->driver, .seed = o->seed, .workers = o->workers};
    b->loop = o->workers ? WEIR_LOOP_ANY : WEIR_LOOP_HERE;
    int code = weir_system_new(&options, &b->system, &e);
    if (code != WEIR_OK) {
        bench_fail(b, code, "%s", weir_error_text(e));
        weir_error_free(e);
        return code;
    }
    b->main = weir_main_actor(b->system);
#define BENCH_VERB(name) b->name = weir_intern(b->system, #name);
    BENCH_VERBS(BENCH_VERB)
#undef BENCH_VERB
    return WEIR_OK;
}

void bench_close(bench *b) {
    weir_system_free(b->system);
    b->system = NULL;
    free(b->data);
    b->data = NULL;
}

int bench_run(const bench_kind *kind, const bench_options *o, bench_result *out) {
    bench b = {.p = o->few ? kind->few : kind->full};
    weir_system_stats stats = {0};
    *out = (bench_result){.expected = kind->expected(b.p)};
    if (bench_open(&b, o) == WEIR_OK) {
        run(&b, kind, out);
        weir_system_get_stats(b.system, &stats);
    }
    bench_close(&b);
    out->value = b.result;
    out->messages = (int64_t)(stats.sent + stats.calls_ended);
    out->refused = (int64_t)stats.refused;
    return judge(&b, &stats, out);
}
