/* verbs_fixture.h: a model loaded and asked in messages, with options that weir.h does not have. */
#ifndef VERBS_FIXTURE_H
#define VERBS_FIXTURE_H

#include "../../actors/stepper.h"
#include "pass_fixture.h"

typedef struct members {
    weir_address model, generator, stepper, policy, experts, residency;
} members;

static inline weir_address address_in(const answer *a, const char *key) {
    weir_cursor value;
    int64_t address = 0;
    assert_true(weir_read_find(weir__options(a->body, 0), key, &value) && weir_read_int(&value, &address));
    return (weir_address)address;
}

static inline members members_of(weir_address model, const answer *a) {
    if (a->code)
        fail_msg("%s: %s", weir_code_name(a->code), a->error);
    return (members){model,
                     address_in(a, "generator"),
                     address_in(a, "stepper"),
                     address_in(a, "policy"),
                     address_in(a, "experts"),
                     address_in(a, "residency")};
}

/* restarts: borne within the period; drain: seconds. */
static inline members load_members(weir_system *s, const char *path, int64_t restarts, double drain) {
    weir_address model;
    assert_int_equal(weir__model_spawn(s, &model, NULL), WEIR_OK);
    answer a = ask(s, model, "load", weir_pack(s, "s{sisd}", path, "restarts", restarts, "drain", drain));
    members m = members_of(model, &a);
    weir_body_free(a.body);
    return m;
}

/* As they are when the model is whole. */
static inline members ask_members(weir_system *s, weir_address model) {
    answer a = ask(s, model, "info", NULL);
    members m = members_of(model, &a);
    weir_body_free(a.body);
    return m;
}

static inline weir_body *some_request(weir_system *s, int64_t max_tokens) {
    static const int32_t tokens[] = {1, 20, 30, 40, 50};
    return weir_pack(s, "{sbsist}", "tokens", (const void *)tokens, sizeof tokens, "max_tokens", max_tokens, "ignore_end", 1);
}

/* Reads to the end, or until `max` bytes are there. The code of the error; *ended says whether there is more. */
static inline int read_text(weir_system *s, weir_address generator, uint64_t id, char *text, size_t max, bool *ended) {
    size_t used = strlen(text);
    for (*ended = false; !*ended && used < max;) {
        answer a = ask(s, generator, "next", weir_pack(s, "u", id));
        weir_cursor map = weir__options(a.body, 0), value;
        const char *piece = "";
        size_t size = 0;
        if (a.code)
            return a.code;
        if (weir_read_find(map, "text", &value))
            weir_read_bytes(&value, &piece, &size);
        memcpy(text + used, piece, size);
        text[used += size] = 0;
        weir__option_bool(map, "done", ended, NULL);
        weir_body_free(a.body);
    }
    return WEIR_OK;
}

static inline uint64_t begin_text(weir_system *s, weir_address generator, int64_t max_tokens, int *code) {
    answer a = ask(s, generator, "generate", some_request(s, max_tokens));
    int64_t id = 0;
    weir_cursor c = weir_read(a.body, NULL);
    *code = a.code;
    if (!a.code)
        assert_true(weir_read_int(&c, &id));
    weir_body_free(a.body);
    return (uint64_t)id;
}

static inline int whole_text(weir_system *s, weir_address generator, int64_t max_tokens, char *text) {
    int code;
    bool ended;
    uint64_t id = begin_text(s, generator, max_tokens, &code);
    text[0] = 0;
    return code ? code : read_text(s, generator, id, text, 1 << 20, &ended);
}

/* The stream of a living stepper. */
static inline weir__stream *stepper_stream(weir_system *s, weir_address stepper) {
    weir__stepper *state = weir_state(weir__actor(s, stepper));
    return state->stream;
}

/* A host function that stands still until it is opened. */
typedef struct gate {
    _Atomic bool entered, open, released;
} gate;
static inline int gate_stand(void *data) {
    gate *g = data;
    for (g->entered = true; !g->open;)
        usleep(100);
    return WEIR_OK;
}
static inline void gate_release(void *data) {
    ((gate *)data)->released = true;
}
static inline void gate_close(gate *g, weir__stream *st) {
    assert_int_equal(weir__stream_host(st, gate_stand, gate_release, g), WEIR_OK);
    while (!g->entered)
        usleep(100);
}

/* Streams of a name in a state. */
typedef struct counted {
    const char *name;
    int state, count;
} counted;
static inline void count_stream(void *data, const weir__stream_info *info) {
    counted *c = data;
    c->count += strcmp(info->name, c->name) == 0 && info->state == c->state;
}
static inline int streams_in(weir_system *s, const char *name, int state) {
    counted c = {name, state, 0};
    weir__streams(s, count_stream, &c);
    return c.count;
}

#endif
