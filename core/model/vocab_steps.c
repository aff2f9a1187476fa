/* vocab_steps.c: whether two pipelines are the same (vocab_pre.h). */
#include "vocab_pre.h"

#include "../text/unicode.h"

#include <string.h>

static bool same_text(weir__string a, weir__string b) {
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static int hex(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* "\x{2019}" at the pattern's beginning: the character; -1: it is none. */
static int32_t read_hex(weir__string p, size_t *length) {
    int32_t c = 0;
    size_t at = 3;
    if (p.size < 5 || memcmp(p.data, "\\x{", 3) != 0)
        return -1;
    for (; at < p.size && hex(p.data[at]) >= 0 && c < 0x110000; at++)
        c = c * 16 + hex(p.data[at]);
    *length = at + 1;
    return at > 3 && at < p.size && p.data[at] == '}' && c < 0x110000 ? c : -1;
}

/* What stands at the pattern's beginning, with an escape as the bytes that it means; at least one byte if there is one. */
static size_t next_sign(weir__string *p, char to[4]) {
    size_t length = 1, size = 1;
    int32_t c = read_hex(*p, &length);
    to[0] = p->data[0];
    if (c >= 0x80) {
        size = weir__char_put(to, c);
    } else if (p->size > 1 && p->data[0] == '\\') {
        char escaped = p->data[1];
        length = 2;
        size = 2;
        to[1] = escaped;
        if (escaped == 'n' || escaped == 'r' || escaped == 't') {
            to[0] = escaped == 'n' ? '\n' : escaped == 'r' ? '\r' : '\t';
            size = 1;
        }
    } else {
        length = 1;
    }
    *p = (weir__string){p->data + length, p->size - length};
    return size;
}

static bool same_pattern(weir__string a, weir__string b) {
    char x[4], y[4];
    size_t n = 0, m = 0, i = 0, k = 0;
    while ((i < n || a.size > 0) && (k < m || b.size > 0)) {
        if (i == n) {
            n = next_sign(&a, x);
            i = 0;
        }
        if (k == m) {
            m = next_sign(&b, y);
            k = 0;
        }
        if (x[i++] != y[k++])
            return false;
    }
    return i == n && k == m && a.size == 0 && b.size == 0;
}

static bool same_step(const weir__step *a, const weir__step *b) {
    return a->kind == b->kind && a->regex == b->regex && (a->regex ? same_pattern : same_text)(a->pattern, b->pattern) &&
           same_text(a->content, b->content) && a->behaviour == b->behaviour && a->prepend == b->prepend && a->start == b->start &&
           a->stop == b->stop && a->invert == b->invert && a->individual == b->individual && a->add_prefix_space == b->add_prefix_space &&
           a->use_regex == b->use_regex && a->split == b->split && a->left == b->left && a->right == b->right &&
           a->clean_text == b->clean_text && a->chinese == b->chinese && a->strip_accents == b->strip_accents &&
           a->lowercase == b->lowercase && a->graphemes == b->graphemes && a->cleanup == b->cleanup;
}

bool weir__steps_same(weir__steps a, weir__steps b) {
    bool same = a.size == b.size;
    for (size_t i = 0; same && i < a.size; i++)
        same = same_step(&a.data[i], &b.data[i]);
    return same;
}
