/* sampling.c: reading, checking and writing how tokens are chosen (sampling.h). Knows no request and no pass. */
#include "sampling.h"

#include <stdio.h>
#include <string.h>

#define MAX_ADDEND 100 /* of a bias: OpenAI's bound; enough to ban a token or to force it */

static const char *const steps[] = {
#define S(name) #name,
    WEIR_SAMPLERS(S)
#undef S
};

/* ---- the order of steps ---- */

static bool in_use(const weir_sample *s, int step) {
    switch (step) {
    case WEIR_S_repeat_penalty:
        return s->repeat_penalty != 1;
    case WEIR_S_frequency_penalty:
        return s->frequency_penalty != 0;
    case WEIR_S_presence_penalty:
        return s->presence_penalty != 0;
    case WEIR_S_logit_bias:
        return s->biases > 0;
    case WEIR_S_temperature:
        return s->temperature > 0 && s->temperature != 1;
    case WEIR_S_top_k:
        return s->top_k > 0;
    case WEIR_S_typical:
        return s->typical > 0 && s->typical < 1;
    case WEIR_S_top_p:
        return s->top_p > 0 && s->top_p < 1;
    default:
        return s->min_p > 0;
    }
}

static int find_step(const char *name, size_t size) {
    for (int i = 0; i < WEIR_SAMPLER_COUNT; i++)
        if (strlen(steps[i]) == size && memcmp(steps[i], name, size) == 0)
            return i + 1;
    return WEIR_S_END;
}

static int fail_unknown(const char *name, size_t size, weir_error **error) {
    char list[256] = "", quoted[64];
    for (int i = 0; i < WEIR_SAMPLER_COUNT; i++) {
        strcat(list, i ? ", " : "");
        strcat(list, steps[i]);
    }
    return weir_fail(error, WEIR_EINVAL, "option \"samplers\": there is no step \"%s\"; wanted %s",
                     weir__quote(quoted, sizeof quoted, name, size), list);
}

static int read_order(weir_cursor list, weir_sample *s, weir_error **error) {
    uint32_t n, seen = 0;
    if (!weir_read_array(&list, &n))
        return weir_fail(error, WEIR_EINVAL, "option \"samplers\": wanted an array of names of steps");
    for (uint32_t i = 0; i < n; i++) {
        const char *name;
        size_t size;
        if (!weir_read_bytes(&list, &name, &size))
            return weir_fail(error, WEIR_EINVAL, "option \"samplers\": number %u is no name of a step", i);
        int step = find_step(name, size);
        if (!step)
            return fail_unknown(name, size, error);
        if (seen & 1u << step)
            return weir_fail(error, WEIR_EINVAL, "option \"samplers\": \"%s\" stands twice", steps[step - 1]);
        seen |= 1u << step;
        s->order[i] = (uint8_t)step;
    }
    for (int step = 1; step <= WEIR_SAMPLER_COUNT; step++)
        if (!(seen & 1u << step) && in_use(s, step))
            return weir_fail(error, WEIR_EINVAL, "option \"samplers\": \"%s\" is missing, and option \"%s\" is set", steps[step - 1],
                             steps[step - 1]);
    return WEIR_OK;
}

/* ---- biases: [[token, addend], ...], or bytes of (int32, float32) ---- */

static bool bias_list(weir_cursor map, weir_cursor *value) {
    if (!weir_read_find(map, "logit_bias", value))
        return false;
    weir_cursor peek = *value;
    return weir_read_value(&peek).kind != WEIR_NIL;
}

static int count_biases(weir_cursor map, int32_t *count, weir_error **error) {
    weir_cursor value;
    const char *bytes;
    size_t size = 0;
    uint32_t n = 0;
    if (!bias_list(map, &value))
        return WEIR_OK;
    bool packed = weir_read_bytes(&value, &bytes, &size);
    if (packed ? size % sizeof(weir_bias) != 0 : !weir_read_array(&value, &n))
        return weir_fail(error, WEIR_EINVAL, "option \"logit_bias\": wanted an array of [token, addend]");
    size_t biases = packed ? size / sizeof(weir_bias) : n;
    if (biases > WEIR_MAX_BIAS)
        return weir_fail(error, WEIR_EINVAL, "option \"logit_bias\": %zu tokens, at most %d", biases, WEIR_MAX_BIAS);
    *count = (int32_t)biases;
    return WEIR_OK;
}

static bool read_bias(weir_cursor *c, int64_t *token, double *addend) {
    uint32_t n;
    return weir_read_array(c, &n) && n == 2 && weir_read_int(c, token) && weir_read_double(c, addend);
}

static int check_bias(int64_t token, double addend, int32_t vocab, weir_error **error) {
    if (token < 0 || token >= vocab)
        return weir_fail(error, WEIR_ETOKEN, "option \"logit_bias\": token %lld is outside the vocabulary of %d", (long long)token, vocab);
    if (!(addend >= -MAX_ADDEND && addend <= MAX_ADDEND))
        return weir_fail(error, WEIR_EINVAL, "option \"logit_bias\": token %lld has %g, wanted a number from -%d to %d", (long long)token,
                         addend, MAX_ADDEND, MAX_ADDEND);
    return WEIR_OK;
}

int weir__sampling_biases(weir_cursor map, int32_t vocab, const weir_sample *s, weir_bias *out, weir_error **error) {
    weir_cursor value;
    const char *bytes = NULL;
    size_t size;
    uint32_t n;
    int code = WEIR_OK;
    if (!s->biases || !bias_list(map, &value))
        return WEIR_OK;
    bool packed = weir_read_bytes(&value, &bytes, &size);
    if (packed)
        memcpy(out, bytes, (size_t)s->biases * sizeof *out);
    else
        weir_read_array(&value, &n);
    for (int32_t i = 0; i < s->biases && !code; i++) {
        int64_t token = packed ? out[i].token : 0;
        double addend = packed ? (double)out[i].addend : 0;
        if (!packed && !read_bias(&value, &token, &addend))
            return weir_fail(error, WEIR_EINVAL, "option \"logit_bias\": number %d is no [token, addend]", i);
        code = check_bias(token, addend, vocab, error);
        out[i] = (weir_bias){(int32_t)token, (float)addend};
    }
    return code;
}

/* ---- numbers ---- */

static bool read_numbers(weir_cursor map, weir_sample *s, weir_error **error) {
    const struct {
        const char *key;
        double min, max, none;
        float *to;
    } options[] = {
        {"temperature", 0, 1e6, 0, &s->temperature},
        {"top_p", 0, 1, 0, &s->top_p},
        {"min_p", 0, 1, 0, &s->min_p},
        {"typical", 0, 1, 0, &s->typical},
        {"repeat_penalty", 0.01, 100, 1, &s->repeat_penalty},
        {"frequency_penalty", -2, 2, 0, &s->frequency_penalty},
        {"presence_penalty", -2, 2, 0, &s->presence_penalty},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        double v = options[i].none;
        if (!weir__option_double(map, options[i].key, options[i].min, options[i].max, &v, error))
            return false;
        *options[i].to = (float)v;
    }
    return true;
}

bool weir__sampling_read(weir_cursor map, weir_sample *s, weir_error **error) {
    int64_t top_k = 0, seed = 0, last = 0, from = 0, logprobs = -1;
    weir_cursor order;
    *s = (weir_sample){0};
    if (!read_numbers(map, s, error) || !weir__option_int(map, "top_k", 0, INT32_MAX, &top_k, error) ||
        !weir__option_int(map, "seed", INT64_MIN, INT64_MAX, &seed, error) ||
        !weir__option_int(map, "penalty_last", 0, INT32_MAX, &last, error) ||
        !weir__option_int(map, "generated_from", 0, INT32_MAX, &from, error) ||
        !weir__option_int(map, "logprobs", 0, WEIR_MAX_LOGPROBS, &logprobs, error) || count_biases(map, &s->biases, error))
        return false;
    s->top_k = (int32_t)top_k;
    s->seed = (uint64_t)seed;
    s->penalty_last = (int32_t)last;
    s->generated_from = (int32_t)from;
    s->logprobs = (int32_t)logprobs + 1;
    if (!weir_read_find(map, "samplers", &order))
        return true;
    weir_cursor peek = order;
    return weir_read_value(&peek).kind == WEIR_NIL || !read_order(order, s, error);
}

/* ---- writing ---- */

static void write_number(weir_writer *w, const char *key, float v, float none) {
    if (v == none)
        return;
    weir__write_key(w, key);
    weir_write_double(w, (double)v);
}

static void write_integer(weir_writer *w, const char *key, int64_t v) {
    if (!v)
        return;
    weir__write_key(w, key);
    weir_write_int(w, v);
}

void weir__sampling_write(weir_writer *w, const weir_sample *s, const weir_bias *bias) {
    weir_write_map(w);
    write_number(w, "temperature", s->temperature, 0);
    write_number(w, "top_p", s->top_p, 0);
    write_number(w, "min_p", s->min_p, 0);
    write_number(w, "typical", s->typical, 0);
    write_number(w, "repeat_penalty", s->repeat_penalty, 1);
    write_number(w, "frequency_penalty", s->frequency_penalty, 0);
    write_number(w, "presence_penalty", s->presence_penalty, 0);
    write_integer(w, "top_k", s->top_k);
    write_integer(w, "seed", (int64_t)s->seed);
    write_integer(w, "penalty_last", s->penalty_last);
    write_integer(w, "generated_from", s->generated_from);
    if (s->logprobs) {
        weir__write_key(w, "logprobs");
        weir_write_int(w, s->logprobs - 1);
    }
    if (s->biases) {
        weir__write_key(w, "logit_bias");
        weir_write_bin(w, bias, (size_t)s->biases * sizeof *bias);
    }
    if (s->order[0]) {
        weir__write_key(w, "samplers");
        weir_write_array(w);
        for (int i = 0; i < WEIR_SAMPLER_COUNT && s->order[i]; i++)
            weir__write_key(w, steps[s->order[i] - 1]);
        weir_write_close(w);
    }
    weir_write_close(w);
}

/* ---- log-probabilities ---- */

void weir__logprobs_write(weir_writer *w, const weir_logprobs *l) {
    weir_write_array(w);
    weir_write_double(w, l->chosen);
    weir_write_array(w);
    for (int32_t i = 0; i < l->count; i++) {
        weir_write_array(w);
        weir_write_int(w, l->token[i]);
        weir_write_double(w, l->best[i]);
        weir_write_close(w);
    }
    weir_write_close(w);
    weir_write_close(w);
}

bool weir__logprobs_read(weir_cursor *c, weir_logprobs *l) {
    uint32_t n, fields, best;
    *l = (weir_logprobs){0};
    if (!weir_read_array(c, &n) || n != 2 || !weir_read_double(c, &l->chosen) || !weir_read_array(c, &best) || best > WEIR_MAX_LOGPROBS)
        return false;
    for (; l->count < (int32_t)best; l->count++) {
        int64_t token;
        if (!weir_read_array(c, &fields) || fields != 2 || !weir_read_int(c, &token) || !weir_read_double(c, &l->best[l->count]) ||
            token < 0 || token > INT32_MAX)
            return false;
        l->token[l->count] = (int32_t)token;
    }
    return true;
}
