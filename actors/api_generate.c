/* api_generate.c: the message of weir_generate from its options, and the tokens of its answers (api.h). */
#include "api.h"

#include <string.h>

static void write_numbers(weir_writer *w, const weir_generate_options *o) {
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"temperature", o->temperature},
                   {"top_p", o->top_p},
                   {"min_p", o->min_p},
                   {"typical", o->typical},
                   {"repeat_penalty", o->repeat_penalty},
                   {"frequency_penalty", o->frequency_penalty},
                   {"presence_penalty", o->presence_penalty}};
    const struct {
        const char *key;
        int64_t value;
    } integers[] = {{"max_tokens", o->max_tokens}, {"top_k", o->top_k}, {"seed", (int64_t)o->seed}, {"penalty_last", o->penalty_last}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].value != 0) {
            weir__write_key(w, numbers[i].key);
            weir_write_double(w, numbers[i].value);
        }
    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
        if (integers[i].value != 0) {
            weir__write_key(w, integers[i].key);
            weir_write_int(w, integers[i].value);
        }
}

static void write_strings(weir_writer *w, const char *key, const char *const *strings, size_t n) {
    if (!strings)
        return;
    weir__write_key(w, key);
    weir_write_array(w);
    for (size_t i = 0; i < n; i++)
        weir__write_key(w, strings[i]);
    weir_write_close(w);
}

static void write_biases(weir_writer *w, const weir_generate_options *o) {
    if (!o->logit_bias)
        return;
    weir__write_key(w, "logit_bias");
    weir_write_array(w);
    for (size_t i = 0; i < o->n_logit_bias; i++) {
        weir_write_array(w);
        weir_write_int(w, o->logit_bias[i].token);
        weir_write_double(w, o->logit_bias[i].addend);
        weir_write_close(w);
    }
    weir_write_close(w);
}

weir_body *weir__generate_body(weir_system *s, const weir_generate_options *o) {
    weir_writer *w = weir_write_begin(s);
    weir_write_map(w);
    if (o->tokens) {
        weir__write_key(w, "tokens");
        weir_write_bin(w, o->tokens, o->n_tokens * 4);
    } else {
        weir__write_key(w, "prompt");
        weir_write_str(w, o->prompt, strlen(o->prompt));
    }
    write_numbers(w, o);
    write_strings(w, "stop", o->stop, o->n_stop);
    write_strings(w, "samplers", o->samplers, o->n_samplers);
    write_biases(w, o);
    if (o->token) {
        weir__write_key(w, "logprobs");
        weir_write_int(w, o->logprobs);
    }
    weir__write_key(w, "ignore_end");
    weir_write_bool(w, o->ignore_end);
    weir_write_close(w);
    return weir_write_end(w);
}

/* id, text (nil without a tokeniser), log-probability */
static bool read_fields(weir_cursor *c, weir_token *t) {
    int64_t id;
    *t = (weir_token){0};
    if (!weir_read_int(c, &id))
        return false;
    t->id = (int32_t)id;
    if (!weir_read_bytes(c, &t->text, &t->size) && !weir_read_skip(c))
        return false;
    return weir_read_double(c, &t->logprob);
}

bool weir__read_token(weir_cursor *c, weir_token *token, weir_token *best, size_t *n_best) {
    uint32_t n, fields;
    *n_best = 0;
    if (!weir_read_array(c, &fields) || fields != 4 || !read_fields(c, token) || !weir_read_array(c, &n) || n > WEIR_MAX_LOGPROBS)
        return false;
    for (; *n_best < n; ++*n_best)
        if (!weir_read_array(c, &fields) || fields != 3 || !read_fields(c, &best[*n_best]))
            return false;
    return true;
}
