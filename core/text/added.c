/* added.c: added tokens: which text they are, and finding them: leftmost first, the longest of those that begin at one byte. Special ones are always looked for
 * in the raw text, so that a user's text can be kept from becoming one. */
#include "tokenizer.h"
#include "unicode.h"

#include <string.h>

/* Whether a piece is one of a chat's turns, whatever its file calls it: a user's text must not become it. */
static bool is_turn(weir__string piece) {
    static const char *const frames[][2] = {
        {"<|", "|>"}, {"<\xEF\xBD\x9C", "\xEF\xBD\x9C>"}, {"<start_of_turn", ">"}, {"<end_of_turn", ">"}};
    bool is = false;
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++) {
        size_t n = strlen(frames[i][0]), m = strlen(frames[i][1]);
        is |= piece.size >= n + m && memcmp(piece.data, frames[i][0], n) == 0 && memcmp(piece.data + piece.size - m, frames[i][1], m) == 0;
    }
    return is;
}

static int copy_added(weir__tokenizer *t, const weir__vocab *v, weir_error **error) {
    size_t bytes = 1;
    for (size_t i = 0; i < v->n_added; i++) {
        const weir__added *a = &v->added[i];
        bytes += a->content.size;
        if (a->id < 0 || (size_t)a->id >= v->size || a->content.size > WEIR_MAX_PIECE || bytes > WEIR_MAX_TEXT)
            return weir_fail(error, WEIR_EFORMAT,
                             "%s: added token %zu: found id %d and %zu bytes, wanted an id below %zu, at most %d bytes", v->source, i,
                             a->id, a->content.size, v->size, WEIR_MAX_PIECE);
    }
    t->added = weir__alloc(t->system, (v->n_added + 1) * sizeof *t->added);
    char *to = t->added_bytes = weir__alloc(t->system, bytes);
    if (!t->added || !to)
        return weir_fail(error, WEIR_ENOMEM, "%s: added tokens", v->source);
    for (size_t i = 0; i < v->n_added; i++) {
        weir__added *a = &t->added[t->n_added++];
        *a = v->added[i];
        a->content.data = a->content.size > 0 ? memcpy(to, a->content.data, a->content.size) : to;
        to += a->content.size;
        a->special |= is_turn(a->content);
    }
    return WEIR_OK;
}

/* Where one is looked for, and as what. */
static int add(weir__tokenizer *t, size_t i, weir__work *work, weir_error **error) {
    const weir__added *a = &t->added[i];
    weir__string text = a->content;
    bool normalized = a->normalized && !a->special && t->normaliser.size > 0;
    int code = normalized ? weir__normalise(&t->normaliser, work, a->content, &text, error) : WEIR_OK;
    if (!code && weir__trie_add(t->system, normalized ? &t->normalized : &t->raw, text, (int32_t)i))
        code = weir_fail(error, WEIR_ENOMEM, "tokeniser: added tokens");
    return code;
}

int weir__added_init(weir__tokenizer *t, const weir__vocab *v, weir_error **error) {
    weir__work work = {.system = t->system};
    int code = copy_added(t, v, error);
    for (size_t i = 0; i < t->n_added && !code; i++)
        code = add(t, i, &work, error);
    weir__work_fini(&work);
    return code;
}

void weir__added_fini(weir__tokenizer *t) {
    weir__trie_fini(t->system, &t->raw);
    weir__trie_fini(t->system, &t->normalized);
    weir__free(t->system, t->added);
    weir__free(t->system, t->added_bytes);
}

/* Where the character that ends at `end` begins. */
static size_t char_before(weir__string text, size_t from, size_t end) {
    size_t at = end - 1;
    while (at > from && end - at < 4 && ((unsigned char)text.data[at] & 0xC0) == 0x80)
        at--;
    return at;
}

static bool stands_alone(weir__string text, size_t begin, size_t end) {
    size_t length, before = begin > 0 ? char_before(text, 0, begin) : 0;
    if (begin > 0 && weir__is_word(weir__char_at(text.data + before, begin - before, &length)))
        return false;
    return end == text.size || !weir__is_word(weir__char_at(text.data + end, text.size - end, &length));
}

/* Takes white space around it, as far as the token wants. */
static void stretch(weir__found *f, weir__string text, size_t from) {
    size_t length;
    while (f->added->lstrip && f->begin > from) {
        size_t at = char_before(text, from, f->begin);
        if (!weir__is_space(weir__char_at(text.data + at, f->begin - at, &length)))
            break;
        f->begin = at;
    }
    while (f->added->rstrip && f->end < text.size && weir__is_space(weir__char_at(text.data + f->end, text.size - f->end, &length)))
        f->end += length;
}

weir__found weir__added_at(const weir__tokenizer *t, const weir__trie *trie, weir__string text, size_t from, size_t at,
                           size_t special_end) {
    weir__found best = {NULL, at, at};
    uint32_t node = WEIR__TRIE_ROOT;
    for (size_t i = at; i < text.size; i++) {
        node = weir__trie_step(trie, node, (unsigned char)text.data[i]);
        if (node == WEIR__TRIE_MISS)
            break;
        int32_t value = weir__trie_value(trie, node);
        if (value >= 0 && (!t->added[value].special || i < special_end))
            best = (weir__found){&t->added[value], at, i + 1};
    }
    if (best.added && best.added->single_word && !stands_alone(text, best.begin, best.end))
        best.added = NULL;
    if (best.added)
        stretch(&best, text, from);
    return best;
}
