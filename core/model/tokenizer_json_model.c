/* tokenizer_json_model.c: the model of a tokenizer.json: its kind and settings, pieces, merges. */
#include "tokenizer_json_internal.h"

#include <string.h>

enum { TYPE, VOCAB, MERGES, UNK_TOKEN, UNK_ID, DROPOUT, CONTINUING, SUFFIX, FUSE, FALLBACK, IGNORE, LONGEST, FIELDS };
static const char *const fields[FIELDS] = {"type",
                                           "vocab",
                                           "merges",
                                           "unk_token",
                                           "unk_id",
                                           "dropout",
                                           "continuing_subword_prefix",
                                           "end_of_word_suffix",
                                           "fuse_unk",
                                           "byte_fallback",
                                           "ignore_merges",
                                           "max_input_chars_per_word"};

static const struct model {
    const char *name;
    enum weir__model_kind kind;
    uint32_t fields; /* a bit each: those that it has */
} models[] = {
    {"BPE", WEIR__BPE,
     1 << VOCAB | 1 << MERGES | 1 << UNK_TOKEN | 1 << DROPOUT | 1 << CONTINUING | 1 << SUFFIX | 1 << FUSE | 1 << FALLBACK | 1 << IGNORE},
    {"Unigram", WEIR__UNIGRAM, 1 << VOCAB | 1 << UNK_ID | 1 << FALLBACK},
    {"WordPiece", WEIR__WORDPIECE, 1 << VOCAB | 1 << UNK_TOKEN | 1 << CONTINUING | 1 << LONGEST},
    {"WordLevel", WEIR__WORDLEVEL, 1 << VOCAB | 1 << UNK_TOKEN},
};
enum { MODELS = sizeof models / sizeof models[0] };

/* The model by its type; files from before there was one are told apart by what they have. */
static const struct model *find_model(const weir__json *at, weir__json_text type) {
    if (!at[TYPE].text)
        return &models[at[MERGES].text ? 0 : at[UNK_ID].text ? 1 : 2];
    for (size_t i = 0; i < MODELS; i++)
        if (weir__json_equal(type, models[i].name))
            return &models[i];
    return NULL;
}

static int choose_model(weir__json j, const weir__json *at, const struct model **out) {
    char name[48];
    weir__json_text type = {0};
    int code = weir__at_text(at[TYPE], &type);
    if (code)
        return code;
    const struct model *m = *out = find_model(at, type);
    if (!m)
        weir__json_fail(&j, WEIR_EUNSUPPORTED, "model \"%s\" is not supported; known: BPE, Unigram, WordPiece, WordLevel",
                        weir__quote(name, sizeof name, type.data, type.size));
    for (int i = VOCAB; m && i < FIELDS; i++)
        if (at[i].text && !(m->fields & 1u << i))
            weir__json_fail(&j, WEIR_EUNSUPPORTED, "model %s: setting \"%s\" is not supported", m->name, fields[i]);
    if (m && !at[VOCAB].text)
        weir__json_fail(&j, WEIR_EFORMAT, "model %s: found no \"vocab\"", m->name);
    return j.code;
}

/* ---- pieces: an object of ids, or an array of pieces with scores ---- */

static int count_pieces(weir__json at, bool scores, size_t *count, int64_t *highest) {
    weir__json_text key;
    int64_t id;
    if (scores) {
        for (weir__json_array(&at); weir__json_next(&at);)
            ++*count;
        *highest = (int64_t)*count - 1;
        return at.code;
    }
    for (weir__json_object(&at); weir__json_next_key(&at, &key); ++*count) {
        if (weir__json_int(&at, &id) && (id < 0 || id >= WEIR__MOST_PIECES))
            weir__json_fail(&at, WEIR_EFORMAT, "found id %lld, wanted 0 to %d", (long long)id, WEIR__MOST_PIECES - 1);
        *highest = id > *highest ? id : *highest;
    }
    return at.code;
}

/* Ids may leave holes, but not so many that memory follows from a number instead of from the file's size. */
static int make_room(weir__build *b, bool scores, size_t count, int64_t highest, weir_error **error) {
    enum { HOLES = 4096 };
    if (count == 0 || highest >= WEIR__MOST_PIECES)
        return weir_fail(error, WEIR_EFORMAT, "%s: found %lld pieces, wanted 1 to %d", b->source, (long long)highest + 1,
                         WEIR__MOST_PIECES);
    if ((uint64_t)highest >= 2 * (uint64_t)count + HOLES)
        return weir_fail(error, WEIR_EFORMAT, "%s: found id %lld with only %zu pieces", b->source, (long long)highest, count);
    return weir__build_pieces(b, (size_t)highest + 1, scores, error);
}

static int check_size(const weir__build *b, weir__string piece, weir_error **error) {
    char name[48];
    if (piece.size <= WEIR_MAX_PIECE)
        return WEIR_OK;
    return weir_fail(error, WEIR_ETOOBIG, "%s: piece \"%s\": found %zu bytes, wanted at most %d", b->source,
                     weir__quote(name, sizeof name, piece.data, piece.size), piece.size, WEIR_MAX_PIECE);
}

static int add_piece(const weir__tokenizer_file *f, int64_t id, weir__json_text text, weir_error **error) {
    weir__string piece = weir__take(f, text);
    int code = check_size(f->build, piece, error);
    return code ? code : weir__build_piece(f->build, id, piece, WEIR__NORMAL, error);
}

static int read_ids(const weir__tokenizer_file *f, weir__json at, weir_error **error) {
    weir__json_text key;
    int64_t id;
    weir__json_object(&at);
    while (weir__json_next_key(&at, &key)) {
        if (!weir__json_int(&at, &id))
            return at.code;
        int code = add_piece(f, id, key, error);
        if (code)
            return code;
    }
    return at.code;
}

static int read_scores(const weir__tokenizer_file *f, weir__json at, weir_error **error) {
    weir__json_text text;
    size_t id = 0;
    for (weir__json_array(&at); weir__json_next(&at); id++) {
        weir__json_array(&at);
        if (weir__json_next(&at) && weir__json_string(&at, &text) && weir__json_next(&at) &&
            weir__json_double(&at, &f->build->scores[id]) && !weir__json_next(&at) && !at.code) {
            int code = add_piece(f, (int64_t)id, text, error);
            if (code)
                return code;
        } else {
            weir__json_fail(&at, WEIR_EFORMAT, "piece %zu: wanted a string and its score", id);
            return at.code;
        }
    }
    return at.code;
}

/* ---- merges: "left right", or ["left", "right"] ---- */

size_t weir__merges_most(const weir__build *b) {
    size_t n = 0;
    for (size_t i = 0; i < b->v.size; i++)
        n += b->pieces[i].size;
    return n < WEIR_MAX_MERGES ? n : WEIR_MAX_MERGES;
}

static void read_pair(const weir__tokenizer_file *f, weir__json *at, weir__merge_pair *merge) {
    weir__json_text left, right;
    weir__json_array(at);
    if (weir__json_next(at) && weir__json_string(at, &left) && weir__json_next(at) && weir__json_string(at, &right) &&
        !weir__json_next(at) && !at->code)
        *merge = (weir__merge_pair){weir__take(f, left), weir__take(f, right)};
    else
        weir__json_fail(at, WEIR_EFORMAT, "merge %zu: wanted two strings", f->build->v.n_merges);
}

bool weir__merge_split(weir__string line, weir__merge_pair *merge) {
    const char *space = memchr(line.data, ' ', line.size);
    size_t left = space ? (size_t)(space - line.data) : 0;
    if (!space || memchr(space + 1, ' ', line.size - left - 1))
        return false;
    *merge = (weir__merge_pair){{line.data, left}, {space + 1, line.size - left - 1}};
    return true;
}

static void read_line(const weir__tokenizer_file *f, weir__json *at, weir__merge_pair *merge) {
    char name[48];
    weir__json_text text;
    if (!weir__json_string(at, &text))
        return;
    weir__string line = weir__take(f, text);
    if (!weir__merge_split(line, merge))
        weir__json_fail(at, WEIR_EFORMAT, "merge %zu: found \"%s\", wanted two pieces with a space between them", f->build->v.n_merges,
                        weir__quote(name, sizeof name, line.data, line.size));
}

static int read_merges(const weir__tokenizer_file *f, weir__json at, weir_error **error) {
    weir__build *b = f->build;
    weir__json count = at;
    size_t n = 0, most = weir__merges_most(b);
    if (!at.text)
        return WEIR_OK;
    for (weir__json_array(&count); weir__json_next(&count); n++)
        if (n == most)
            weir__json_fail(&count, WEIR_EFORMAT, "found more than %zu merges, which is all that the pieces can be made by", most);
    if (count.code)
        return count.code;
    b->v.merges = b->merges = weir__build_alloc(b, n * sizeof *b->merges + 1);
    if (!b->merges)
        return weir_fail(error, WEIR_ENOMEM, "%s: %zu merges", b->source, n);
    for (weir__json_array(&at); weir__json_next(&at); b->v.n_merges++)
        if (weir__json_peek(&at) == WEIR__JSON_ARRAY)
            read_pair(f, &at, &b->merges[b->v.n_merges]);
        else
            read_line(f, &at, &b->merges[b->v.n_merges]);
    return at.code;
}

/* ---- settings ---- */

static int refuse_dropout(weir__json at) {
    double rate;
    if (at.text && weir__json_double(&at, &rate) && rate != 0)
        weir__json_fail(&at, WEIR_EUNSUPPORTED, "model BPE: setting \"dropout\" of %g is not supported", rate);
    return at.code;
}

/* A text that may be absent. */
static int read_text(const weir__tokenizer_file *f, weir__json at, weir__string *to, weir_error **error) {
    weir__json_text text = {0};
    int code = weir__at_text(at, &text);
    return code || !text.data ? code : weir__keep_text(f, text, to, error);
}

static int read_settings(const weir__tokenizer_file *f, const weir__json *at, weir_error **error) {
    weir__vocab *v = &f->build->v;
    int64_t longest = 100; /* the library's */
    int code = read_text(f, at[CONTINUING], &v->continuing_prefix, error);
    if (code || (code = read_text(f, at[SUFFIX], &v->end_suffix, error)) || (code = weir__at_bool(at[FUSE], &v->fuse_unk)) ||
        (code = weir__at_bool(at[FALLBACK], &v->byte_fallback)) || (code = weir__at_bool(at[IGNORE], &v->ignore_merges)) ||
        (code = refuse_dropout(at[DROPOUT])) || (code = weir__at_range(at[LONGEST], 1, INT32_MAX, &longest)))
        return code;
    v->max_word = (size_t)longest;
    return WEIR_OK;
}

/* The unknown piece, by its text or its id. A text that is no piece means none, as in the library until it needs one. */
static int read_unknown(const weir__tokenizer_file *f, const weir__json *at, weir_error **error) {
    weir__vocab *v = &f->build->v;
    weir__string text = {0};
    int64_t id = -1;
    int code = read_text(f, at[UNK_TOKEN], &text, error);
    if (code || (code = weir__at_range(at[UNK_ID], 0, (int64_t)v->size - 1, &id)))
        return code;
    v->unk = text.data ? weir__build_find(f->build, text.data, text.size) : (int32_t)id;
    return WEIR_OK;
}

int weir__pieces_read(const weir__tokenizer_file *f, weir__json at, bool scores, size_t others, int64_t highest, weir_error **error) {
    size_t count = 0;
    int64_t last = -1;
    int code = count_pieces(at, scores, &count, &last);
    if (code || (code = make_room(f->build, scores, count + others, last > highest ? last : highest, error)))
        return code;
    return scores ? read_scores(f, at, error) : read_ids(f, at, error);
}

static int read_all_pieces(const weir__tokenizer_file *f, weir__json at, weir__json added, bool scores, weir_error **error) {
    size_t n_added = 0;
    int64_t highest = -1;
    int code = weir__added_count(added, &n_added, &highest);
    if (code || (code = weir__pieces_read(f, at, scores, n_added, highest, error)))
        return code;
    return weir__added_read(f, added, n_added, error);
}

int weir__model_read(const weir__tokenizer_file *f, weir__json at, weir__json added, weir_error **error) {
    const struct model *m;
    weir__json j = at, field[FIELDS];
    int code = weir__json_fields(&j, "model", fields, FIELDS, field);
    if (code || (code = choose_model(at, field, &m)))
        return code;
    f->build->v.model = m->kind;
    if ((code = read_settings(f, field, error)) || (code = read_all_pieces(f, field[VOCAB], added, m->kind == WEIR__UNIGRAM, error)) ||
        (code = read_merges(f, field[MERGES], error)))
        return code;
    return read_unknown(f, field, error);
}
