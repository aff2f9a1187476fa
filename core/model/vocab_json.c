/* vocab_json.c: tokenizer.json from a vocabulary: model, added tokens, what stands around a text (vocab_json.h). Its pipelines: vocab_json_steps.c. */
#include "vocab_json_internal.h"

#include "../text/index.h"
#include "vocab_merges.h"

#include <math.h>
#include <string.h>

void weir__put_key(weir__json_writer *w, const char *key) {
    weir__json_write_key(w, key, strlen(key));
}
void weir__put_text(weir__json_writer *w, const char *key, weir__string text) {
    weir__put_key(w, key);
    weir__json_write_string(w, text.data, text.size);
}
void weir__put_flag(weir__json_writer *w, const char *key, bool flag) {
    weir__put_key(w, key);
    weir__json_write_word(w, flag ? "true" : "false");
}
void weir__put_null(weir__json_writer *w, const char *key) {
    weir__put_key(w, key);
    weir__json_write_word(w, "null");
}

static bool has_piece(const weir__vocab *v, int64_t id) {
    return id >= 0 && (size_t)id < v->size && v->pieces[id].size > 0;
}

static void put_piece_or_null(weir__json_writer *w, const char *key, const weir__vocab *v, int32_t id) {
    if (has_piece(v, id))
        weir__put_text(w, key, v->pieces[id]);
    else
        weir__put_null(w, key);
}

/* ---- pieces ---- */

/* WordPiece with a mark before words (GGUF) as the library has it: with "##" before what continues one. */
static bool marks_words(const weir__vocab *v) {
    return v->model == WEIR__WORDPIECE && v->word_prefix.size > 0;
}

static bool begins_with(weir__string text, weir__string head) {
    return text.size >= head.size && memcmp(text.data, head.data, head.size) == 0;
}

static weir__string written_piece(const vocab_file *f, size_t id, char *room) {
    weir__string p = f->v->pieces[id], mark = f->v->word_prefix;
    uint8_t kind = f->kinds[id];
    if (!marks_words(f->v) || kind == WEIR__CONTROL || kind == WEIR__UNKNOWN || kind == WEIR__USER || p.size == 0)
        return p;
    if (begins_with(p, mark))
        return (weir__string){p.data + mark.size, p.size - mark.size};
    memcpy(room, "##", 2);
    memcpy(room + 2, p.data, p.size);
    return (weir__string){room, p.size + 2};
}

/* Makes f->written: pieces as they are written; a text that an earlier piece has is left out, and so are added tokens that the model does not have. */
static int set_written(vocab_file *f, weir_error **error) {
    const weir__vocab *v = f->v;
    size_t bytes = 1;
    for (size_t i = 0; i < v->size; i++)
        bytes += v->pieces[i].size + 2;
    f->written = weir__alloc(f->system, v->size * sizeof *f->written);
    char *to = f->bytes = weir__alloc(f->system, bytes);
    if (!f->written || !to || weir__index_init(f->system, &f->index, f->written, sizeof *f->written, v->size))
        return weir_fail(error, WEIR_ENOMEM, "%s: vocabulary", v->source);
    for (size_t i = 0; i < v->size; i++) {
        f->written[i] = written_piece(f, i, to);
        to += f->written[i].data == to ? f->written[i].size : 0;
        if (weir__utf8_valid(f->written[i].data, f->written[i].size) != f->written[i].size)
            return weir_fail(error, WEIR_EUNSUPPORTED, "%s: piece %zu is no UTF-8, which JSON cannot say", v->source, i);
        if (f->written[i].size > 0 && !weir__index_add(&f->index, (uint32_t)i))
            f->written[i].size = 0;
    }
    for (size_t i = 0; i < v->n_added; i++)
        if (v->added[i].outside && v->added[i].id != v->unk)
            f->written[v->added[i].id].size = 0;
    return WEIR_OK;
}

static void put_ids(vocab_file *f) {
    weir__json_writer *w = f->json;
    weir__put_key(w, "vocab");
    weir__json_write_open(w, '{');
    for (size_t i = 0; i < f->v->size; i++) {
        if (f->written[i].size == 0)
            continue;
        weir__json_write_key(w, f->written[i].data, f->written[i].size);
        weir__json_write_int(w, (int64_t)i);
    }
    weir__json_write_close(w, '}');
}

/* An array has no holes; what is behind its last piece are added tokens. */
static size_t scored_pieces(const vocab_file *f) {
    size_t end = f->v->size;
    while (end > 0 && (f->v->pieces[end - 1].size == 0 ||
                       ((f->kinds[end - 1] == WEIR__CONTROL || f->kinds[end - 1] == WEIR__USER) && f->v->scores[end - 1] == 0)))
        end--;
    return end;
}

static void put_scores(vocab_file *f) {
    weir__json_writer *w = f->json;
    size_t n = scored_pieces(f);
    weir__put_key(w, "vocab");
    weir__json_write_open(w, '[');
    for (size_t i = 0; i < n; i++) {
        weir__json_write_open(w, '[');
        weir__json_write_string(w, f->v->pieces[i].data, f->v->pieces[i].size);
        weir__json_write_real(w, f->v->scores[i]);
        weir__json_write_close(w, ']');
    }
    weir__json_write_close(w, ']');
}

/* "left right" if no piece has a space, else pairs. */
static void put_merges(vocab_file *f, const weir__merge_pair *merges, size_t n) {
    weir__json_writer *w = f->json;
    char line[2 * WEIR_MAX_PIECE + 1];
    bool spaces = false;
    for (size_t i = 0; i < n && !spaces; i++)
        spaces = memchr(merges[i].left.data, ' ', merges[i].left.size) || memchr(merges[i].right.data, ' ', merges[i].right.size);
    weir__put_key(w, "merges");
    weir__json_write_open(w, '[');
    for (size_t i = 0; i < n; i++) {
        weir__string left = merges[i].left, right = merges[i].right;
        if (spaces) {
            weir__json_write_open(w, '[');
            weir__json_write_string(w, left.data, left.size);
            weir__json_write_string(w, right.data, right.size);
            weir__json_write_close(w, ']');
        } else {
            memcpy(line, left.data, left.size);
            line[left.size] = ' ';
            memcpy(line + left.size + 1, right.data, right.size);
            weir__json_write_string(w, line, left.size + 1 + right.size);
        }
    }
    weir__json_write_close(w, ']');
}

/* ---- models ---- */

static void put_bpe(vocab_file *f, const weir__merge_pair *merges, size_t n) {
    static const char *const names[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    const weir__vocab *v = f->v;
    const weir__string texts[] = {v->continuing_prefix, v->end_suffix};
    weir__put_null(f->json, "dropout");
    put_piece_or_null(f->json, "unk_token", v, v->unk);
    for (size_t i = 0; i < 2; i++) {
        if (texts[i].size > 0)
            weir__put_text(f->json, names[i], texts[i]);
        else
            weir__put_null(f->json, names[i]);
    }
    weir__put_flag(f->json, "fuse_unk", v->model == WEIR__BPE && v->fuse_unk);
    weir__put_flag(f->json, "byte_fallback", v->byte_fallback);
    weir__put_flag(f->json, "ignore_merges", v->ignore_merges);
    put_ids(f);
    put_merges(f, merges, n);
}

/* SentencePiece's scores as merges. */
static int put_spm(vocab_file *f, weir_error **error) {
    weir__merge_pair *merges;
    size_t n;
    bool same;
    int code = weir__merges_of_scores(f->system, f->v, &merges, &n, &same, error);
    if (!code && same)
        put_bpe(f, merges, n);
    else if (!code)
        code = weir_fail(error, WEIR_EUNSUPPORTED, "%s: no list of merges does what these scores of pieces do", f->v->source);
    weir__free(f->system, merges);
    return code;
}

static int put_unigram(vocab_file *f, weir_error **error) {
    for (size_t i = 0; i < f->v->size; i++)
        if (!isfinite(f->v->scores[i]))
            return weir_fail(error, WEIR_EUNSUPPORTED, "%s: piece %zu has no finite score", f->v->source, i);
    weir__put_key(f->json, "unk_id");
    if (f->v->unk >= 0)
        weir__json_write_int(f->json, f->v->unk);
    else
        weir__json_write_word(f->json, "null");
    put_scores(f);
    weir__put_flag(f->json, "byte_fallback", f->v->byte_fallback);
    return WEIR_OK;
}

static void put_wordpiece(vocab_file *f) {
    const weir__vocab *v = f->v;
    weir__string prefix = marks_words(v) ? (weir__string){"##", 2} : v->continuing_prefix;
    put_piece_or_null(f->json, "unk_token", v, v->unk);
    weir__put_text(f->json, "continuing_subword_prefix", prefix);
    weir__put_key(f->json, "max_input_chars_per_word");
    weir__json_write_int(f->json, (int64_t)v->max_word);
    put_ids(f);
}

static void put_wordlevel(vocab_file *f) {
    put_piece_or_null(f->json, "unk_token", f->v, f->v->unk);
    put_ids(f);
}

static int put_model(vocab_file *f, weir_error **error) {
    static const char *const names[] = {[WEIR__BPE] = "BPE",
                                        [WEIR__SPM] = "BPE",
                                        [WEIR__UNIGRAM] = "Unigram",
                                        [WEIR__WORDPIECE] = "WordPiece",
                                        [WEIR__WORDLEVEL] = "WordLevel"};
    const weir__vocab *v = f->v;
    const char *name = names[v->model];
    int code = WEIR_OK;
    weir__put_key(f->json, "model");
    weir__json_write_open(f->json, '{');
    weir__put_text(f->json, "type", (weir__string){name, strlen(name)});
    if (v->model == WEIR__BPE)
        put_bpe(f, v->merges, v->n_merges);
    else if (v->model == WEIR__WORDPIECE)
        put_wordpiece(f);
    else if (v->model == WEIR__WORDLEVEL)
        put_wordlevel(f);
    else
        code = (v->model == WEIR__SPM ? put_spm : put_unigram)(f, error);
    weir__json_write_close(f->json, '}');
    return code;
}

/* ---- added tokens, and what stands around a text ---- */

static void put_added(vocab_file *f) {
    weir__json_writer *w = f->json;
    weir__put_key(w, "added_tokens");
    weir__json_write_open(w, '[');
    for (size_t i = 0; i < f->v->n_added; i++) {
        const weir__added *a = &f->v->added[i];
        weir__json_write_open(w, '{');
        weir__put_key(w, "id");
        weir__json_write_int(w, a->id);
        weir__put_text(w, "content", a->content);
        weir__put_flag(w, "single_word", a->single_word);
        weir__put_flag(w, "lstrip", a->lstrip);
        weir__put_flag(w, "rstrip", a->rstrip);
        weir__put_flag(w, "normalized", a->normalized);
        weir__put_flag(w, "special", a->special);
        weir__json_write_close(w, '}');
    }
    weir__json_write_close(w, ']');
}

static void put_part(weir__json_writer *w, const char *kind, weir__string id, int type) {
    weir__json_write_open(w, '{');
    weir__put_key(w, kind);
    weir__json_write_open(w, '{');
    weir__put_text(w, "id", id);
    weir__put_key(w, "type_id");
    weir__json_write_int(w, type);
    weir__json_write_close(w, '}');
    weir__json_write_close(w, '}');
}

static void put_parts(vocab_file *f, const int32_t *ids, size_t n, int type) {
    for (size_t i = 0; i < n; i++)
        put_part(f->json, "SpecialToken", f->v->pieces[ids[i]], type);
}

static void put_template(vocab_file *f, const char *key, bool pair) {
    const weir__vocab *v = f->v;
    weir__put_key(f->json, key);
    weir__json_write_open(f->json, '[');
    put_parts(f, v->before, v->n_before, 0);
    put_part(f->json, "Sequence", (weir__string){"A", 1}, 0);
    put_parts(f, v->after, v->n_after, 0);
    if (pair) {
        put_parts(f, v->before, v->n_after > 0 ? 0 : v->n_before, 1);
        put_part(f->json, "Sequence", (weir__string){"B", 1}, 1);
        put_parts(f, v->after, v->n_after, 1);
    }
    weir__json_write_close(f->json, ']');
}

static void put_special(vocab_file *f, const int32_t *ids, size_t n, const int32_t *others, size_t n_others) {
    for (size_t i = 0; i < n; i++) {
        bool seen = false;
        for (size_t k = 0; k < i; k++)
            seen |= ids[k] == ids[i];
        for (size_t k = 0; k < n_others; k++)
            seen |= others[k] == ids[i];
        if (seen)
            continue;
        weir__string piece = f->v->pieces[ids[i]];
        weir__json_write_key(f->json, piece.data, piece.size);
        weir__json_write_open(f->json, '{');
        weir__put_text(f->json, "id", piece);
        weir__put_key(f->json, "ids");
        weir__json_write_open(f->json, '[');
        weir__json_write_int(f->json, ids[i]);
        weir__json_write_close(f->json, ']');
        weir__put_key(f->json, "tokens");
        weir__json_write_open(f->json, '[');
        weir__json_write_string(f->json, piece.data, piece.size);
        weir__json_write_close(f->json, ']');
        weir__json_write_close(f->json, '}');
    }
}

static void put_post(vocab_file *f) {
    const weir__vocab *v = f->v;
    if (v->n_before + v->n_after == 0) {
        weir__put_null(f->json, "post_processor");
        return;
    }
    weir__put_key(f->json, "post_processor");
    weir__json_write_open(f->json, '{');
    weir__put_text(f->json, "type", (weir__string){"TemplateProcessing", 18});
    put_template(f, "single", false);
    put_template(f, "pair", true);
    weir__put_key(f->json, "special_tokens");
    weir__json_write_open(f->json, '{');
    put_special(f, v->before, v->n_before, NULL, 0);
    put_special(f, v->after, v->n_after, v->before, v->n_before);
    weir__json_write_close(f->json, '}');
    weir__json_write_close(f->json, '}');
}

static int put_file(vocab_file *f, weir_error **error) {
    static const weir__step joined[] = {{.kind = WEIR__WORDPIECE_JOIN, .content = {"##", 2}}};
    const weir__vocab *v = f->v;
    weir__steps decoder = marks_words(v) ? (weir__steps){joined, 1} : v->decoder;
    weir__json_write_open(f->json, '{');
    weir__put_text(f->json, "version", (weir__string){"1.0", 3});
    weir__put_null(f->json, "truncation");
    weir__put_null(f->json, "padding");
    put_added(f);
    int code = weir__put_steps(f, WEIR__LIST_NORMALISER, v->normaliser, error);
    if (!code)
        code = weir__put_steps(f, WEIR__LIST_PRETOKENISER, v->pretokeniser, error);
    put_post(f);
    if (!code)
        code = weir__put_steps(f, WEIR__LIST_DECODER, decoder, error);
    if (!code)
        code = put_model(f, error);
    weir__json_write_close(f->json, '}');
    return code ? code : f->json->code ? weir_fail(error, f->json->code, "%s: no memory for tokenizer.json", v->source) : WEIR_OK;
}

int weir__vocab_write_json(weir_system *s, const weir__vocab *v, weir__json_writer *w, weir_error **error) {
    vocab_file f = {.system = s, .v = v, .json = w, .kinds = weir__vocab_kinds(s, v)};
    int code = f.kinds ? set_written(&f, error) : weir_fail(error, WEIR_ENOMEM, "%s: vocabulary", v->source);
    if (!code)
        code = put_file(&f, error);
    weir__index_fini(s, &f.index);
    weir__free(s, f.written);
    weir__free(s, f.bytes);
    weir__free(s, f.kinds);
    return code;
}

/* ---- the small files beside it ---- */

static bool stands(const int32_t *ids, size_t n, size_t at, int32_t id) {
    return at < n && ids[at] == id;
}

static void put_templates(const weir__source *src, weir__json_writer *w) {
    weir__string text, name;
    bool main = weir__source_template(src, NULL, &text);
    if (!weir__source_template_name(src, 0, &name)) {
        if (main)
            weir__put_text(w, "chat_template", text);
        return;
    }
    weir__put_key(w, "chat_template");
    weir__json_write_open(w, '[');
    for (uint32_t i = 0; main || weir__source_template_name(src, i, &name); i += !main, main = false) {
        char key[256];
        if (main)
            name = (weir__string){"default", 7};
        if (name.size >= sizeof key)
            continue;
        memcpy(key, name.data, name.size);
        key[name.size] = 0;
        if (!main && !weir__source_template(src, key, &text))
            continue;
        weir__json_write_open(w, '{');
        weir__put_text(w, "name", name);
        weir__put_text(w, "template", text);
        weir__json_write_close(w, '}');
    }
    weir__json_write_close(w, ']');
}

void weir__vocab_write_config(const weir__vocab *v, const weir__source *src, weir__json_writer *w) {
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "pad_token"};
    const int32_t ids[] = {v->bos, v->eos, v->unk, v->pad};
    weir__json_write_open(w, '{');
    if (has_piece(v, v->bos))
        weir__put_flag(w, "add_bos_token", stands(v->before, v->n_before, 0, v->bos));
    if (has_piece(v, v->eos))
        weir__put_flag(w, "add_eos_token", stands(v->after, v->n_after, v->n_after - 1, v->eos));
    for (size_t i = 0; i < 4; i++)
        if (has_piece(v, ids[i]))
            weir__put_text(w, names[i], v->pieces[ids[i]]);
    if (src)
        put_templates(src, w);
    weir__put_flag(w, "clean_up_tokenization_spaces", false);
    weir__put_text(w, "tokenizer_class", (weir__string){"PreTrainedTokenizerFast", 23});
    weir__json_write_close(w, '}');
}

static void put_id(weir__json_writer *w, const char *key, const weir__vocab *v, int32_t id) {
    if (id < 0 || (size_t)id >= v->size)
        return;
    weir__put_key(w, key);
    weir__json_write_int(w, id);
}

void weir__vocab_write_generation(const weir__vocab *v, weir__json_writer *w) {
    weir__json_write_open(w, '{');
    put_id(w, "bos_token_id", v, v->bos);
    bool more = false;
    for (size_t i = 0; i < v->n_ends; i++)
        more |= v->ends[i] != v->eos;
    if (more) {
        weir__put_key(w, "eos_token_id");
        weir__json_write_open(w, '[');
        if (v->eos >= 0)
            weir__json_write_int(w, v->eos);
        for (size_t i = 0; i < v->n_ends; i++)
            if (v->ends[i] != v->eos)
                weir__json_write_int(w, v->ends[i]);
        weir__json_write_close(w, ']');
    } else {
        put_id(w, "eos_token_id", v, v->eos);
    }
    put_id(w, "pad_token_id", v, v->pad);
    weir__json_write_close(w, '}');
}
