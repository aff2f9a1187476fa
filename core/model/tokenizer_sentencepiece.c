/* tokenizer_sentencepiece.c: SentencePiece's tokenizer.model: a protobuf message ModelProto (sentencepiece_model.proto). Reads the fields that matter for encoding and
 * decoding; those of training are skipped, whatever else would change ids is refused by its name. */
#include "tokenizer_slow.h"

#include <string.h>

#define MARK "\xE2\x96\x81"

/* ---- protobuf: a message is fields of (number, value); a reader walks one message ---- */

typedef struct proto {
    const uint8_t *at, *end;
    bool bad; /* cut short, or no protobuf */
} proto;

typedef struct field {
    uint32_t number, wire;
    uint64_t value; /* varints and fixed numbers */
    weir__string bytes;
} field;

static proto message(weir__string bytes) {
    return (proto){(const uint8_t *)bytes.data, (const uint8_t *)bytes.data + bytes.size, false};
}

static uint64_t varint(proto *p) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (p->at == p->end)
            break;
        uint8_t byte = *p->at++;
        value |= shift < 64 ? (uint64_t)(byte & 0x7F) << shift : 0;
        if (!(byte & 0x80))
            return value;
    }
    p->bad = true;
    return 0;
}

static uint64_t fixed(proto *p, size_t n) {
    uint64_t value = 0;
    if ((size_t)(p->end - p->at) < n) {
        p->bad = true;
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        value |= (uint64_t)p->at[i] << 8 * i;
    p->at += n;
    return value;
}

/* The next field; false at the end, or if p->bad. */
static bool next_field(proto *p, field *f) {
    *f = (field){.bytes = {(const char *)p->at, 0}};
    if (p->bad || p->at == p->end)
        return false;
    uint64_t tag = varint(p);
    f->number = (uint32_t)(tag >> 3);
    f->wire = tag & 7;
    if (f->wire == 0) {
        f->value = varint(p);
    } else if (f->wire == 1 || f->wire == 5) {
        f->value = fixed(p, f->wire == 1 ? 8 : 4);
    } else if (f->wire == 2) {
        uint64_t size = varint(p);
        p->bad |= size > (uint64_t)(p->end - p->at);
        f->bytes = (weir__string){(const char *)p->at, p->bad ? 0 : (size_t)size};
        p->at += f->bytes.size;
    } else {
        p->bad = true;
    }
    return !p->bad;
}

/* ---- the model ---- */

enum { UNIGRAM = 1, BPE = 2 }; /* TrainerSpec.model_type */

typedef struct model {
    size_t n_pieces;
    uint64_t type;
    int64_t bos, eos, unk;
    bool byte_fallback, suffix_space;
    bool dummy_prefix, remove_spaces, escape_spaces;
    weir__string charsmap;
    bool denormalises;
} model;

static bool read_trainer(model *m, weir__string bytes) {
    proto p = message(bytes);
    field f;
    while (next_field(&p, &f)) {
        m->type = f.number == 3 ? f.value : m->type;
        m->suffix_space = f.number == 24 ? f.value != 0 : m->suffix_space;
        m->byte_fallback = f.number == 35 ? f.value != 0 : m->byte_fallback;
        m->unk = f.number == 40 ? (int32_t)f.value : m->unk;
        m->bos = f.number == 41 ? (int32_t)f.value : m->bos;
        m->eos = f.number == 42 ? (int32_t)f.value : m->eos;
    }
    return !p.bad;
}

static bool read_normaliser(model *m, weir__string bytes) {
    proto p = message(bytes);
    field f;
    while (next_field(&p, &f)) {
        m->charsmap = f.number == 2 ? f.bytes : m->charsmap;
        m->dummy_prefix = f.number == 3 ? f.value != 0 : m->dummy_prefix;
        m->remove_spaces = f.number == 4 ? f.value != 0 : m->remove_spaces;
        m->escape_spaces = f.number == 5 ? f.value != 0 : m->escape_spaces;
    }
    return !p.bad;
}

static bool read_denormaliser(model *m, weir__string bytes) {
    proto p = message(bytes);
    field f;
    while (next_field(&p, &f))
        m->denormalises |= f.number == 2 && f.bytes.size > 0;
    return !p.bad;
}

static bool read_message(model *m, const weir__text_file *file) {
    proto p = message((weir__string){file->data, file->size});
    bool ok = true;
    field f;
    *m = (model){.type = UNIGRAM, .bos = 1, .eos = 2, .dummy_prefix = true, .remove_spaces = true, .escape_spaces = true};
    while (ok && next_field(&p, &f)) {
        m->n_pieces += f.number == 1;
        ok = f.number == 2   ? read_trainer(m, f.bytes)
             : f.number == 3 ? read_normaliser(m, f.bytes)
             : f.number == 5 ? read_denormaliser(m, f.bytes)
                             : true;
    }
    return ok && !p.bad;
}

static int check_model(const model *m, const weir__text_file *file, weir_error **error) {
    const char *what = m->suffix_space                        ? "treat_whitespace_as_suffix"
                       : !m->escape_spaces                    ? "escape_whitespaces = false"
                       : m->denormalises                      ? "a denormalizer"
                       : m->type != UNIGRAM && m->type != BPE ? "a model_type other than UNIGRAM and BPE"
                                                              : NULL;
    if (what)
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: %s is not supported", file->path, what);
    if (m->n_pieces == 0 || m->n_pieces > WEIR__MOST_PIECES)
        return weir_fail(error, WEIR_EFORMAT, "%s: found %zu pieces, wanted 1 to %d", file->path, m->n_pieces, WEIR__MOST_PIECES);
    return WEIR_OK;
}

/* ---- pieces ---- */

/* SentencePiece {piece = 1, score = 2, type = 3}; the types' numbers are those of weir__piece_kind. */
static bool read_piece(weir__string bytes, weir__string *piece, double *score, int32_t *kind) {
    proto p = message(bytes);
    field f;
    *kind = WEIR__NORMAL;
    while (next_field(&p, &f)) {
        uint32_t bits = (uint32_t)f.value;
        float value;
        memcpy(&value, &bits, sizeof value);
        *piece = f.number == 1 ? f.bytes : *piece;
        *score = f.number == 2 ? (double)value : *score;
        *kind = f.number == 3 && f.value >= WEIR__NORMAL && f.value <= WEIR__BYTE ? (int32_t)f.value : *kind;
    }
    return !p.bad;
}

/* Pieces that SentencePiece finds as a whole in a text are added tokens. */
static int add_found(weir__build *b, int32_t id, weir_error **error) {
    bool special = b->kinds[id] == WEIR__CONTROL;
    if (!special && b->kinds[id] != WEIR__USER)
        return WEIR_OK;
    return weir__slow_add(b, &(weir__added){.id = id, .content = b->pieces[id], .special = special}, error);
}

static int read_pieces(weir__build *b, const weir__text_file *file, weir_error **error) {
    proto p = message((weir__string){file->data, file->size});
    size_t id = 0;
    int code = WEIR_OK;
    field f;
    while (!code && next_field(&p, &f)) {
        weir__string piece = {"", 0};
        double score = 0;
        int32_t kind;
        if (f.number != 1)
            continue;
        if (!read_piece(f.bytes, &piece, &score, &kind) || piece.size == 0 || piece.size > WEIR_MAX_PIECE)
            return weir_fail(error, WEIR_EFORMAT, "%s: piece %zu: found %zu bytes, wanted 1 to %d", file->path, id, piece.size,
                             WEIR_MAX_PIECE);
        b->scores[id] = score;
        code = weir__build_piece(b, (int64_t)id, piece, kind, error);
        if (!code)
            code = add_found(b, (int32_t)id++, error);
    }
    return code;
}

/* ---- what text goes through ---- */

static weir__step replace(const char *from, bool regex, const char *to) {
    return (weir__step){.kind = WEIR__REPLACE, .pattern = {from, strlen(from)}, .regex = regex, .content = {to, strlen(to)}};
}

static int set_normaliser(weir__build *b, const model *m, weir_error **error) {
    weir__step steps[5];
    size_t n = 0;
    int code = WEIR_OK;
    if (m->charsmap.size > 0)
        steps[n++] = (weir__step){.kind = WEIR__CHARSMAP, .pattern = m->charsmap};
    if (m->remove_spaces) {
        steps[n++] = replace(" {2,}", true, " ");
        steps[n++] = replace("\\A | \\z", true, "");
    }
    if (m->dummy_prefix)
        steps[n++] = (weir__step){.kind = WEIR__PREPEND, .content = {MARK, 3}};
    steps[n++] = replace(" ", false, MARK);
    for (size_t i = 0; i < n && !code; i++)
        code = weir__build_step(b, &b->v.normaliser, &steps[i], error);
    return code;
}

static int set_decoder(weir__build *b, const model *m, weir_error **error) {
    const weir__step steps[] = {replace(MARK, false, " "),
                                {.kind = WEIR__BYTE_FALLBACK},
                                {.kind = WEIR__FUSE},
                                {.kind = WEIR__STRIP_DECODED, .content = {" ", 1}, .start = 1}};
    int code = WEIR_OK;
    for (size_t i = 0; i < (m->dummy_prefix ? 4 : 3) && !code; i++)
        code = weir__build_step(b, &b->v.decoder, &steps[i], error);
    return code;
}

/* Which special tokens stand around a text, by the class; no class: by the model, as LlamaTokenizer and T5Tokenizer. */
static int set_around(weir__build *b, const model *m, const weir__tokenizer_settings *t, weir_error **error) {
    static const struct {
        const char *name;
        bool bos;
    } classes[] = {{"LlamaTokenizer", true},     {"LlamaTokenizerFast", true}, {"CodeLlamaTokenizer", true}, {"GemmaTokenizer", true},
                   {"GemmaTokenizerFast", true}, {"T5Tokenizer", false},       {"T5TokenizerFast", false}};
    char name[64];
    bool bos = m->type == BPE, known = !t->class.data;
    for (size_t i = 0; !known && i < sizeof classes / sizeof classes[0]; i++)
        if (t->class.size == strlen(classes[i].name) && memcmp(t->class.data, classes[i].name, t->class.size) == 0) {
            known = true;
            bos = classes[i].bos;
        }
    if (!known)
        return weir_fail(
            error, WEIR_EUNSUPPORTED,
            "%s: tokenizer_class \"%s\" is not supported without a tokenizer.json; known: LlamaTokenizer, GemmaTokenizer, T5Tokenizer",
            b->source, weir__quote(name, sizeof name, t->class.data, t->class.size));
    if (bos)
        return b->v.bos >= 0 ? weir__build_before(b, b->v.bos, error) : WEIR_OK;
    return b->v.eos >= 0 ? weir__build_after(b, b->v.eos, error) : WEIR_OK;
}

static int32_t id_or_none(int64_t id, const model *m) {
    return id >= 0 && (uint64_t)id < m->n_pieces ? (int32_t)id : -1;
}

int weir__sentencepiece_read(weir__build *b, const weir__text_file *file, const weir__text_file *added, const weir__tokenizer_settings *t,
                             weir_error **error) {
    model m;
    int64_t highest;
    if (!read_message(&m, file))
        return weir_fail(error, WEIR_EFORMAT, "%s: found something that is no SentencePiece model, or one that was cut short", file->path);
    highest = (int64_t)m.n_pieces - 1;
    int code = check_model(&m, file, error);
    if (code || (code = weir__slow_added(b, added, t, &highest, error)))
        return code;
    if ((uint64_t)highest >= m.n_pieces + 2 * b->v.n_added + 4096)
        return weir_fail(error, WEIR_EFORMAT, "%s: found id %lld with only %zu pieces", file->path, (long long)highest, m.n_pieces);
    b->v.model = m.type == BPE ? WEIR__SPM : WEIR__UNIGRAM;
    b->v.byte_fallback = m.byte_fallback;
    b->v.fuse_unk = true;
    if ((code = weir__build_pieces(b, (size_t)highest + 1, true, error)) || (code = read_pieces(b, file, error)) ||
        (code = weir__slow_place(b, error)) || (code = set_normaliser(b, &m, error)) || (code = set_decoder(b, &m, error)))
        return code;
    b->v.unk = id_or_none(m.unk, &m);
    b->v.bos = id_or_none(m.bos, &m);
    b->v.eos = id_or_none(m.eos, &m);
    return set_around(b, &m, t, error);
}
