/* step_block.c: memory and copies of the step block (step_block.h). */
#include "step_block.h"
#include "carver.h"

#include <string.h>

/* ---- memory ---- */

static void carve_arrays(weir_step *v, weir__carver *m, size_t rows, size_t outputs) {
    v->token = weir__carve(m, rows * sizeof *v->token);
    v->slot = weir__carve(m, rows * sizeof *v->slot);
    v->position = weir__carve(m, rows * sizeof *v->position);
    v->out_row = weir__carve(m, outputs * sizeof *v->out_row);
    v->sample = weir__carve(m, outputs * sizeof *v->sample);
}

static void carve_sequences(weir_step *v, weir__carver *m) {
    v->blocks = weir__carve(m, sizeof *v->blocks * WEIR_MAX_SEQUENCES * (size_t)v->blocks_per_sequence);
    v->bias = weir__carve(m, sizeof *v->bias * WEIR_MAX_SEQUENCES * WEIR_MAX_BIAS);
}

static void carve_results(weir_step *v, weir__carver *m, size_t rows) {
    v->sampled = weir__carve(m, rows * sizeof *v->sampled);
    v->logprobs = weir__carve(m, sizeof *v->logprobs * WEIR_MAX_SEQUENCES);
}

static int make_mirrors(weir__device *d, weir__step_block *step, weir_error **error) {
    weir__carver image = {0}, sequences = {0}, results = {0};
    weir_step v = step->view;
    weir__carve(&image, sizeof v);
    carve_arrays(&v, &image, step->rows, step->rows);
    carve_sequences(&v, &sequences);
    carve_results(&v, &results, step->rows);
    size_t history =
        (size_t)v.blocks_per_sequence * WEIR_KV_BLOCK * sizeof *v.history; /* the pool has as many blocks as one sequence may */
    int code = weir__mirror_new(d, image.used, "the step block", &step->image, error);
    if (!code)
        code = weir__mirror_new(d, sequences.used, "tables of sequences", &step->sequences, error);
    if (!code)
        code = weir__mirror_new(d, results.used, "results of a pass", &step->results, error);
    return code ? code : weir__buffer_new(d, history, "tokens of sequences", &step->history, error);
}

int weir__step_init(weir_system *s, weir__device *d, uint32_t rows, uint32_t tile, uint32_t out_tile, weir__step_block *step,
                    weir_error **error) {
    weir__carver m = {0};
    *step = (weir__step_block){.system = s, .rows = rows};
    weir_step *v = &step->view;
    v->tile = (int32_t)tile;
    v->out_tile = (int32_t)out_tile;
    v->blocks_per_sequence = (int32_t)((rows + WEIR_KV_BLOCK - 1) / WEIR_KV_BLOCK);
    carve_arrays(v, &m, rows, rows);
    step->arrays = weir__alloc(s, m.used);
    int code = step->arrays ? make_mirrors(d, step, error) : weir_fail(error, WEIR_ENOMEM, "no memory for %u rows", rows);
    if (code)
        return code;
    carve_arrays(v, &(weir__carver){step->arrays, 0}, rows, rows);
    carve_sequences(v, &(weir__carver){weir__buffer_host(step->sequences.host), 0});
    carve_results(v, &(weir__carver){weir__buffer_host(step->results.host), 0}, rows);
    return WEIR_OK;
}

void weir__step_nowhere(weir__step_block *step, weir__buffer *nowhere) {
    *step = (weir__step_block){.image.device = weir__buffer_ref(nowhere),
                               .sequences.device = weir__buffer_ref(nowhere),
                               .results.device = weir__buffer_ref(nowhere),
                               .history = weir__buffer_ref(nowhere)};
}

void weir__step_fini(weir__step_block *step) {
    weir__mirror_free(&step->image);
    weir__mirror_free(&step->sequences);
    weir__mirror_free(&step->results);
    weir__buffer_unref(step->history);
    if (step->system)
        weir__free(step->system, step->arrays);
    *step = (weir__step_block){0};
}

weir_step *weir__step_device(const weir__step_block *step) {
    return weir__buffer_pointer(step->image.device);
}

void weir__step_buffers(const weir__step_block *step, weir__buffer *to[WEIR__STEP_BUFFERS]) {
    to[0] = step->image.device;
    to[1] = step->sequences.device;
    to[2] = step->results.device;
    to[3] = step->history;
}

/* ---- gathering ---- */

void weir__step_clear(weir__step_block *step) {
    step->view.rows = step->view.outputs = 0;
    step->touched = step->biased = 0;
    step->positions = 0;
}

void weir__step_table(weir__step_block *step, const weir__kv *kv, int32_t slot) {
    uint32_t stride = weir__kv_blocks_per_sequence(kv);
    /* the step block's row may be longer: its stride follows the pool, the sequence's the model's limit */
    memcpy((int32_t *)step->view.blocks + (size_t)slot * (size_t)step->view.blocks_per_sequence, weir__kv_table(kv) + (size_t)slot * stride,
           stride * sizeof(int32_t));
}

weir_bias *weir__step_bias(const weir__step_block *step, int32_t slot) {
    return (weir_bias *)step->view.bias + (size_t)slot * WEIR_MAX_BIAS;
}

static void add_output(weir__step_block *step, int32_t row, const weir_sample *sample, int32_t position) {
    weir_step *v = &step->view;
    weir_sample *to = (weir_sample *)v->sample + v->outputs;
    *to = sample ? *sample : (weir_sample){0};
    to->position = position;
    if (to->biases)
        step->biased |= UINT64_C(1) << v->slot[row];
    ((int32_t *)v->out_row)[v->outputs++] = row;
}

int weir__step_rows(weir__step_block *step, int32_t slot, int32_t first, const int32_t *tokens, uint32_t count, int32_t vocab, int want,
                    const weir_sample *sample, weir_error **error) {
    weir_step *v = &step->view;
    if (count > step->rows - (uint32_t)v->rows)
        return weir_fail(error, WEIR_ECONTEXT, "context full: a pass holds %u rows, %llu wanted", step->rows,
                         (unsigned long long)count + (unsigned long long)v->rows);
    for (uint32_t i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= vocab)
            return weir_fail(error, WEIR_ETOKEN, "token %d at position %u: the vocabulary has %d", tokens[i], (uint32_t)first + i, vocab);
    step->touched |= UINT64_C(1) << slot;
    for (uint32_t i = 0; i < count; i++) {
        int32_t row = v->rows++;
        ((int32_t *)v->token)[row] = tokens[i];
        ((int32_t *)v->slot)[row] = slot;
        ((int32_t *)v->position)[row] = first + (int32_t)i;
        if (want == 2 || (want == 1 && i + 1 == count))
            add_output(step, row, sample, first + (int32_t)i);
    }
    if (first + (int32_t)count > step->positions)
        step->positions = first + (int32_t)count;
    return WEIR_OK;
}

/* ---- copies ---- */

/* Where kernels find what the host has at p, a place in a mirror. */
static void *on_device(const weir__mirror *m, const void *p) {
    size_t at = (size_t)((const uint8_t *)p - (const uint8_t *)weir__buffer_host(m->host));
    return (uint8_t *)weir__buffer_pointer(m->device) + at;
}

/* The header and the arrays as kernels read them; returns the bytes that are used. */
static size_t write_image(const weir__step_block *step) {
    const weir_step *v = &step->view;
    weir_step *image = weir__buffer_host(step->image.host);
    weir__carver m = {(uint8_t *)image, 0};
    weir__carve(&m, sizeof *image);
    *image = *v;
    size_t rows = (size_t)v->rows, outputs = (size_t)v->outputs;
    carve_arrays(image, &m, rows, outputs);
    memcpy((int32_t *)image->token, v->token, rows * sizeof *v->token);
    memcpy((int32_t *)image->slot, v->slot, rows * sizeof *v->slot);
    memcpy((int32_t *)image->position, v->position, rows * sizeof *v->position);
    memcpy((int32_t *)image->out_row, v->out_row, outputs * sizeof *v->out_row);
    memcpy((weir_sample *)image->sample, v->sample, outputs * sizeof *v->sample);
    image->tile_first = image->out_first = 0;
    image->tile_rows = v->rows; /* first + rows = total: the first `tile` wraps to 0 */
    image->out_rows = v->outputs;
    image->token = on_device(&step->image, image->token);
    image->slot = on_device(&step->image, image->slot);
    image->position = on_device(&step->image, image->position);
    image->out_row = on_device(&step->image, image->out_row);
    image->sample = on_device(&step->image, image->sample);
    image->blocks = on_device(&step->sequences, v->blocks);
    image->bias = on_device(&step->sequences, v->bias);
    image->sampled = on_device(&step->results, v->sampled);
    image->logprobs = on_device(&step->results, v->logprobs);
    image->history = weir__buffer_pointer(step->history);
    return m.used;
}

static size_t offset_in(const weir__mirror *m, const void *p) {
    return (size_t)((const uint8_t *)p - (const uint8_t *)weir__buffer_host(m->host));
}

static int push_slot(const weir__step_block *step, weir__stream *st, int32_t slot) {
    const weir_step *v = &step->view;
    const int32_t *row = v->blocks + (size_t)slot * (size_t)v->blocks_per_sequence;
    int code = weir__mirror_push(st, &step->sequences, offset_in(&step->sequences, row), (size_t)v->blocks_per_sequence * sizeof *row);
    if (!code && step->biased >> slot & 1)
        code = weir__mirror_push(st, &step->sequences, offset_in(&step->sequences, weir__step_bias(step, slot)),
                                 WEIR_MAX_BIAS * sizeof(weir_bias));
    return code;
}

int weir__step_push(weir__step_block *step, weir__stream *st) {
    int code = weir__mirror_push(st, &step->image, 0, write_image(step));
    for (int32_t slot = 0; slot < WEIR_MAX_SEQUENCES && !code; slot++)
        if (step->touched >> slot & 1)
            code = push_slot(step, st, slot);
    return code;
}

int weir__step_pull(weir__step_block *step, weir__stream *st) {
    const weir_step *v = &step->view;
    int code = weir__mirror_pull(st, &step->results, 0, (size_t)v->outputs * sizeof *v->sampled);
    for (int32_t i = 0; i < v->outputs && !code; i++)
        if (v->sample[i].logprobs)
            code =
                weir__mirror_pull(st, &step->results, offset_in(&step->results, &v->logprobs[v->slot[v->out_row[i]]]), sizeof *v->logprobs);
    return code;
}
