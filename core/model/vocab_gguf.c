/* vocab_gguf.c: tokenizer.ggml.* from a vocabulary (vocab_gguf.h). Each of GGUF's models has a test for whether it says the vocabulary exactly. */
#include "vocab_gguf.h"

#include "../text/bytes.h"
#include "gguf_internal.h"
#include "vocab_json.h"
#include "vocab_merges.h"
#include "vocab_pre.h"

#include <stdio.h>
#include <string.h>

/* How a vocabulary is said. */
typedef struct plan {
    weir_system *system;
    const weir__vocab *v;
    uint8_t *kinds;    /* [v->size] */
    const char *model; /* tokenizer.ggml.model, NULL: none says it */
    const char *pre;   /* tokenizer.ggml.pre */
    weir__spaces spaces;
    float *scores; /* [v->size] */
    int32_t bos, eos;
    const char *why; /* what GGUF has no words for */
} plan;

static bool refuse(plan *p, const char *why) {
    p->why = why;
    return false;
}

/* ---- what all models have ---- */

/* Beginning and end: at most one of each, and that the file's. */
static bool plan_bounds(plan *p) {
    const weir__vocab *v = p->v;
    p->bos = v->bos < 0 && v->n_before == 1 ? v->before[0] : v->bos;
    p->eos = v->eos < 0 && v->n_after == 1 ? v->after[0] : v->eos;
    if (v->n_before > 1 || v->n_after > 1 || (v->n_before == 1 && v->before[0] != p->bos) || (v->n_after == 1 && v->after[0] != p->eos))
        return refuse(p, "the tokens around a text");
    return true;
}

static bool is(weir__string piece, const char *text) {
    return piece.size == strlen(text) && memcmp(piece.data, text, piece.size) == 0;
}

/* Added tokens: GGUF says which, and nothing of the white space around them but what is known by name. */
static bool plan_added(plan *p, weir__vocab_said *said) {
    const weir__vocab *v = p->v;
    size_t found = 0, listed = 0;
    bool fits = true;
    for (size_t i = 0; i < v->n_added; i++) {
        const weir__added *a = &v->added[i];
        weir__string piece = v->pieces[a->id];
        bool takes = a->special && weir__gguf_takes_space(piece);
        fits &= piece.size == a->content.size && memcmp(piece.data, a->content.data, piece.size) == 0 && !a->single_word;
        fits &= a->lstrip == (a->special && is(piece, "<mask>")) && !(a->rstrip && !takes);
        fits &= a->special || !a->normalized || v->normaliser.size == 0;
        said->phi3 |= takes && a->rstrip;
        said->other |= takes && !a->rstrip;
        listed += p->kinds[a->id] == WEIR__CONTROL || p->kinds[a->id] == WEIR__USER;
    }
    for (size_t i = 0; i < v->size; i++)
        found += p->kinds[i] == WEIR__CONTROL || p->kinds[i] == WEIR__USER;
    return fits && found == listed && listed == v->n_added && !(said->phi3 && said->other) ? true
                                                                                           : refuse(p, "how its added tokens are found");
}

/* The byte that a piece is for, -1: none. */
static int byte_of(const plan *p, size_t id, bool byte_level) {
    weir__string piece = p->v->pieces[id];
    char bytes[2];
    size_t n = 0;
    if (!byte_level)
        return p->kinds[id] == WEIR__BYTE ? weir__byte_of_name(piece) : -1;
    bool one = p->kinds[id] == WEIR__NORMAL && piece.size <= 2 && weir__bytes_of(piece, bytes, &n) && n == 1;
    return one ? (unsigned char)bytes[0] : -1;
}

/* Whether every byte is a piece, so that nothing is unknown. */
static bool has_all_bytes(const plan *p, bool byte_level) {
    bool seen[256] = {false};
    size_t n = 0;
    for (size_t i = 0; i < p->v->size; i++) {
        int value = byte_of(p, i, byte_level);
        if (value >= 0 && !seen[value]) {
            seen[value] = true;
            n++;
        }
    }
    return n == 256;
}

/* ---- models ---- */

static bool plan_gpt2(plan *p) {
    static const weir__step decoder[] = {{.kind = WEIR__BYTE_LEVEL}};
    const weir__vocab *v = p->v;
    p->pre = weir__pre_name(v);
    if (!p->pre)
        return refuse(p, "its pre-tokeniser");
    if (!weir__steps_same(v->decoder, (weir__steps){decoder, 1}))
        return refuse(p, "its decoder");
    if (v->continuing_prefix.size + v->end_suffix.size > 0 || v->byte_fallback || (v->unk >= 0 && !has_all_bytes(p, true)))
        return refuse(p, "its model's settings");
    for (size_t i = 0; i < v->n_merges; i++)
        if (memchr(v->merges[i].left.data, ' ', v->merges[i].left.size))
            return refuse(p, "merges of pieces with spaces");
    p->model = "gpt2";
    return true;
}

/* A pre-tokeniser that finds nothing to cut: spaces are marks by then. */
static bool cuts_nothing(weir__steps steps) {
    const weir__step *s = steps.data;
    return steps.size == 0 || (steps.size == 1 && s->kind == WEIR__SPLIT && !s->regex && !s->invert && is(s->pattern, " "));
}

static bool plan_spaces(plan *p) {
    const weir__vocab *v = p->v;
    bool same = false;
    if (v->normaliser.size > 0 && v->normaliser.data[0].kind == WEIR__CHARSMAP)
        p->spaces.charsmap = v->normaliser.data[0].pattern;
    for (int i = 0; i < 4 && !same; i++) {
        weir__vocab other = {0};
        weir__step normaliser[8] = {{0}}, decoder[4] = {{0}};
        p->spaces.prefix = i & 1;
        p->spaces.remove_extra = i & 2;
        weir__gguf_spaces(&other, normaliser, decoder, &p->spaces);
        same = weir__steps_same(v->normaliser, other.normaliser) && weir__steps_same(v->decoder, other.decoder);
    }
    return same && cuts_nothing(v->pretokeniser) ? true : refuse(p, "what its text goes through");
}

static bool set_scores(plan *p) {
    bool exact = p->v->scores != NULL;
    for (size_t i = 0; i < p->v->size && exact; i++) {
        p->scores[i] = (float)p->v->scores[i];
        exact = (double)p->scores[i] == p->v->scores[i];
    }
    return exact ? true : refuse(p, "scores in double precision");
}

/* BPE of characters by scores, SentencePiece's way. */
static int plan_llama(plan *p, bool *fits, weir_error **error) {
    const weir__vocab *v = p->v;
    bool bpe = v->model == WEIR__BPE, same = true;
    int code = WEIR_OK;
    *fits = plan_spaces(p);
    if (*fits && (v->continuing_prefix.size + v->end_suffix.size > 0 || v->ignore_merges ||
                  (bpe && !(v->byte_fallback && has_all_bytes(p, false)) && (v->fuse_unk || v->unk < 0))))
        *fits = refuse(p, "its model's settings");
    if (*fits && bpe)
        code = weir__scores_of_merges(p->system, v, p->scores, &same, error);
    else if (*fits)
        *fits = set_scores(p);
    if (*fits && !same)
        *fits = refuse(p, "its merges as scores");
    p->model = "llama";
    p->pre = "default";
    return code;
}

static bool plan_t5(plan *p) {
    p->model = "t5";
    p->pre = "default";
    return plan_spaces(p) && set_scores(p);
}

static bool is_byte_level(const weir__vocab *v) {
    return v->pretokeniser.size > 0 && v->pretokeniser.data[v->pretokeniser.size - 1].kind == WEIR__BYTE_LEVEL;
}

static int make_plan(plan *p, weir__vocab_said *said, bool *fits, weir_error **error) {
    const weir__vocab *v = p->v;
    p->kinds = weir__vocab_kinds(p->system, v);
    p->scores = weir__alloc(p->system, (v->size + 1) * sizeof *p->scores);
    if (!p->kinds || !p->scores)
        return weir_fail(error, WEIR_ENOMEM, "%s: vocabulary", v->source);
    *fits = plan_bounds(p) && plan_added(p, said);
    if (!*fits)
        return WEIR_OK;
    if (v->model == WEIR__SPM || (v->model == WEIR__BPE && !is_byte_level(v)))
        return plan_llama(p, fits, error);
    *fits = v->model == WEIR__BPE       ? plan_gpt2(p)
            : v->model == WEIR__UNIGRAM ? plan_t5(p)
                                        : refuse(p, v->model == WEIR__WORDLEVEL ? "WordLevel" : "WordPiece as the library has it");
    return WEIR_OK;
}

/* ---- writing ---- */

static void put_id(weir__gguf_writer *w, const char *key, int32_t id, bool always) {
    if (id >= 0 || always)
        weir__gguf_put_u32(w, key, id >= 0 ? (uint32_t)id : UINT32_MAX); /* outside the vocabulary: none, where there is a default */
}

static void put_ids(const plan *p, weir__gguf_writer *w, bool always) {
    static const char *const names[] = {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
    const weir__vocab *v = p->v;
    put_id(w, "tokenizer.ggml.bos_token_id", p->bos, always);
    put_id(w, "tokenizer.ggml.eos_token_id", p->eos, always);
    put_id(w, "tokenizer.ggml.unknown_token_id", v->unk, always);
    put_id(w, "tokenizer.ggml.padding_token_id", v->pad, false);
    for (size_t i = 0, n = 0; i < v->n_ends && n < 2; i++)
        if (v->ends[i] != p->eos)
            put_id(w, names[n++], v->ends[i], true);
}

static void put_merges(const plan *p, weir__gguf_writer *w, char *bytes, weir__string *lines) {
    for (size_t i = 0; i < p->v->n_merges; i++) {
        weir__merge_pair m = p->v->merges[i];
        lines[i] = (weir__string){bytes, m.left.size + 1 + m.right.size};
        memcpy(bytes, m.left.data, m.left.size);
        bytes[m.left.size] = ' ';
        memcpy(bytes + m.left.size + 1, m.right.data, m.right.size);
        bytes += lines[i].size;
    }
    weir__gguf_put_strings(w, "tokenizer.ggml.merges", lines, p->v->n_merges);
}

static int write_merges(const plan *p, weir__gguf_writer *w, weir_error **error) {
    size_t size = 1;
    for (size_t i = 0; i < p->v->n_merges; i++)
        size += p->v->merges[i].left.size + p->v->merges[i].right.size + 1;
    char *bytes = weir__alloc(p->system, size);
    weir__string *lines = weir__alloc(p->system, (p->v->n_merges + 1) * sizeof *lines);
    int code = bytes && lines ? WEIR_OK : weir_fail(error, WEIR_ENOMEM, "%s: %zu merges", p->v->source, p->v->n_merges);
    if (!code)
        put_merges(p, w, bytes, lines);
    weir__free(p->system, bytes);
    weir__free(p->system, lines);
    return code;
}

/* Pieces, kinds and scores, with unused ones up to `size`. */
static int write_pieces(const plan *p, size_t size, weir__gguf_writer *w, weir_error **error) {
    const weir__vocab *v = p->v;
    size = size > v->size ? size : v->size;
    weir__string *pieces = weir__alloc(p->system, size * sizeof *pieces);
    int32_t *kinds = weir__alloc(p->system, size * sizeof *kinds);
    float *scores = weir__alloc(p->system, size * sizeof *scores);
    int code = pieces && kinds && scores ? WEIR_OK : weir_fail(error, WEIR_ENOMEM, "%s: vocabulary", v->source);
    for (size_t i = 0; i < size && !code; i++) {
        pieces[i] = i < v->size && v->pieces[i].size > 0 ? v->pieces[i] : (weir__string){"", 0};
        kinds[i] = i < v->size ? p->kinds[i] : WEIR__UNUSED;
        scores[i] = i < v->size ? p->scores[i] : 0;
    }
    if (!code) {
        weir__gguf_put_strings(w, "tokenizer.ggml.tokens", pieces, size);
        weir__gguf_put_i32s(w, "tokenizer.ggml.token_type", kinds, size);
        if (strcmp(p->model, "gpt2") != 0)
            weir__gguf_put_f32s(w, "tokenizer.ggml.scores", scores, size);
    }
    weir__free(p->system, pieces);
    weir__free(p->system, kinds);
    weir__free(p->system, scores);
    return code;
}

static int write_plan(const plan *p, size_t size, weir__gguf_writer *w, weir_error **error) {
    bool gpt2 = strcmp(p->model, "gpt2") == 0;
    weir__gguf_put_string(w, "tokenizer.ggml.model", p->model);
    weir__gguf_put_string(w, "tokenizer.ggml.pre", p->pre);
    int code = write_pieces(p, size, w, error);
    if (!code && gpt2)
        code = write_merges(p, w, error);
    put_ids(p, w, !gpt2);
    weir__gguf_put_bool(w, "tokenizer.ggml.add_bos_token", p->v->n_before > 0);
    weir__gguf_put_bool(w, "tokenizer.ggml.add_eos_token", p->v->n_after > 0);
    if (!gpt2) {
        weir__gguf_put_bool(w, "tokenizer.ggml.add_space_prefix", p->spaces.prefix);
        weir__gguf_put_bool(w, "tokenizer.ggml.remove_extra_whitespaces", p->spaces.remove_extra);
    }
    if (p->spaces.charsmap.size > 0)
        weir__gguf_put_bytes(w, "tokenizer.ggml.precompiled_charsmap", p->spaces.charsmap);
    return code;
}

/* All of tokenizer.json as one key. */
static int write_whole(const plan *p, weir__gguf_writer *w, weir__vocab_said *said, weir_error **error) {
    weir__json_writer json;
    weir_error *why = NULL;
    weir__json_write_init(&json, p->system, 0);
    int code = weir__vocab_write_json(p->system, p->v, &json, &why);
    if (!code) {
        snprintf(said->warning, sizeof said->warning,
                 "the tokeniser is written as a whole tokenizer.json, which weir reads: GGUF has no words of its own for %s", p->why);
        weir__gguf_put_string(w, "tokenizer.ggml.model", "none");
        weir__gguf_put_text(w, "tokenizer.huggingface.json", (weir__string){json.text, json.size});
        put_ids(p, w, false);
    } else if (code == WEIR_EUNSUPPORTED) {
        snprintf(said->warning, sizeof said->warning, "no tokeniser is written: %s", weir_error_text(why));
        code = WEIR_OK;
    } else {
        weir_fail(error, code, "%s", weir_error_text(why));
    }
    weir_error_free(why);
    weir__json_write_fini(&json);
    return code;
}

int weir__vocab_write_gguf(weir_system *s, const weir__vocab *v, size_t size, weir__gguf_writer *w, weir__vocab_said *said,
                           weir_error **error) {
    plan p = {.system = s, .v = v, .bos = v->bos, .eos = v->eos};
    bool fits = false;
    *said = (weir__vocab_said){0};
    int code = make_plan(&p, said, &fits, error);
    if (!code)
        code = fits ? write_plan(&p, size, w, error) : write_whole(&p, w, said, error);
    weir__free(s, p.kinds);
    weir__free(s, p.scores);
    return code;
}

void weir__templates_write_gguf(const weir__source *src, weir__gguf_writer *w) {
    weir__string text, name;
    char key[WEIR_GGUF_MAX_NAME + 64], plain[WEIR_GGUF_MAX_NAME];
    if (weir__source_template(src, NULL, &text))
        weir__gguf_put_text(w, "tokenizer.chat_template", text);
    for (uint32_t i = 0; weir__source_template_name(src, i, &name); i++) {
        if (name.size == 0 || name.size > WEIR_GGUF_MAX_NAME - 32)
            continue;
        memcpy(plain, name.data, name.size);
        plain[name.size] = 0;
        snprintf(key, sizeof key, "tokenizer.chat_template.%s", plain);
        if (weir__source_template(src, plain, &text))
            weir__gguf_put_text(w, key, text);
    }
}
