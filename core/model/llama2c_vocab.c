/* llama2c_vocab.c: a llama2.c vocabulary as GGUF's tokenizer.ggml.* keys. Its pieces hold plain spaces, and newlines around the bounds; GGUF's hold U+2581 and
 * the bounds' own names. */
#include "llama2c.h"

#include "llama2c_internal.h"

#include <string.h>

#define SPACE_MARK "\xE2\x96\x81" /* U+2581 */
enum { MARK = 3, LEAST_PIECE = 8, UNK = 0, BOS = 1, EOS = 2 };

typedef struct vocabulary {
    weir__string *pieces; /* [n] into the file's bytes, later into `marked` or constants */
    float *scores;
    int32_t *kinds;
    char *marked;
} vocabulary;

static const weir__string bounds[] = {{"<unk>", 5}, {"<s>", 3}, {"</s>", 4}};
static const int32_t bound_kinds[] = {WEIR__UNKNOWN, WEIR__CONTROL, WEIR__CONTROL};

static int allocate(weir_system *s, const char *name, vocabulary *v, size_t bytes, int64_t pieces, weir_error **error) {
    if (pieces < 3 || pieces > WEIR_MAX_VOCAB)
        return weir_fail(error, WEIR_EFORMAT, "%s: found a vocabulary of %lld pieces, wanted 3 to %d", name, (long long)pieces,
                         WEIR_MAX_VOCAB);
    if (bytes < 4 || (bytes - 4) / LEAST_PIECE < (size_t)pieces)
        return weir_fail(error, WEIR_EFORMAT, "%s: found %zu bytes, wanted at least %lld for %lld pieces", name, bytes,
                         4 + (long long)pieces * LEAST_PIECE, (long long)pieces);
    v->pieces = weir__alloc(s, (size_t)pieces * sizeof *v->pieces);
    v->scores = weir__alloc(s, (size_t)pieces * sizeof *v->scores);
    v->kinds = weir__alloc(s, (size_t)pieces * sizeof *v->kinds);
    v->marked = weir__alloc(s, bytes * MARK);
    if (!v->pieces || !v->scores || !v->kinds || !v->marked)
        return weir_fail(error, WEIR_ENOMEM, "%s: vocabulary", name);
    return WEIR_OK;
}

static void release(weir_system *s, vocabulary *v) {
    weir__free(s, v->pieces);
    weir__free(s, v->scores);
    weir__free(s, v->kinds);
    weir__free(s, v->marked);
}

static int split(const char *name, vocabulary *v, const uint8_t *bytes, size_t size, int64_t pieces, weir_error **error) {
    size_t at = 4;
    for (int64_t i = 0; i < pieces; i++) {
        if (size - at < LEAST_PIECE)
            return weir_fail(error, WEIR_EFORMAT, "%s: piece %lld: found the end of the file at byte %zu", name, (long long)i, size);
        uint32_t bits = weir__le32(bytes + at), length = weir__le32(bytes + at + 4);
        at += LEAST_PIECE;
        if (length > size - at)
            return weir_fail(error, WEIR_EFORMAT, "%s: piece %lld: found a length of %d bytes, wanted 0 to %zu, what is left of the file",
                             name, (long long)i, (int32_t)length, size - at);
        memcpy(&v->scores[i], &bits, sizeof bits);
        v->pieces[i] = (weir__string){(const char *)bytes + at, length};
        at += length;
    }
    if (at != size)
        return weir_fail(error, WEIR_EFORMAT, "%s: found %zu bytes behind piece %lld, wanted none: is it another model's?", name, size - at,
                         (long long)pieces - 1);
    return WEIR_OK;
}

static bool is_byte(weir__string p) {
    return p.size == 6 && memcmp(p.data, "<0x", 3) == 0 && p.data[5] == '>' && p.data[3] <= 'F' && p.data[4] <= 'F';
}

/* Pieces as GGUF has them. */
static void translate(vocabulary *v, int64_t pieces) {
    char *to = v->marked;
    for (int64_t i = 0; i < pieces; i++) {
        weir__string p = v->pieces[i];
        v->kinds[i] = i <= EOS ? bound_kinds[i] : is_byte(p) ? WEIR__BYTE : WEIR__NORMAL;
        v->pieces[i] = (weir__string){to, 0};
        for (size_t k = 0; k < p.size; k++) {
            bool space = p.data[k] == ' ';
            memcpy(to, space ? SPACE_MARK : &p.data[k], space ? MARK : 1);
            to += space ? MARK : 1;
        }
        v->pieces[i].size = (size_t)(to - v->pieces[i].data);
        if (i <= EOS)
            v->pieces[i] = bounds[i];
    }
}

/* Checks and translates; on success *v is to be released. */
static int parse(weir_system *s, const char *name, vocabulary *v, const void *bytes, size_t size, int64_t pieces, weir_error **error) {
    *v = (vocabulary){0};
    int code = allocate(s, name, v, size, pieces, error);
    if (!code)
        code = split(name, v, bytes, size, pieces, error);
    if (code)
        release(s, v);
    else
        translate(v, pieces);
    return code;
}

int weir__llama2c_vocab_check(weir_system *s, const void *bytes, size_t size, int64_t pieces, weir_error **error) {
    vocabulary v;
    int code = parse(s, "vocabulary", &v, bytes, size, pieces, error);
    if (!code)
        release(s, &v);
    return code;
}

static void put_vocabulary(weir__gguf_writer *w, const vocabulary *v, size_t n) {
    weir__gguf_put_string(w, "tokenizer.ggml.model", "llama");
    weir__gguf_put_strings(w, "tokenizer.ggml.tokens", v->pieces, n);
    weir__gguf_put_f32s(w, "tokenizer.ggml.scores", v->scores, n);
    weir__gguf_put_i32s(w, "tokenizer.ggml.token_type", v->kinds, n);
    weir__gguf_put_u32(w, "tokenizer.ggml.bos_token_id", BOS);
    weir__gguf_put_u32(w, "tokenizer.ggml.eos_token_id", EOS);
    weir__gguf_put_u32(w, "tokenizer.ggml.unknown_token_id", UNK);
    weir__gguf_put_bool(w, "tokenizer.ggml.add_bos_token", true);
    weir__gguf_put_bool(w, "tokenizer.ggml.add_eos_token", false);
    weir__gguf_put_bool(w, "tokenizer.ggml.add_space_prefix", true);
}

int weir__llama2c_put_vocabulary(weir_system *s, weir__gguf_writer *w, const char *path, int64_t pieces, weir_error **error) {
    weir__file f;
    vocabulary v;
    int code = weir__file_open(s, path, &f, error);
    if (code)
        return code;
    uint8_t *bytes = NULL;
    if (f.size > WEIR_GGUF_MAX_HEADER)
        code = weir_fail(error, WEIR_EFORMAT, "%s: found %llu bytes, wanted a vocabulary of at most %u", path, (unsigned long long)f.size,
                         WEIR_GGUF_MAX_HEADER);
    else if (!(bytes = weir__alloc(s, (size_t)f.size + 1)))
        code = weir_fail(error, WEIR_ENOMEM, "%s", path);
    if (!code)
        code = weir__file_read(&f, 0, bytes, (size_t)f.size, error);
    if (!code)
        code = parse(s, path, &v, bytes, (size_t)f.size, pieces, error);
    if (!code) {
        put_vocabulary(w, &v, (size_t)pieces);
        release(s, &v);
    }
    weir__free(s, bytes);
    weir__file_close(&f);
    return code;
}
