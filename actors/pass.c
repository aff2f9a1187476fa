/* pass.c: a pass between messages and the step block: reads the runs asked for, reserves their positions, answers with tokens and buffers (stepper.h). */
#include "sampling.h"
#include "stepper.h"

#include <string.h>

/* ---- reading ---- */

/* `sample` of a run's options: a map, or absent. */
static weir_cursor sample_of(weir_cursor options) {
    weir_cursor value;
    return weir_read_find(options, "sample", &value) ? value : weir_read(NULL, NULL);
}

/* 0: no row, 1: the last, 2: all; -1: malformed */
static int read_want(weir_cursor options, weir_error **error) {
    const char *text = "last";
    size_t size = 4;
    if (!weir__option_bytes(options, "logits", &text, &size, error))
        return -1;
    static const char *const names[] = {"none", "last", "all"};
    for (int i = 0; i < 3; i++)
        if (strlen(names[i]) == size && memcmp(names[i], text, size) == 0)
            return i;
    weir_fail(error, WEIR_EINVAL, "option \"logits\" is \"%.*s\", wanted none, last or all", (int)(size < 32 ? size : 32), text);
    return -1;
}

/* Head of one run: [sequence, first position, tokens, {options}]. Leaves the cursor behind it. */
static bool read_run(weir_cursor *c, uint64_t *sequence, int64_t *first, weir_cursor *tokens, weir_cursor *options) {
    weir_cursor at = *c;
    uint32_t n;
    int64_t id;
    if (!weir_read_array(&at, &n) || n < 3 || n > 4 || !weir_read_int(&at, &id) || !weir_read_int(&at, first) || id <= 0 || *first < 0 ||
        *first > INT32_MAX)
        return false;
    *sequence = (uint64_t)id;
    *tokens = at;
    weir_read_skip(&at);
    *options = n == 4 ? at : weir_read(NULL, NULL);
    return weir_read_skip(c);
}

int weir__pass_new(weir__stepper *s, const weir_body *body, weir__pass **out, weir_error **error) {
    weir_cursor options = weir__options(body, 0), runs;
    uint32_t n = 0;
    int64_t tag = 0;
    bool hidden = false, logits = false;
    if (!weir__option_bool(options, "hidden", &hidden, error) || !weir__option_bool(options, "return_logits", &logits, error) ||
        !weir__option_int(options, "tag", INT64_MIN, INT64_MAX, &tag, error))
        return WEIR_EINVAL;
    if (!weir_read_find(options, "runs", &runs) || !weir_read_array(&runs, &n) || n == 0 || n > WEIR_MAX_SEQUENCES)
        return weir_fail(error, WEIR_EINVAL, "pass: wanted 1 to %d runs", WEIR_MAX_SEQUENCES);
    weir__pass *p = weir__alloc(s->system, sizeof *p);
    if (p)
        p->runs = weir__alloc(s->system, sizeof *p->runs * n);
    if (!p || !p->runs) {
        weir__free(s->system, p);
        return weir_fail(error, WEIR_ENOMEM, "pass: no memory");
    }
    p->id = ++s->passes;
    p->n_runs = n;
    p->tag = tag;
    p->hidden = hidden;
    p->return_logits = logits;
    p->lease = -1;
    p->body = weir_body_ref((weir_body *)body);
    *out = p;
    return WEIR_OK;
}

void weir__pass_free(weir__stepper *s, weir__pass *p) {
    for (uint32_t i = 0; i < p->n_runs; i++)
        weir_error_free(p->runs[i].error);
    weir_error_free(p->error);
    weir_body_free(p->body);
    weir__buffer_unref(p->hidden_out);
    weir__buffer_unref(p->logits_out);
    weir__free(s->system, p->runs);
    weir__free(s->system, p);
}

/* ---- filling the step block ---- */

static int fill_run(weir__stepper *s, weir__run *r, weir_cursor tokens, weir_cursor options, weir_error **error) {
    weir__ids ids = {0};
    weir_sample sample;
    int want = read_want(options, error);
    if (want < 0 || !weir__sampling_read(sample_of(options), &sample, error))
        return WEIR_EINVAL;
    int able = weir__device_check_sample(s->device, &sample, error);
    if (able)
        return able;
    if (sample.logprobs && want != 1)
        return weir_fail(error, WEIR_EINVAL, "pass: a run with \"logprobs\" wants \"logits\" to be \"last\"");
    int32_t vocab = weir__checkpoint_config(s->checkpoint)->vocab;
    int code = weir__read_ids(s->system, tokens, vocab, &ids, error);
    if (code)
        return code;
    if (!ids.size || ids.size > INT32_MAX)
        code = weir_fail(error, WEIR_EINVAL, "pass: a run has no tokens");
    if (!code)
        code = weir__kv_reserve(s->kv, r->sequence, r->first, (uint32_t)ids.size, error);
    int32_t slot = weir__kv_slot(s->kv, r->sequence), before = s->forward->step.view.outputs;
    if (!code)
        code = weir__sampling_biases(sample_of(options), vocab, &sample, weir__step_bias(&s->forward->step, slot), error);
    if (!code)
        code = weir__step_rows(&s->forward->step, slot, (int32_t)r->first, ids.data, (uint32_t)ids.size, vocab, want, &sample, error);
    if (!code) {
        weir__step_table(&s->forward->step, s->kv, slot);
        r->count = (uint32_t)ids.size;
        r->outputs = (uint32_t)(s->forward->step.view.outputs - before);
    }
    weir__ids_free(s->system, &ids);
    return code;
}

static bool listed_before(const weir__pass *p, uint32_t i) {
    for (uint32_t j = 0; j < i; j++)
        if (p->runs[j].sequence == p->runs[i].sequence)
            return true;
    return false;
}

static int make_outputs(weir__stepper *s, weir__pass *p, weir_error **error) {
    const weir__config *c = weir__checkpoint_config(s->checkpoint);
    const weir_step *step = &s->forward->step.view;
    size_t hidden = (size_t)(s->units + 1) * (size_t)step->rows * (size_t)c->width * sizeof(float);
    size_t logits = (size_t)step->outputs * (size_t)c->vocab * sizeof(float);
    int code = WEIR_OK;
    if (p->hidden)
        code = weir__buffer_new_host(s->device, hidden, "the hidden states of a pass", &p->hidden_out, error);
    if (p->return_logits && logits && !code)
        code = weir__buffer_new_host(s->device, logits, "the logits of a pass", &p->logits_out, error);
    return code;
}

int weir__pass_fill(weir__stepper *s, weir__pass *p, weir_error **error) {
    weir_cursor runs, tokens, options;
    weir_error *first = NULL;
    int64_t position;
    uint32_t part = 0, n;
    weir__step_clear(&s->forward->step);
    weir_read_find(weir__options(p->body, 0), "runs", &runs);
    weir_read_array(&runs, &n);
    for (uint32_t i = 0; i < p->n_runs; i++) {
        weir__run *r = &p->runs[i];
        if (!read_run(&runs, &r->sequence, &position, &tokens, &options))
            return weir_fail(error, WEIR_EINVAL, "pass: run %u: wanted [sequence, first position, tokens, {options}]", i);
        r->first = (uint32_t)position;
        if (listed_before(p, i))
            return weir_fail(error, WEIR_EINVAL, "pass: run %u: sequence %llu is in this pass already", i, (unsigned long long)r->sequence);
        if (fill_run(s, r, tokens, options, &r->error))
            first = first ? first : r->error;
        else
            part++;
    }
    if (!part) {
        if (error)
            *error = weir_error_ref(first);
        return weir_error_code(first);
    }
    return make_outputs(s, p, error);
}

/* ---- the reply ---- */

static void write_handle(weir_writer *w, const char *key, weir__buffer *b) {
    weir__write_key(w, key);
    weir_write_handle(w, (weir_handle){&weir__buffer_handle, weir__buffer_ref(b)});
}

static void write_errors(weir_writer *w, const weir__pass *p) {
    weir__write_key(w, "errors");
    weir_write_array(w);
    for (uint32_t i = 0; i < p->n_runs; i++) {
        const weir_error *e = p->runs[i].error;
        if (!e)
            continue;
        weir_write_array(w);
        weir_write_int(w, i);
        weir_write_int(w, weir_error_code(e));
        weir_write_str(w, weir_error_text(e), strlen(weir_error_text(e)));
        weir_write_close(w);
    }
    weir_write_close(w);
}

static bool any_logprobs(const weir_step *step) {
    for (int32_t i = 0; i < step->outputs; i++)
        if (step->sample[i].logprobs)
            return true;
    return false;
}

static void write_logprobs(weir_writer *w, const weir_step *step) {
    weir__write_key(w, "logprobs");
    weir_write_array(w);
    for (int32_t i = 0; i < step->outputs; i++)
        if (step->sample[i].logprobs)
            weir__logprobs_write(w, &step->logprobs[step->slot[step->out_row[i]]]);
        else
            weir_write_nil(w);
    weir_write_close(w);
}

weir_body *weir__pass_reply(weir__stepper *s, weir__pass *p) {
    const weir_step *step = &s->forward->step.view;
    weir_writer *w = weir_write_begin(s->system);
    weir_write_map(w);
    weir__write_key(w, "sampled");
    weir_write_array(w);
    for (int32_t i = 0; i < step->outputs; i++)
        weir_write_int(w, step->sampled[i]);
    weir_write_close(w);
    if (any_logprobs(step))
        write_logprobs(w, step);
    write_errors(w, p);
    weir__write_key(w, "outputs");
    weir_write_int(w, step->outputs);
    weir__write_key(w, "rows");
    weir_write_int(w, step->rows);
    if (p->logits_out)
        write_handle(w, "logits", p->logits_out);
    if (p->hidden_out)
        write_handle(w, "hidden", p->hidden_out);
    weir_write_close(w);
    weir_body *b = weir_write_end(w);
    for (uint32_t i = 0; b && i < p->n_runs; i++)
        if (!p->runs[i].error)
            weir__kv_commit(s->kv, p->runs[i].sequence, p->runs[i].first + p->runs[i].count);
    return b;
}
