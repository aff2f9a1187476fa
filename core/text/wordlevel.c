/* wordlevel.c: WordLevel: what the pre-tokeniser cuts is a piece or unknown. */
#include "tokenizer.h"

static int init(weir__tokenizer *t, const weir__vocab *v, weir_error **error) {
    (void)t;
    (void)v;
    (void)error;
    return WEIR_OK;
}

static void fini(weir__tokenizer *t) {
    (void)t;
}

static int encode(weir__encoder *e, weir__string chunk, weir_error **error) {
    int64_t id = weir__index_find(&e->t->index, chunk.data, chunk.size);
    return weir__is_plain(e->t, id) ? weir__push(e, (int32_t)id, error) : weir__push_unknown(e, chunk, error);
}

const weir__text_model weir__wordlevel_model = {WEIR__WORDLEVEL, init, fini, encode};
