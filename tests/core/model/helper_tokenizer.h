/* helper_tokenizer.h: a tokeniser against texts and ids that the tokenizers library gives (tests/data/tokenizers). */
#ifndef WEIR_HELPER_TOKENIZER_H
#define WEIR_HELPER_TOKENIZER_H

#include "../../../core/model/text_file.h"
#include "../../../core/model/tokenizer_json.h"
#include "../../../core/text/json.h"
#include "test.h"

typedef struct expected {
    weir__string text, decoded; /* decoded.data NULL: not said */
    int32_t ids[8192], bounds[8192];
    size_t n_ids, n_bounds;
    bool has_bounds;
} expected;

static inline void read_id_list(weir__json at, int32_t *ids, size_t *n) {
    int64_t id;
    *n = 0;
    for (weir__json_array(&at); weir__json_next(&at);) {
        assert_true(weir__json_int(&at, &id) && *n < 8192);
        ids[(*n)++] = (int32_t)id;
    }
    assert_int_equal(at.code, WEIR_OK);
}

/* Unescapes in place: the file is read once. */
static inline weir__string take_text(weir__json at) {
    weir__json_text text;
    assert_true(weir__json_string(&at, &text));
    return (weir__string){text.data, weir__json_unescape(text, (char *)text.data)};
}

static inline void fail_ids(const weir__tokenizer *t, const expected *e, const weir__ids *ids, const int32_t *wanted, size_t n) {
    char text[256];
    printf("text \"%s\"\n found:", weir__quote(text, sizeof text, e->text.data, e->text.size));
    for (size_t i = 0; i < ids->size; i++) {
        weir__string p = weir__tokenizer_piece(t, ids->data[i]);
        printf(" %d:%s", ids->data[i], weir__quote(text, sizeof text, p.data, p.size));
    }
    printf("\n wanted:");
    for (size_t i = 0; i < n; i++) {
        weir__string p = weir__tokenizer_piece(t, wanted[i]);
        printf(" %d:%s", wanted[i], weir__quote(text, sizeof text, p.data, p.size));
    }
    printf("\n");
}

static inline int check_ids(weir_system *s, const weir__tokenizer *t, const expected *e, bool bounds, const int32_t *wanted, size_t n) {
    weir__ids ids = {0};
    weir_error *error = NULL;
    weir__part part = {e->text.data, e->text.size, true};
    int code = weir__tokenizer_encode(t, &part, 1, bounds, &ids, &error);
    if (code)
        printf("%s\n", weir_error_text(error));
    int bad = code || ids.size != n || (n > 0 && memcmp(ids.data, wanted, n * sizeof *wanted) != 0);
    if (bad)
        fail_ids(t, e, &ids, wanted, n);
    weir_error_free(error);
    weir__ids_free(s, &ids);
    return bad;
}

static inline int check_decoded(weir_system *s, const weir__tokenizer *t, const expected *e) {
    char text[256], other[256];
    weir__decoder d;
    weir__decoder_init(&d, s, t, NULL, 0);
    for (size_t i = 0; i < e->n_ids; i++)
        assert_int_equal(weir__decoder_feed(&d, e->ids[i], NULL), WEIR_OK);
    assert_int_equal(weir__decoder_finish(&d, NULL), WEIR_OK);
    int bad = d.safe != e->decoded.size || (d.safe > 0 && memcmp(d.held, e->decoded.data, d.safe) != 0);
    if (bad)
        printf("decoded \"%s\", wanted \"%s\"\n", weir__quote(text, sizeof text, d.held, d.safe),
               weir__quote(other, sizeof other, e->decoded.data, e->decoded.size));
    weir__decoder_fini(&d);
    return bad;
}

static inline int check_case(weir_system *s, const weir__tokenizer *t, weir__json *j, expected *e) {
    static const char *const names[] = {"text", "ids", "bounds", "decoded", "full"};
    weir__json at[5];
    assert_int_equal(weir__json_fields(j, "case", names, 5, at), WEIR_OK);
    read_id_list(at[1], e->ids, &e->n_ids);
    if (at[2].text)
        read_id_list(at[2], e->bounds, &e->n_bounds);
    e->text = take_text(at[0]);
    e->decoded = at[3].text ? take_text(at[3]) : e->text;
    int bad = check_ids(s, t, e, false, e->ids, e->n_ids);
    if (at[2].text)
        bad += check_ids(s, t, e, true, e->bounds, e->n_bounds);
    return bad + check_decoded(s, t, e);
}

/* Encodes and decodes every case of a file: a list of {text, ids, bounds, decoded}; no "decoded": as the text. Returns how many differ. */
static inline int check_cases(weir_system *s, const weir__tokenizer *t, const char *path, size_t *count) {
    static expected e;
    weir__text_file f;
    weir__json j;
    int bad = 0;
    assert_int_equal(weir__text_file_read(s, NULL, path, 64 << 20, &f, NULL), WEIR_OK);
    weir__json_init(&j, path, f.data, f.size, NULL);
    *count = 0;
    for (weir__json_array(&j); weir__json_next(&j); ++*count)
        bad += check_case(s, t, &j, &e);
    assert_int_equal(j.code, WEIR_OK);
    weir__text_file_fini(&f);
    return bad;
}

#endif
