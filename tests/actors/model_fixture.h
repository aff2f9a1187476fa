/* model_fixture.h: a system with the small llama of tests/data, and a generation whose text and end are kept. */
#ifndef MODEL_FIXTURE_H
#define MODEL_FIXTURE_H

#include "../../actors/actors.h"
#include "../test.h"

#define LLAMA WEIR_TEST_DATA "/families/llama/model.gguf"

typedef struct generation {
    char text[4096];
    size_t size;
    unsigned pieces;
    bool ended;
    weir_finish finish;
    char reason[16];
    int code; /* of the error, 0: none */
    char error[512];
    void (*on_piece)(struct generation *g);
    void *data;
} generation;

static inline void generation_piece(void *data, const char *piece, size_t size) {
    generation *g = data;
    assert_true(g->size + size < sizeof g->text);
    memcpy(g->text + g->size, piece, size);
    g->size += size;
    g->pieces++;
    if (g->on_piece)
        g->on_piece(g);
}

static inline void generation_done(void *data, const weir_finish *finish, const weir_error *error) {
    generation *g = data;
    assert_false(g->ended);
    g->ended = true;
    if (finish) {
        g->finish = *finish;
        snprintf(g->reason, sizeof g->reason, "%s", finish->reason);
    }
    g->code = weir_error_code(error);
    if (error)
        snprintf(g->error, sizeof g->error, "%s", weir_error_text(error));
}

static inline bool generation_ended(void *data) {
    return ((generation *)data)->ended;
}

static inline weir_system *new_system(enum weir_driver driver, uint64_t seed) {
    weir_system_options o = {.driver = driver, .seed = seed};
    weir_system *s = NULL;
    assert_int_equal(weir_system_new(&o, &s, NULL), WEIR_OK);
    return s;
}

/* Prints an error before it fails the test. */
#define must(call, error)                                                                                                                  \
    do {                                                                                                                                   \
        int code_ = (call);                                                                                                                \
        if (code_)                                                                                                                         \
            fail_msg("%s: %s", weir_code_name(code_), error ? weir_error_text(error) : "");                                                \
    } while (0)

static inline weir_model *load(weir_system *s, const weir_load_options *o) {
    weir_model *m = NULL;
    weir_error *error = NULL;
    must(weir_model_load(s, LLAMA, o, &m, &error), error);
    return m;
}

/* Runs a generation to its end; one that cannot begin has ended with that error. */
static inline void generate(weir_system *s, weir_model *m, const weir_generate_options *o, generation *g) {
    weir_error *error = NULL;
    g->code = weir_generate(m, o, generation_piece, generation_done, g, NULL, &error);
    if (g->code) {
        weir_error_free(error);
        return;
    }
    assert_int_equal(weir_system_run(s, generation_ended, g, &error), WEIR_OK);
}

/* The address of a model's actor by its name, 0: none. */
typedef struct named {
    const char *name;
    weir_address address;
} named;
static inline void match_name(void *data, weir_address a, const weir_actor_stats *stats) {
    named *n = data;
    if (strcmp(stats->name, n->name) == 0)
        n->address = a;
}
static inline weir_address actor_named(weir_system *s, const char *name) {
    named n = {name, 0};
    weir_actors(s, match_name, &n);
    return n.address;
}

#endif
