/* wordpiece.c: WordPiece (Schuster & Nakajima 2012; BERT): a word is cut into the longest pieces from its beginning on; a word that cannot be cut so, or is too long,
 * is one unknown piece. */
#include "tokenizer.h"

typedef struct wordpiece {
    weir__trie trie;
    uint32_t begin, inside; /* nodes behind what stands before a word's first piece and before the others */
    size_t most;            /* characters of a word */
} wordpiece;

static int init(weir__tokenizer *t, const weir__vocab *v, weir_error **error) {
    wordpiece *w = t->model_data = weir__alloc(t->system, sizeof *w);
    int code = w ? WEIR_OK : WEIR_ENOMEM;
    for (size_t i = 0; i < v->size && !code; i++) {
        if (weir__is_plain(t, (int64_t)i))
            code = weir__trie_add(t->system, &w->trie, t->pieces[i], (int32_t)i);
    }
    if (code)
        return weir_fail(error, code, "%s: tokeniser of %zu pieces", v->source, v->size);
    if (t->unk < 0)
        return weir_fail(error, WEIR_EFORMAT, "%s: found no unknown piece, which WordPiece needs", v->source);
    w->most = v->max_word;
    w->begin = w->trie.nodes > 0 ? weir__trie_walk(&w->trie, WEIR__TRIE_ROOT, v->word_prefix) : WEIR__TRIE_MISS;
    w->inside = w->trie.nodes > 0 ? weir__trie_walk(&w->trie, WEIR__TRIE_ROOT, v->continuing_prefix) : WEIR__TRIE_MISS;
    return WEIR_OK;
}

static void fini(weir__tokenizer *t) {
    wordpiece *w = t->model_data;
    if (!w)
        return;
    weir__trie_fini(t->system, &w->trie);
    weir__free(t->system, w);
}

/* The longest piece at the text's beginning; *size: its bytes there, 0: none. */
static int32_t longest(const wordpiece *w, uint32_t node, weir__string text, size_t *size) {
    int32_t id = -1;
    *size = 0;
    for (size_t i = 0; i < text.size && node != WEIR__TRIE_MISS; i++) {
        node = weir__trie_step(&w->trie, node, (unsigned char)text.data[i]);
        int32_t value = node == WEIR__TRIE_MISS ? -1 : weir__trie_value(&w->trie, node);
        if (value < 0)
            continue;
        id = value;
        *size = i + 1;
    }
    return id;
}

static bool is_too_long(const wordpiece *w, weir__string word) {
    size_t characters = 0;
    for (size_t i = 0; i < word.size && characters <= w->most; i++)
        characters += ((unsigned char)word.data[i] & 0xC0) != 0x80;
    return characters > w->most;
}

static int encode(weir__encoder *e, weir__string word, weir_error **error) {
    const wordpiece *w = e->t->model_data;
    size_t before = e->ids->size, size = 1;
    int code = WEIR_OK;
    bool whole = !is_too_long(w, word);
    for (size_t at = 0; at < word.size && whole && !code; at += size) {
        int32_t id = longest(w, at == 0 ? w->begin : w->inside, (weir__string){word.data + at, word.size - at}, &size);
        whole = id >= 0;
        if (whole)
            code = weir__push(e, id, error);
    }
    if (whole || code)
        return code;
    e->ids->size = before;
    return weir__push(e, e->t->unk, error);
}

const weir__text_model weir__wordpiece_model = {WEIR__WORDPIECE, init, fini, encode};
