/* pass_fixture.h: passes asked of a stepper in the name of the main actor, and their logits. */
#ifndef PASS_FIXTURE_H
#define PASS_FIXTURE_H

#include "model_fixture.h"

typedef struct answer {
    bool ended;
    int code;
    char error[512];
    weir_body *body; /* of the reply */
} answer;

static inline void on_answer(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    answer *a = data;
    (void)self;
    a->ended = true;
    a->code = weir_error_code(error);
    if (error)
        snprintf(a->error, sizeof a->error, "%s", weir_error_text(error));
    if (reply && weir_message_body(reply))
        a->body = weir_body_ref(weir_message_body(reply));
}
static inline bool answer_ended(void *data) {
    return ((answer *)data)->ended;
}

/* Calls and waits. */
static inline answer ask(weir_system *s, weir_address to, const char *verb, weir_body *body) {
    answer a = {0};
    assert_int_equal(weir_call(weir_main_actor(s), to, weir_intern(s, verb), body, -1, on_answer, &a, NULL), WEIR_OK);
    assert_int_equal(weir_system_run(s, answer_ended, &a, NULL), WEIR_OK);
    return a;
}

static inline uint64_t open_sequence(weir_system *s, weir_address stepper) {
    answer a = ask(s, stepper, "open", NULL);
    int64_t id = 0;
    weir_cursor c = weir_read(a.body, NULL);
    if (a.code)
        fail_msg("open: %s", a.error);
    assert_true(weir_read_int(&c, &id));
    weir_body_free(a.body);
    return (uint64_t)id;
}

static inline void close_sequence(weir_system *s, weir_address stepper, uint64_t id) {
    weir_body_free(ask(s, stepper, "close", weir_pack(s, "u", id)).body);
}

typedef struct run {
    uint64_t sequence;
    int64_t first;
    const int32_t *tokens;
    size_t count;
    const char *logits; /* "none", "last", "all" */
} run;

static inline weir_body *pass_body(weir_system *s, const run *runs, size_t n) {
    weir_writer *w = weir_write_begin(s);
    weir_write_map(w);
    weir_write_str(w, "return_logits", 13);
    weir_write_bool(w, true);
    weir_write_str(w, "runs", 4);
    weir_write_array(w);
    for (size_t i = 0; i < n; i++) {
        weir_write_array(w);
        weir_write_uint(w, runs[i].sequence);
        weir_write_int(w, runs[i].first);
        weir_write_bin(w, runs[i].tokens, runs[i].count * 4);
        weir_write_map(w);
        weir_write_str(w, "logits", 6);
        weir_write_str(w, runs[i].logits, strlen(runs[i].logits));
        weir_write_close(w);
        weir_write_close(w);
    }
    weir_write_close(w);
    weir_write_close(w);
    return weir_write_end(w);
}

static inline answer ask_pass(weir_system *s, weir_address stepper, const run *runs, size_t n) {
    return ask(s, stepper, "pass", pass_body(s, runs, n));
}

/* The logits of a reply; counted by the body. */
static inline const float *logits_of(const answer *a, size_t *bytes) {
    weir_cursor value;
    void *buffer;
    if (a->code)
        fail_msg("pass: %s", a->error);
    assert_true(weir_read_find(weir__options(a->body, 0), "logits", &value));
    assert_true(weir_read_handle(&value, "buffer", &buffer));
    *bytes = weir__buffer_size(buffer);
    return weir__buffer_host(buffer);
}

#endif
