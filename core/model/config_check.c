/* config_check.c: what a config.json says of tensors and tokens, against what is there: a head that is tied or not, the numbers of tokens that end a text. */
#include "family.h"

#include <string.h>

enum { PIECE = 1 << 20 }; /* bytes of a tensor at a time */

/* Whether two tensors are the same, byte for byte. */
static int compare(const weir__source *src, const weir__tensor *a, const weir__tensor *b, bool *same, weir_error **error) {
    weir_system *s = weir__source_system(src);
    *same = a->type == b->type && a->size == b->size && memcmp(a->dims, b->dims, sizeof a->dims) == 0;
    if (!*same)
        return WEIR_OK;
    uint8_t *x = weir__alloc(s, (size_t)2 * PIECE), *y = x ? x + PIECE : NULL;
    int code = x ? WEIR_OK : weir_fail(error, WEIR_ENOMEM, "%s: no memory to compare tensors", weir__source_path(src));
    for (uint64_t at = 0; at < a->size && *same && !code; at += PIECE) {
        size_t n = a->size - at < PIECE ? (size_t)(a->size - at) : PIECE;
        code = weir__source_read(src, a, at, x, n, error);
        if (!code)
            code = weir__source_read(src, b, at, y, n, error);
        *same = !code && memcmp(x, y, n) == 0;
    }
    weir__free(s, x);
    return code;
}

int weir__config_head(const weir__source *src, weir__config *c, weir_error **error) {
    bool gguf = weir__source_format(src) == WEIR__FORMAT_GGUF, same;
    const weir__tensor *head = weir__source_find(src, gguf ? "output.weight" : "lm_head.weight");
    if (!head || gguf) {
        c->tied = !head;
        return WEIR_OK;
    }
    if (!c->tied)
        return WEIR_OK;
    int code = compare(src, head, weir__source_find(src, "model.embed_tokens.weight"), &same, error);
    c->tied = !code && same;
    c->own_head = !code && !same;
    return code;
}

static int check_end(const weir__source *src, const weir__value *v, weir_error **error) {
    char found[96];
    if (v->kind == WEIR__INTEGER)
        return WEIR_OK;
    return weir_fail(error, WEIR_EFORMAT, "%s: key \"eos_token_id\": found %s, wanted the number of a token or a list of them",
                     weir__source_settings_path(src), weir__value_shown(v, found, sizeof found));
}

int weir__config_ends(const weir__source *src, weir_error **error) {
    weir__value v = {0}, element;
    if (weir__source_format(src) == WEIR__FORMAT_SAFETENSORS)
        weir__source_get(src, "eos_token_id", &v);
    if (v.kind == WEIR__ABSENT || v.kind == WEIR__NULL)
        return WEIR_OK;
    if (v.kind != WEIR__LIST)
        return check_end(src, &v, error);
    int code = WEIR_OK;
    for (uint64_t i = 0; i < v.count && !code; i++) {
        weir__source_element(src, "eos_token_id", i, &element);
        code = check_end(src, &element, error);
    }
    return code;
}

bool weir__config_end_outside(const weir__source *src, const weir__config *c, int64_t *id) {
    weir__value v = {0}, element;
    if (weir__source_format(src) == WEIR__FORMAT_SAFETENSORS)
        weir__source_get(src, "eos_token_id", &v);
    for (uint64_t i = 0; i < (v.kind == WEIR__LIST ? v.count : v.kind == WEIR__INTEGER); i++) {
        element = v;
        if (v.kind == WEIR__LIST)
            weir__source_element(src, "eos_token_id", i, &element);
        *id = element.integer;
        if (*id < 0 || *id >= c->vocab)
            return true;
    }
    return false;
}
