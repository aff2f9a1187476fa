/* tokenizer.c: makes a tokeniser from a vocabulary's arrays and answers questions about pieces. The models (bpe.c, spm.c) know how text becomes pieces; this
 * file knows only their table. */
#include "tokenizer.h"

#include <string.h>

static const weir__text_model *const models[] = {&weir__bpe_model, &weir__spm_model, &weir__unigram_model, &weir__wordpiece_model,
                                                 &weir__wordlevel_model};
enum { MODELS = sizeof models / sizeof models[0] };

/* Control pieces that published chat models end a turn with, whatever their file's eos is. */
static const char *const turn_ends[] = {
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>",         "<|end|>", "<|endoftext|>", "<|end_of_text|>", "<end_of_turn>",
    "<|return|>", "<|call|>",   "<end_of_utterance>", "<EOT>",   "</s>",
};
enum { TURN_ENDS = sizeof turn_ends / sizeof turn_ends[0] };

static int find_model(weir__tokenizer *t, const weir__vocab *v, weir_error **error) {
    for (size_t i = 0; i < MODELS; i++) {
        if (models[i]->kind == v->model) {
            t->model = models[i];
            return WEIR_OK;
        }
    }
    return weir_fail(error, WEIR_EUNSUPPORTED, "%s: tokeniser model %d is not known", v->source, (int)v->model);
}

static int check(const weir__vocab *v, size_t *bytes, weir_error **error) {
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

static int copy_pieces(weir__tokenizer *t, const weir__vocab *v, size_t bytes) {
    t->piece_bytes = weir__alloc(t->system, bytes);
    t->pieces = weir__alloc(t->system, v->size * sizeof *t->pieces);
    t->kinds = weir__alloc(t->system, v->size);
    if (!t->piece_bytes || !t->pieces || !t->kinds ||
        weir__index_init(t->system, &t->index, t->pieces, sizeof *t->pieces, v->size) != WEIR_OK)
        return WEIR_ENOMEM;
    char *to = t->piece_bytes;
    for (size_t i = 0; i < v->size; i++) {
        t->pieces[i] = (weir__string){to, v->pieces[i].size};
        if (v->pieces[i].size > 0)
            memcpy(to, v->pieces[i].data, v->pieces[i].size);
        to += v->pieces[i].size;
        t->kinds[i] = v->kinds ? (uint8_t)v->kinds[i] : WEIR__NORMAL;
        if (v->pieces[i].size > 0)
            weir__index_add(&t->index, (uint32_t)i);
        else
            t->kinds[i] = WEIR__UNUSED;
    }
    return WEIR_OK;
}

/* The value of "<0x0A>", -1: no such piece. */
static int byte_value(weir__string piece) {
    static const char digits[] = "0123456789ABCDEF";
    if (piece.size != 6 || memcmp(piece.data, "<0x", 3) != 0 || piece.data[5] != '>')
        return -1;
    const char *high = memchr(digits, piece.data[3], 16), *low = memchr(digits, piece.data[4], 16);
    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

/* Byte pieces: those of that kind, and all that look so if the model falls back to them. */
static int find_bytes(weir__tokenizer *t, const weir__vocab *v, weir_error **error) {
    char shown[64];
    for (size_t i = 0; i < 256; i++)
        t->byte_ids[i] = -1;
    for (size_t i = 0; i < t->size; i++) {
        int value = t->byte_fallback || t->kinds[i] == WEIR__BYTE ? byte_value(t->pieces[i]) : -1;
        if (value >= 0) {
            t->byte_ids[value] = (int32_t)i;
            t->kinds[i] = WEIR__BYTE;
        } else if (t->kinds[i] == WEIR__BYTE) {
            return weir_fail(error, WEIR_EFORMAT, "%s: piece %zu is of kind byte: found \"%s\", wanted \"<0x00>\" to \"<0xFF>\"", v->source,
                             i, weir__quote(shown, sizeof shown, t->pieces[i].data, t->pieces[i].size));
        }
    }
    return WEIR_OK;
}

/* Kinds that follow from what else the vocabulary says. */
static void set_kinds(weir__tokenizer *t, const weir__vocab *v) {
    for (size_t i = 0; i < t->n_added; i++) {
        int32_t id = t->added[i].id;
        bool special = v->added[i].special; /* a byte piece that is a special token is left out when decoded, as any special one */
        if (t->kinds[id] != WEIR__UNKNOWN && (special || t->kinds[id] != WEIR__BYTE))
            t->kinds[id] = special ? WEIR__CONTROL : v->added[i].outside ? WEIR__OUTSIDE : WEIR__USER;
    }
    if (t->unk >= 0 && t->kinds[t->unk] != WEIR__CONTROL)
        t->kinds[t->unk] = WEIR__UNKNOWN;
}

static bool has_mark_inside(weir__string piece) {
    size_t at = 0;
    while (piece.size - at >= WEIR__SPACE_MARK_SIZE && memcmp(piece.data + at, WEIR__SPACE_MARK, WEIR__SPACE_MARK_SIZE) == 0)
        at += WEIR__SPACE_MARK_SIZE;
    return at < piece.size && memmem(piece.data + at, piece.size - at, WEIR__SPACE_MARK, WEIR__SPACE_MARK_SIZE);
}

static void measure(weir__tokenizer *t) {
    t->cuts_at_mark = true;
    for (size_t i = 0; i < t->size; i++) {
        if (!weir__is_plain(t, (int64_t)i))
            continue;
        t->longest = t->pieces[i].size > t->longest ? t->pieces[i].size : t->longest;
        t->cuts_at_mark &= !has_mark_inside(t->pieces[i]);
    }
}

static int keep_ends(weir__tokenizer *t, const weir__vocab *v) {
    t->ends = weir__alloc(t->system, (TURN_ENDS + v->n_ends) * sizeof *t->ends);
    if (!t->ends)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < TURN_ENDS; i++) {
        int32_t id = weir__tokenizer_find(t, turn_ends[i], strlen(turn_ends[i]));
        if (id >= 0 && t->kinds[id] == WEIR__CONTROL)
            t->ends[t->n_ends++] = id;
    }
    for (size_t i = 0; i < v->n_ends; i++)
        t->ends[t->n_ends++] = v->ends[i];
    return WEIR_OK;
}

static int32_t inside(const weir__vocab *v, int32_t id) {
    return id >= 0 && (size_t)id < v->size ? id : -1;
}

static int keep_bounds(weir__tokenizer *t, const weir__vocab *v, const int32_t *ids, size_t n, int32_t **out, size_t *n_out,
                       weir_error **error) {
    *out = weir__alloc(t->system, (n + 1) * sizeof **out);
    if (!*out)
        return weir_fail(error, WEIR_ENOMEM, "%s: tokeniser", v->source);
    for (size_t i = 0; i < n; i++) {
        if (inside(v, ids[i]) < 0)
            return weir_fail(error, WEIR_EFORMAT, "%s: found token %d around a text, wanted 0 to %zu", v->source, ids[i], v->size - 1);
        (*out)[(*n_out)++] = ids[i];
    }
    return WEIR_OK;
}

static int make_steps(weir__tokenizer *t, const weir__vocab *v, weir_error **error) {
    int code = weir__ops_init(t->system, &t->normaliser, v->normaliser, weir__normaliser_kinds, "normaliser", v->source, error);
    if (!code)
        code = weir__ops_init(t->system, &t->pretokeniser, v->pretokeniser, weir__pretokeniser_kinds, "pre-tokeniser", v->source, error);
    size_t n = t->pretokeniser.size;
    for (size_t i = 0; i < n && !code; i++) {
        if (t->pretokeniser.steps[i].kind == WEIR__BYTE_LEVEL && v->model != WEIR__BPE)
            code = weir_fail(error, WEIR_EUNSUPPORTED, "%s: ByteLevel is supported only before BPE", v->source);
    }
    t->byte_level = n > 0 && !code && t->pretokeniser.steps[n - 1].kind == WEIR__BYTE_LEVEL;
    return code;
}

static int fill(weir__tokenizer *t, const weir__vocab *v, weir_error **error) {
    size_t bytes = 0;
    int code = find_model(t, v, error);
    if (code || (code = check(v, &bytes, error)))
        return code;
    t->size = v->size;
    t->bos = inside(v, v->bos);
    t->eos = inside(v, v->eos);
    t->unk = inside(v, v->unk);
    t->byte_fallback = v->byte_fallback;
    t->fuse_unk = v->fuse_unk;
    if (copy_pieces(t, v, bytes))
        return weir_fail(error, WEIR_ENOMEM, "%s: tokeniser of %zu pieces", v->source, v->size);
    if ((code = make_steps(t, v, error)) || (code = find_bytes(t, v, error)) || (code = weir__added_init(t, v, error)))
        return code;
    set_kinds(t, v);
    measure(t);
    if (keep_ends(t, v))
        return weir_fail(error, WEIR_ENOMEM, "%s: tokeniser of %zu pieces", v->source, v->size);
    if ((code = keep_bounds(t, v, v->before, v->n_before, &t->before, &t->n_before, error)) ||
        (code = keep_bounds(t, v, v->after, v->n_after, &t->after, &t->n_after, error)) || (code = weir__detokenise_init(t, v, error)))
        return code;
    return t->model->init(t, v, error);
}

int weir__tokenizer_new(weir_system *s, const weir__vocab *v, weir__tokenizer **out, weir_error **error) {
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
    weir__free(t->system, t->text_bytes.data);
    weir__free(t->system, t->firsts);
    weir__free(t->system, t->ends);
    weir__free(t->system, t->before);
    weir__free(t->system, t->after);
    weir__added_fini(t);
    weir__ops_fini(&t->normaliser);
    weir__ops_fini(&t->pretokeniser);
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
    return t->n_before > 0 && t->before[0] == t->bos;
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
