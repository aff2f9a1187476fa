/* tokenizer.c: makes a tokeniser from a vocabulary's arrays and answers questions about pieces. The models (bpe.c, spm.c) know how text becomes pieces; this
 * file knows only their table. */
#include "tokenizer.h"

#include <string.h>

static const weir__text_model *const models[] = {&weir__bpe_model, &weir__spm_model};
enum { MODELS = sizeof models / sizeof models[0] };

/* Control pieces that published chat models end a turn with, whatever their file's eos is. */
static const char *const turn_ends[] = {
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>",         "<|end|>", "<|endoftext|>", "<|end_of_text|>", "<end_of_turn>",
    "<|return|>", "<|call|>",   "<end_of_utterance>", "<EOT>",   "</s>",
};
enum { TURN_ENDS = sizeof turn_ends / sizeof turn_ends[0] };

static int find_model(weir__tokenizer *t, const weir__old_vocab *v, weir_error **error) {
    char shown[96];
    for (size_t i = 0; i < MODELS; i++) {
        if (strcmp(models[i]->name, v->model) == 0) {
            t->model = models[i];
            return WEIR_OK;
        }
    }
    return weir_fail(error, WEIR_EUNSUPPORTED, "%s: tokeniser model \"%s\" is not known, known are \"gpt2\", \"llama\"", v->source,
                     weir__quote(shown, sizeof shown, v->model, strlen(v->model)));
}

static int check(const weir__old_vocab *v, size_t *bytes, weir_error **error) {
    if (v->size == 0 || v->size > WEIR_MAX_VOCAB)
        return weir_fail(error, WEIR_EFORMAT, "%s: found a vocabulary of %zu pieces, wanted 1 to %d", v->source, v->size, WEIR_MAX_VOCAB);
    *bytes = 1;
    for (size_t i = 0; i < v->size; i++) {
        *bytes += v->pieces[i].size;
        if (v->pieces[i].size > WEIR_MAX_PIECE)
            return weir_fail(error, WEIR_EFORMAT, "%s: piece %zu: found %zu bytes, wanted at most %d", v->source, i, v->pieces[i].size,
                             WEIR_MAX_PIECE);
        if (*bytes > WEIR_MAX_TEXT)
            return weir_fail(error, WEIR_EFORMAT, "%s: the vocabulary's pieces have more than %u bytes", v->source, WEIR_MAX_TEXT);
        if (v->kinds && (v->kinds[i] < WEIR__NORMAL || v->kinds[i] > WEIR__BYTE))
            return weir_fail(error, WEIR_EFORMAT, "%s: piece %zu: found kind %d, wanted 1 to 6", v->source, i, v->kinds[i]);
    }
    return WEIR_OK;
}

static int copy_pieces(weir__tokenizer *t, const weir__old_vocab *v, size_t bytes) {
    t->piece_bytes = weir__alloc(t->system, bytes);
    t->text_bytes = weir__alloc(t->system, bytes);
    t->pieces = weir__alloc(t->system, v->size * sizeof *t->pieces);
    t->texts = weir__alloc(t->system, v->size * sizeof *t->texts);
    t->kinds = weir__alloc(t->system, v->size);
    if (!t->piece_bytes || !t->text_bytes || !t->pieces || !t->texts || !t->kinds ||
        weir__index_init(t->system, &t->index, t->pieces, sizeof *t->pieces, v->size) != WEIR_OK)
        return WEIR_ENOMEM;
    char *to = t->piece_bytes;
    for (size_t i = 0; i < v->size; i++) {
        t->pieces[i] = (weir__string){to, v->pieces[i].size};
        if (v->pieces[i].size > 0)
            memcpy(to, v->pieces[i].data, v->pieces[i].size);
        to += v->pieces[i].size;
        t->kinds[i] = v->kinds ? (uint8_t)v->kinds[i] : WEIR__NORMAL;
        weir__index_add(&t->index, (uint32_t)i);
    }
    return WEIR_OK;
}

static int find_ends(weir__tokenizer *t) {
    t->ends = weir__alloc(t->system, TURN_ENDS * sizeof *t->ends);
    if (!t->ends)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < TURN_ENDS; i++) {
        int32_t id = weir__tokenizer_find(t, turn_ends[i], strlen(turn_ends[i]));
        if (id >= 0 && t->kinds[id] == WEIR__CONTROL)
            t->ends[t->n_ends++] = id;
    }
    return WEIR_OK;
}

static int32_t inside(const weir__old_vocab *v, int32_t id) {
    return id >= 0 && (size_t)id < v->size ? id : -1;
}

static int fill(weir__tokenizer *t, const weir__old_vocab *v, weir_error **error) {
    size_t bytes = 0;
    int code = find_model(t, v, error);
    if (!code)
        code = check(v, &bytes, error);
    if (code)
        return code;
    t->size = v->size;
    t->bos = inside(v, v->bos);
    t->eos = inside(v, v->eos);
    t->unk = inside(v, v->unk);
    t->add_bos = v->add_bos && t->bos >= 0;
    t->add_eos = v->add_eos && t->eos >= 0;
    t->add_space_prefix = v->add_space_prefix && t->model->space_prefix;
    if (copy_pieces(t, v, bytes) || weir__specials_init(t) || find_ends(t))
        return weir_fail(error, WEIR_ENOMEM, "%s: tokeniser of %zu pieces", v->source, v->size);
    for (size_t i = 0; i < 256; i++)
        t->byte_ids[i] = -1;
    return t->model->init(t, v, error);
}

int weir__tokenizer_new(weir_system *s, const weir__old_vocab *v, weir__tokenizer **out, weir_error **error) {
    weir__tokenizer *t = weir__alloc(s, sizeof *t);
    if (!t)
        return weir_fail(error, WEIR_ENOMEM, "%s: tokeniser", v->source);
    t->system = s;
    int code = fill(t, v, error);
    if (code) {
        weir__tokenizer_free(t);
        return code;
    }
    *out = t;
    return WEIR_OK;
}

void weir__tokenizer_free(weir__tokenizer *t) {
    if (!t)
        return;
    if (t->model)
        t->model->free(t);
    weir__index_fini(t->system, &t->index);
    weir__free(t->system, t->pieces);
    weir__free(t->system, t->texts);
    weir__free(t->system, t->kinds);
    weir__free(t->system, t->piece_bytes);
    weir__free(t->system, t->text_bytes);
    weir__free(t->system, t->specials);
    weir__free(t->system, t->ends);
    weir__free(t->system, t);
}

size_t weir__tokenizer_size(const weir__tokenizer *t) {
    return t->size;
}
int32_t weir__tokenizer_bos(const weir__tokenizer *t) {
    return t->bos;
}
int32_t weir__tokenizer_eos(const weir__tokenizer *t) {
    return t->eos;
}
bool weir__tokenizer_add_bos(const weir__tokenizer *t) {
    return t->add_bos;
}

bool weir__tokenizer_is_end(const weir__tokenizer *t, int32_t id) {
    bool is = id >= 0 && id == t->eos;
    for (size_t i = 0; i < t->n_ends; i++)
        is |= t->ends[i] == id;
    return is;
}

int32_t weir__tokenizer_find(const weir__tokenizer *t, const char *piece, size_t size) {
    return (int32_t)weir__index_find(&t->index, piece, size);
}

weir__string weir__tokenizer_piece(const weir__tokenizer *t, int32_t id) {
    return id >= 0 && (size_t)id < t->size ? t->pieces[id] : (weir__string){"", 0};
}

const char *weir__tokenizer_bytes(const weir__tokenizer *t, int32_t id, bool special, size_t *size) {
    weir__string text = {"", 0};
    if (id >= 0 && (size_t)id < t->size) {
        bool hidden = t->kinds[id] == WEIR__CONTROL || t->kinds[id] == WEIR__UNKNOWN;
        text = hidden && special ? t->pieces[id] : t->texts[id];
    }
    *size = text.size;
    return text.data ? text.data : "";
}
