/* fuzz_sampling.c: any body as the options of sampling: what is refused is refused with an error that says why; what is accepted is within its bounds, and reads
 * the same after it was written again. Log-probabilities likewise. */
#include "../../actors/sampling.h"

#include <stdlib.h>
#include <string.h>

enum { VOCAB = 512 };

static weir_system *s;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok) {
    if (!ok)
        __builtin_trap();
}

static void check_bounds(const weir_sample *o, const weir_bias *bias) {
    uint32_t seen = 0;
    must(o->temperature >= 0 && o->top_p >= 0 && o->top_p <= 1 && o->typical >= 0 && o->typical <= 1 && o->top_k >= 0);
    must(o->repeat_penalty > 0 && o->logprobs >= 0 && o->logprobs <= WEIR_MAX_LOGPROBS + 1);
    must(o->biases >= 0 && o->biases <= WEIR_MAX_BIAS);
    for (int32_t i = 0; i < o->biases; i++)
        must(bias[i].token >= 0 && bias[i].token < VOCAB && bias[i].addend >= -100 && bias[i].addend <= 100);
    for (int i = 0; i < WEIR_SAMPLER_COUNT && o->order[i]; i++) {
        must(o->order[i] <= WEIR_SAMPLER_COUNT && !(seen & 1u << o->order[i]));
        seen |= 1u << o->order[i];
    }
}

static bool same(const weir_sample *a, const weir_sample *b) {
    return a->temperature == b->temperature && a->top_p == b->top_p && a->min_p == b->min_p && a->typical == b->typical &&
           a->repeat_penalty == b->repeat_penalty && a->frequency_penalty == b->frequency_penalty &&
           a->presence_penalty == b->presence_penalty && a->top_k == b->top_k && a->seed == b->seed && a->penalty_last == b->penalty_last &&
           a->generated_from == b->generated_from && a->biases == b->biases && a->logprobs == b->logprobs &&
           memcmp(a->order, b->order, sizeof a->order) == 0;
}

static void check_again(const weir_sample *o, const weir_bias *bias) {
    static weir_bias other[WEIR_MAX_BIAS];
    weir_sample again;
    weir_writer *w = weir_write_begin(s);
    weir__sampling_write(w, o, bias);
    weir_body *b = weir_write_end(w);
    must(b && weir__sampling_read(weir__options(b, 0), &again, NULL));
    must(weir__sampling_biases(weir__options(b, 0), VOCAB, &again, other, NULL) == WEIR_OK);
    must(same(&again, o) && memcmp(bias, other, (size_t)o->biases * sizeof *bias) == 0);
    weir_body_free(b);
}

static void read_options(weir_cursor map) {
    static weir_bias bias[WEIR_MAX_BIAS];
    weir_sample o;
    weir_error *error = NULL;
    bool ok = weir__sampling_read(map, &o, &error);
    if (ok)
        ok = weir__sampling_biases(map, VOCAB, &o, bias, &error) == WEIR_OK;
    must(ok == !error);
    if (ok) {
        check_bounds(&o, bias);
        check_again(&o, bias);
    }
    weir_error_free(error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weir_body *b = NULL;
    if (!s && weir_system_new(NULL, &s, NULL) != WEIR_OK)
        abort();
    if (weir_body_from_bytes(s, data, size, &b, NULL) == WEIR_OK) {
        weir_logprobs l;
        weir_cursor c = weir__options(b, 0);
        read_options(c);
        if (weir__logprobs_read(&c, &l))
            must(l.count >= 0 && l.count <= WEIR_MAX_LOGPROBS);
    }
    weir_body_free(b);
    return 0;
}
