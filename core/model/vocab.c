/* vocab.c: from the tokenizer.ggml.* keys of a GGUF file to a tokeniser. Checks types and lengths; what pieces mean is core/text's. */
#include "gguf_internal.h"
#include "vocab_pre.h"

#include <stdio.h>
#include <string.h>

#define MARK "\xE2\x96\x81" /* U+2581, a space in SentencePiece's pieces */

/* Arrays made of the file's for the time of weir__tokenizer_new. */
typedef struct arrays {
    weir__string *pieces, *lines;
    weir__merge_pair *merges;
    double *scores;
    int32_t *kinds;
    weir__added *added;
    char *model, *pre;
    weir__step normaliser[8], decoder[4];
    int32_t before[1], after[1], ends[2];
} arrays;

/* What the file says beside its arrays, or else what its model is known for (llama.cpp's defaults). */
typedef struct settings {
    bool add_bos, add_eos, add_sep;
    int32_t sep;
    weir__spaces spaces;
} settings;

static weir__step normal(enum weir__step_kind kind, const char *pattern, bool regex, const char *content) {
    return (weir__step){.kind = kind, .pattern = {pattern, strlen(pattern)}, .regex = regex, .content = {content, strlen(content)}};
}

/* An array key of one of two element types and, if `size` is not 0, of that many elements. NULL and 0: absent. */
static int want_array(const weir__gguf *g, const char *name, uint32_t type, uint32_t other, uint64_t size, const weir__gguf_key **out,
                      weir_error **error) {
    const weir__gguf_key *key = *out = weir__gguf_find(g, name);
    if (!key)
        return WEIR_OK;
    if (key->type != WEIR__GGUF_ARRAY)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"%s\": found %s, wanted an array of %s", weir__gguf_path(g), name,
                         weir__gguf_type_name(key->type), weir__gguf_type_name(type));
    if (key->element != type && key->element != other)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"%s\": found an array of %s, wanted an array of %s", weir__gguf_path(g), name,
                         weir__gguf_type_name(key->element), weir__gguf_type_name(type));
    if (size > 0 && key->count != size)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"%s\": found %llu elements, wanted %llu, one a token", weir__gguf_path(g), name,
                         (unsigned long long)key->count, (unsigned long long)size);
    return WEIR_OK;
}

static int no_memory(const weir__gguf *g, weir_error **error) {
    return weir_fail(error, WEIR_ENOMEM, "%s: vocabulary", weir__gguf_path(g));
}

static int read_strings(const weir__gguf *g, const weir__gguf_key *key, weir__string **out, weir_error **error) {
    *out = weir__alloc(g->system, ((size_t)key->count + 1) * sizeof **out);
    if (!*out)
        return no_memory(g, error);
    const uint8_t *at = key->data;
    for (uint64_t i = 0; i < key->count; i++)
        (*out)[i] = weir__gguf_next_string(&at);
    return WEIR_OK;
}

/* Numbers of 4 bytes, as they lie. */
static int read_words(const weir__gguf *g, const weir__gguf_key *key, void **out, weir_error **error) {
    uint32_t *words = *out = weir__alloc(g->system, ((size_t)key->count + 1) * sizeof *words);
    if (!words)
        return no_memory(g, error);
    for (uint64_t i = 0; i < key->count; i++)
        words[i] = weir__le32(key->data + 4 * i);
    return WEIR_OK;
}

static int read_pieces(const weir__gguf *g, weir__vocab *v, arrays *a, weir_error **error) {
    const weir__gguf_key *tokens;
    int code = want_array(g, "tokenizer.ggml.tokens", WEIR__GGUF_STRING, WEIR__GGUF_STRING, 0, &tokens, error);
    if (code)
        return code;
    if (!tokens || tokens->count == 0 || tokens->count > WEIR_MAX_VOCAB)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"tokenizer.ggml.tokens\": found %llu pieces, wanted 1 to %d", weir__gguf_path(g),
                         tokens ? (unsigned long long)tokens->count : 0, WEIR_MAX_VOCAB);
    code = read_strings(g, tokens, &a->pieces, error);
    v->pieces = a->pieces;
    v->size = (size_t)tokens->count;
    return code;
}

static int read_scores(const weir__gguf *g, weir__vocab *v, arrays *a, weir_error **error) {
    const weir__gguf_key *key;
    int code = want_array(g, "tokenizer.ggml.scores", WEIR__GGUF_F32, WEIR__GGUF_F32, v->size, &key, error);
    if (code || !key)
        return code;
    v->scores = a->scores = weir__alloc(g->system, v->size * sizeof *a->scores);
    if (!a->scores)
        return no_memory(g, error);
    for (size_t i = 0; i < v->size; i++) {
        uint32_t bits = weir__le32(key->data + 4 * i);
        float score;
        memcpy(&score, &bits, sizeof score);
        a->scores[i] = score;
    }
    return WEIR_OK;
}

static int read_kinds(const weir__gguf *g, weir__vocab *v, arrays *a, weir_error **error) {
    const weir__gguf_key *key;
    void *words = NULL;
    int code = want_array(g, "tokenizer.ggml.token_type", WEIR__GGUF_I32, WEIR__GGUF_U32, v->size, &key, error);
    if (!code && key)
        code = read_words(g, key, &words, error);
    v->kinds = a->kinds = words;
    for (size_t i = 0; i < v->size && a->kinds; i++)
        v->byte_fallback |= a->kinds[i] == WEIR__BYTE;
    return code;
}

static int split_merges(const weir__gguf *g, size_t n, arrays *a, weir_error **error) {
    a->merges = weir__alloc(g->system, (n + 1) * sizeof *a->merges);
    if (!a->merges)
        return no_memory(g, error);
    for (size_t i = 0; i < n; i++) {
        weir__string line = a->lines[i];
        char shown[96];
        const char *gap = line.size > 2 ? memchr(line.data + 1, ' ', line.size - 2) : NULL;
        if (!gap)
            return weir_fail(error, WEIR_EFORMAT, "%s: key \"tokenizer.ggml.merges\": merge %zu: found \"%s\", wanted two pieces",
                             weir__gguf_path(g), i, weir__quote(shown, sizeof shown, line.data, line.size));
        size_t left = (size_t)(gap - line.data);
        a->merges[i] = (weir__merge_pair){{line.data, left}, {gap + 1, line.size - left - 1}};
    }
    return WEIR_OK;
}

static int read_merges(const weir__gguf *g, weir__vocab *v, arrays *a, weir_error **error) {
    const weir__gguf_key *key;
    int code = want_array(g, "tokenizer.ggml.merges", WEIR__GGUF_STRING, WEIR__GGUF_STRING, 0, &key, error);
    if (code)
        return code;
    if (!key)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"tokenizer.ggml.merges\": not found, but needed", weir__gguf_path(g));
    code = read_strings(g, key, &a->lines, error);
    if (!code)
        code = split_merges(g, (size_t)key->count, a, error);
    v->merges = a->merges;
    v->n_merges = (size_t)key->count;
    return code;
}

/* A token id. Numbers outside the vocabulary mean that there is none. */
int weir__gguf_id(const weir__gguf *g, const char *name, const weir__vocab *v, int32_t *id, weir_error **error) {
    int64_t found = *id;
    int code = weir__gguf_get_int(g, name, false, INT64_MIN, INT64_MAX, &found, error);
    *id = found >= 0 && (uint64_t)found < v->size ? (int32_t)found : -1;
    return code;
}

/* A string key, copied with an ending zero. */
static int read_name(const weir__gguf *g, const char *name, char **out, weir_error **error) {
    weir__string s = {NULL, 0};
    int code = weir__gguf_get_string(g, name, false, &s, error);
    if (code || !s.data)
        return code;
    *out = weir__alloc(g->system, s.size + 1);
    if (!*out)
        return no_memory(g, error);
    memcpy(*out, s.data, s.size);
    return WEIR_OK;
}

/* ---- models ---- */

/* SentencePiece's spaces: one before the text, all of them as marks; and back. */
void weir__gguf_spaces(weir__vocab *v, weir__step normaliser[8], weir__step decoder[4], const weir__spaces *o) {
    size_t n = 0;
    if (o->charsmap.size > 0)
        normaliser[n++] = (weir__step){.kind = WEIR__CHARSMAP, .pattern = o->charsmap};
    if (o->remove_extra) {
        normaliser[n++] = normal(WEIR__REPLACE, " {2,}", true, " ");
        normaliser[n++] = normal(WEIR__REPLACE, "\\A | \\z", true, "");
    }
    if (o->prefix)
        normaliser[n++] = normal(WEIR__PREPEND, "", false, MARK);
    normaliser[n++] = normal(WEIR__REPLACE, " ", false, MARK);
    v->normaliser = (weir__steps){normaliser, n};
    decoder[0] = normal(WEIR__REPLACE, MARK, false, " ");
    decoder[1].kind = WEIR__BYTE_FALLBACK;
    decoder[2].kind = WEIR__FUSE;
    decoder[3] = (weir__step){.kind = WEIR__STRIP_DECODED, .content = {" ", 1}, .start = 1};
    v->decoder = (weir__steps){decoder, o->prefix ? 4 : 3};
}

static int make_spm(const weir__gguf *g, weir__vocab *v, arrays *a, const settings *o, weir_error **error) {
    (void)g;
    (void)error;
    v->model = WEIR__SPM;
    weir__gguf_spaces(v, a->normaliser, a->decoder, &o->spaces);
    return WEIR_OK;
}

static int make_unigram(const weir__gguf *g, weir__vocab *v, arrays *a, const settings *o, weir_error **error) {
    (void)g;
    (void)error;
    v->model = WEIR__UNIGRAM;
    v->fuse_unk = true;
    weir__gguf_spaces(v, a->normaliser, a->decoder, &o->spaces);
    return WEIR_OK;
}

/* Files know nothing of a vocabulary's case; one without capitals was made from lower case. */
static bool has_capitals(const weir__vocab *v) {
    bool any = false;
    for (size_t i = 0; i < v->size && !any; i++) {
        bool plain = !v->kinds || v->kinds[i] == WEIR__NORMAL;
        for (size_t k = 0; plain && k < v->pieces[i].size && !any; k++)
            any = v->pieces[i].data[0] != '[' && v->pieces[i].data[k] >= 'A' && v->pieces[i].data[k] <= 'Z';
    }
    return any;
}

static int make_wordpiece(const weir__gguf *g, weir__vocab *v, arrays *a, const settings *o, weir_error **error) {
    static const weir__step split[] = {{.kind = WEIR__BERT_SPLIT}};
    bool lower = !has_capitals(v);
    (void)g;
    (void)o;
    (void)error;
    v->model = WEIR__WORDPIECE;
    a->normaliser[0] = (weir__step){.kind = WEIR__BERT, .clean_text = true, .chinese = true, .strip_accents = lower, .lowercase = lower};
    v->normaliser = (weir__steps){a->normaliser, 1};
    v->pretokeniser = (weir__steps){split, 1};
    a->decoder[0] = normal(WEIR__REPLACE, MARK, false, " ");
    a->decoder[1].kind = WEIR__FUSE;
    a->decoder[2] = (weir__step){.kind = WEIR__STRIP_DECODED, .content = {" ", 1}, .start = 1};
    v->decoder = (weir__steps){a->decoder, 3};
    v->word_prefix = (weir__string){MARK, sizeof MARK - 1};
    v->max_word = 100; /* as in every published BERT */
    return WEIR_OK;
}

static int make_bpe(const weir__gguf *g, weir__vocab *v, arrays *a, const settings *o, weir_error **error) {
    const weir__pre_row *row = NULL;
    (void)o;
    int code = weir__pre_find(a->pre ? a->pre : "", v->source, &row, error);
    if (code)
        return code;
    v->model = WEIR__BPE;
    v->normaliser = row->normaliser;
    v->pretokeniser = row->pretokeniser;
    v->ignore_merges = row->ignore_merges;
    a->decoder[0].kind = WEIR__BYTE_LEVEL;
    v->decoder = (weir__steps){a->decoder, 1};
    v->byte_fallback = false;
    if (v->unk >= 0 && (!v->kinds || v->kinds[v->unk] != WEIR__UNKNOWN))
        v->unk = -1;
    return read_merges(g, v, a, error);
}

static const struct model {
    const char *name;
    int (*make)(const weir__gguf *g, weir__vocab *v, arrays *a, const settings *o, weir_error **error);
    int32_t bos, eos, unk, sep;
    settings settings;
} models[] = {
    {"gpt2", make_bpe, -1, -1, -1, -1, {0}},
    {"llama", make_spm, 1, 2, 0, -1, {.add_bos = true, .spaces.prefix = true}},
    {"t5", make_unigram, -1, 1, 2, -1, {.add_eos = true, .spaces.prefix = true}},
    {"bert", make_wordpiece, 101, -1, 100, 102, {.add_bos = true, .add_sep = true}},
};
enum { MODELS = sizeof models / sizeof models[0] };

static int find_model(const weir__gguf *g, const char *name, const struct model **out, weir_error **error) {
    char known[128] = "", shown[96];
    size_t used = 0;
    for (size_t i = 0; i < MODELS; i++) {
        if (strcmp(models[i].name, name) == 0) {
            *out = &models[i];
            return WEIR_OK;
        }
        used += (size_t)snprintf(known + used, sizeof known - used, "%s\"%s\"", used ? ", " : "", models[i].name);
    }
    return weir_fail(error, WEIR_EUNSUPPORTED, "%s: tokeniser model \"%s\" is not known, known are %s", weir__gguf_path(g),
                     weir__quote(shown, sizeof shown, name, strlen(name)), known);
}

/* ---- settings ---- */

static int read_charsmap(const weir__gguf *g, weir__string *blob, weir_error **error) {
    const weir__gguf_key *key;
    int code = want_array(g, "tokenizer.ggml.precompiled_charsmap", WEIR__GGUF_U8, WEIR__GGUF_I8, 0, &key, error);
    if (!code && key)
        *blob = (weir__string){(const char *)key->data, (size_t)key->count};
    return code;
}

/* Further ids that end a turn. */
int weir__gguf_ends(const weir__gguf *g, weir__vocab *v, int32_t *ends, weir_error **error) {
    static const char *const names[] = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
    int code = WEIR_OK;
    for (size_t i = 0; i < 2 && !code; i++) {
        ends[v->n_ends] = -1;
        code = weir__gguf_id(g, names[i], v, &ends[v->n_ends], error);
        v->n_ends += ends[v->n_ends] >= 0;
    }
    return code;
}

static int read_settings(const weir__gguf *g, weir__vocab *v, settings *o, weir_error **error) {
    static const char *const bos[] = {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.cls_token_id"};
    static const char *const sep[] = {"tokenizer.ggml.seperator_token_id",
                                      "tokenizer.ggml.separator_token_id"}; /* the first is how it is written */
    int code = WEIR_OK;
    for (size_t i = 0; i < 2 && !code; i++) {
        code = weir__gguf_id(g, bos[i], v, &v->bos, error);
        if (!code)
            code = weir__gguf_id(g, sep[i], v, &o->sep, error);
    }
    if (code || (code = weir__gguf_id(g, "tokenizer.ggml.eos_token_id", v, &v->eos, error)) ||
        (code = weir__gguf_id(g, "tokenizer.ggml.unknown_token_id", v, &v->unk, error)) ||
        (code = weir__gguf_id(g, "tokenizer.ggml.padding_token_id", v, &v->pad, error)) ||
        (code = weir__gguf_get_bool(g, "tokenizer.ggml.add_bos_token", false, &o->add_bos, error)) ||
        (code = weir__gguf_get_bool(g, "tokenizer.ggml.add_eos_token", false, &o->add_eos, error)) ||
        (code = weir__gguf_get_bool(g, "tokenizer.ggml.add_sep_token", false, &o->add_sep, error)) ||
        (code = weir__gguf_get_bool(g, "tokenizer.ggml.add_space_prefix", false, &o->spaces.prefix, error)) ||
        (code = weir__gguf_get_bool(g, "tokenizer.ggml.remove_extra_whitespaces", false, &o->spaces.remove_extra, error)))
        return code;
    return read_charsmap(g, &o->spaces.charsmap, error);
}

static void set_bounds(weir__vocab *v, arrays *a, const settings *o) {
    int32_t last = o->add_sep ? o->sep : o->add_eos ? v->eos : -1;
    a->before[0] = v->bos;
    a->after[0] = last;
    v->before = a->before;
    v->after = a->after;
    v->n_before = o->add_bos && v->bos >= 0;
    v->n_after = last >= 0;
}

static bool is(weir__string piece, const char *text) {
    return piece.size == strlen(text) && memcmp(piece.data, text, piece.size) == 0;
}

bool weir__gguf_phi3(weir__string found) {
    char name[64];
    size_t n = found.size < sizeof name - 1 ? found.size : sizeof name - 1;
    if (n > 0)
        memcpy(name, found.data, n);
    name[n] = 0;
    return strcasestr(name, "phi-3") || strcasestr(name, "phi3");
}

bool weir__gguf_takes_space(weir__string piece) {
    bool turn = piece.size > 2 && memcmp(piece.data, "<|", 2) == 0;
    return is(piece, "</s>") || (turn && !is(piece, "<|endoftext|>"));
}

/* Control and user-defined pieces are found in texts; the attributes that GGUF leaves out are known by name. */
static int list_added(const weir__gguf *g, weir__vocab *v, arrays *a, weir_error **error) {
    size_t n = 0;
    weir__string name = {"", 0};
    bool phi3 = weir__gguf_get_string(g, "general.name", false, &name, NULL) == WEIR_OK && weir__gguf_phi3(name);
    for (size_t i = 0; i < v->size && v->kinds; i++)
        n += v->kinds[i] == WEIR__CONTROL || v->kinds[i] == WEIR__USER;
    v->added = a->added = weir__alloc(g->system, (n + 1) * sizeof *a->added);
    if (!a->added)
        return no_memory(g, error);
    for (size_t i = 0; i < v->size && v->kinds; i++) {
        weir__string piece = v->pieces[i];
        bool special = v->kinds[i] == WEIR__CONTROL;
        if (piece.size == 0 || (!special && v->kinds[i] != WEIR__USER))
            continue;
        a->added[v->n_added++] = (weir__added){.id = (int32_t)i,
                                               .content = piece,
                                               .special = special,
                                               .lstrip = special && is(piece, "<mask>"),
                                               .rstrip = phi3 && special && weir__gguf_takes_space(piece)};
    }
    return WEIR_OK;
}

static int read_vocab(const weir__gguf *g, arrays *a, weir__vocab *v, weir_error **error) {
    const struct model *m = NULL;
    int code = find_model(g, a->model, &m, error);
    if (code)
        return code;
    settings o = m->settings;
    const weir__pre_row *row;
    o.sep = m->sep;
    *v = (weir__vocab){.source = weir__gguf_path(g), .bos = m->bos, .eos = m->eos, .unk = m->unk, .pad = -1, .ends = a->ends};
    if ((code = read_name(g, "tokenizer.ggml.pre", &a->pre, error)))
        return code;
    o.add_bos |= m->make == make_bpe && a->pre && weir__pre_find(a->pre, "", &row, NULL) == WEIR_OK && row->add_bos;
    if ((code = read_pieces(g, v, a, error)) || (code = read_scores(g, v, a, error)) || (code = read_kinds(g, v, a, error)) ||
        (code = read_settings(g, v, &o, error)) || (code = weir__gguf_ends(g, v, a->ends, error)) || (code = list_added(g, v, a, error)))
        return code;
    set_bounds(v, a, &o);
    return m->make(g, v, a, &o, error);
}

int weir__gguf_vocab(const weir__gguf *g, weir__vocab_fn *fn, void *data, weir_error **error) {
    arrays a = {0};
    weir__vocab v;
    int code = read_name(g, "tokenizer.ggml.model", &a.model, error);
    bool own = a.model && strcmp(a.model, "none") != 0 && strcmp(a.model, "no_vocab") != 0;
    if (!code && !own)
        code = weir__gguf_embedded_vocab(g, fn, data, error);
    else if (!code && !(code = read_vocab(g, &a, &v, error)))
        code = fn(data, &v, error);
    weir__free(g->system, a.pieces);
    weir__free(g->system, a.lines);
    weir__free(g->system, a.merges);
    weir__free(g->system, a.added);
    weir__free(g->system, a.scores);
    weir__free(g->system, a.kinds);
    weir__free(g->system, a.model);
    weir__free(g->system, a.pre);
    return code;
}

int weir__gguf_tokenizer(const weir__gguf *g, weir__tokenizer **out, weir_error **error) {
    weir__making making = {g->system, out, ""};
    *out = NULL;
    return weir__gguf_vocab(g, weir__make_tokenizer, &making, error);
}
