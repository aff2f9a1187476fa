/* helper_vocab.h: small vocabularies made in the test: a byte-level one (pieces 0..255 are the bytes) and a SentencePiece one. */
#ifndef WEIR_HELPER_VOCAB_H
#define WEIR_HELPER_VOCAB_H

#include "../../../core/text/text.h"
#include "test.h"

enum { VOCAB_MOST = 1024 };

typedef struct vocab {
    weir__vocab v;
    weir__string pieces[VOCAB_MOST];
    weir__merge_pair merges[VOCAB_MOST];
    weir__added added[VOCAB_MOST];
    bool add_bos, add_eos, add_space_prefix; /* made into steps and bounds by `described` */
    weir__step steps[8];
    int32_t kinds[VOCAB_MOST];
    double scores[VOCAB_MOST];
    char bytes[16384];
    size_t used;
} vocab;

static inline weir__string keep(vocab *b, const char *text, size_t size) {
    assert_true(b->used + size <= sizeof b->bytes);
    char *to = memcpy(b->bytes + b->used, text, size);
    b->used += size;
    return (weir__string){to, size};
}

/* Adds a piece, returns its id. */
static inline int32_t add_piece(vocab *b, const char *text, int32_t kind, double score) {
    size_t i = b->v.size++;
    assert_true(i < VOCAB_MOST);
    b->pieces[i] = keep(b, text, strlen(text));
    b->kinds[i] = kind;
    b->scores[i] = score;
    return (int32_t)i;
}

/* Adds a merge "left right" and its piece, if that is not there yet; returns the piece's id. */
static inline int32_t add_merge(vocab *b, const char *left, const char *right) {
    char joined[256];
    snprintf(joined, sizeof joined, "%s%s", left, right);
    b->merges[b->v.n_merges++] = (weir__merge_pair){keep(b, left, strlen(left)), keep(b, right, strlen(right))};
    for (size_t i = 0; i < b->v.size; i++) {
        if (b->pieces[i].size == strlen(joined) && memcmp(b->pieces[i].data, joined, b->pieces[i].size) == 0)
            return (int32_t)i;
    }
    return add_piece(b, joined, WEIR__NORMAL, 0);
}

static inline void init_vocab(vocab *b, enum weir__model_kind model) {
    memset(b, 0, sizeof *b);
    b->v = (weir__vocab){.model = model, .source = "test.gguf", .pieces = b->pieces, .kinds = b->kinds, .bos = -1, .eos = -1, .unk = -1};
    b->v.merges = b->merges;
    b->v.added = b->added;
    b->v.scores = b->scores;
}

#define TEST_MARK "\xE2\x96\x81" /* U+2581 */

static inline void describe_bytes(vocab *b) {
    b->steps[0] = (weir__step){.kind = WEIR__DIGITS, .individual = true};
    b->steps[1] = (weir__step){.kind = WEIR__BYTE_LEVEL, .use_regex = true};
    b->v.pretokeniser = (weir__steps){b->steps, 2};
    b->v.decoder = (weir__steps){b->steps + 1, 1};
}

static inline void describe_marks(vocab *b) {
    b->steps[0] = (weir__step){.kind = WEIR__PREPEND, .content = {TEST_MARK, 3}};
    b->steps[1] = (weir__step){.kind = WEIR__REPLACE, .pattern = {" ", 1}, .content = {TEST_MARK, 3}};
    b->steps[2] = (weir__step){.kind = WEIR__REPLACE, .pattern = {TEST_MARK, 3}, .content = {" ", 1}};
    b->steps[3] = (weir__step){.kind = WEIR__FUSE};
    b->steps[4] = (weir__step){.kind = WEIR__STRIP_DECODED, .content = {" ", 1}, .start = 1};
    b->v.normaliser = b->add_space_prefix ? (weir__steps){b->steps, 2} : (weir__steps){b->steps + 1, 1};
    b->v.decoder = (weir__steps){b->steps + 2, b->add_space_prefix ? 3 : 2};
}

/* The whole description: control and user pieces are added tokens, the flags are steps; BPE is byte-level, the others have marks for spaces. */
static inline const weir__vocab *described(vocab *b) {
    b->v.n_added = 0;
    b->v.byte_fallback = false;
    for (size_t i = 0; i < b->v.size; i++) {
        if (b->kinds[i] == WEIR__CONTROL || b->kinds[i] == WEIR__USER)
            b->added[b->v.n_added++] = (weir__added){.id = (int32_t)i, .content = b->pieces[i], .special = b->kinds[i] == WEIR__CONTROL};
        b->v.byte_fallback |= b->kinds[i] == WEIR__BYTE;
    }
    if (!b->v.pretokeniser.size && !b->v.normaliser.size)
        (b->v.model == WEIR__BPE ? describe_bytes : describe_marks)(b);
    b->v.before = &b->v.bos;
    b->v.after = &b->v.eos;
    b->v.n_before = b->add_bos;
    b->v.n_after = b->add_eos;
    return &b->v;
}

/* GPT-2's characters for the 256 bytes. */
static inline void init_bytes(vocab *b) {
    init_vocab(b, WEIR__BPE);
    unsigned next = 256;
    for (unsigned c = 0; c < 256; c++) {
        bool printable = (c >= 33 && c <= 126) || (c >= 161 && c != 173);
        unsigned point = printable ? c : next++;
        char text[3] = {(char)point, 0, 0};
        if (point >= 0x80) {
            text[0] = (char)(0xC0 | point >> 6);
            text[1] = (char)(0x80 | (point & 0x3F));
        }
        add_piece(b, text, WEIR__NORMAL, 0);
    }
}

/* <unk> 0, <s> 1, </s> 2, bytes 3..258. */
static inline void init_sentencepiece(vocab *b) {
    init_vocab(b, WEIR__SPM);
    b->v.unk = add_piece(b, "<unk>", WEIR__UNKNOWN, 0);
    b->v.bos = add_piece(b, "<s>", WEIR__CONTROL, 0);
    b->v.eos = add_piece(b, "</s>", WEIR__CONTROL, 0);
    b->add_bos = b->add_space_prefix = true;
    for (unsigned c = 0; c < 256; c++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", c);
        add_piece(b, text, WEIR__BYTE, 0);
    }
}

/* Encodes parts and compares with the ids in `...`. */
#define assert_ids(t, s, parts, n, bounds, ...)                                                                                            \
    do {                                                                                                                                   \
        const int32_t want_[] = {__VA_ARGS__};                                                                                             \
        weir__ids ids_ = {0};                                                                                                              \
        assert_int_equal(weir__tokenizer_encode(t, parts, n, bounds, &ids_, NULL), WEIR_OK);                                               \
        assert_int_equal(ids_.size, sizeof want_ / sizeof want_[0]);                                                                       \
        assert_memory_equal(ids_.data, want_, sizeof want_);                                                                               \
        weir__ids_free(s, &ids_);                                                                                                          \
    } while (0)
#define assert_text(t, s, text, ...) assert_ids(t, s, (&(weir__part){text, sizeof(text) - 1, false}), 1, false, __VA_ARGS__)
#define assert_special(t, s, text, ...) assert_ids(t, s, (&(weir__part){text, sizeof(text) - 1, true}), 1, false, __VA_ARGS__)

static inline uint64_t held_bytes(weir_system *s) {
    weir_system_stats stats;
    weir_system_get_stats(s, &stats);
    return stats.bytes;
}

#endif
