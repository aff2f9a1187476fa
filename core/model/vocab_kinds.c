/* vocab_kinds.c: what each piece of a vocabulary is to a tokeniser (vocab_merges.h), as core/text takes it. */
#include "vocab_merges.h"

#include <string.h>

int weir__byte_of_name(weir__string piece) {
    static const char digits[] = "0123456789ABCDEF";
    if (piece.size != 6 || memcmp(piece.data, "<0x", 3) != 0 || piece.data[5] != '>')
        return -1;
    const char *high = memchr(digits, piece.data[3], 16), *low = memchr(digits, piece.data[4], 16);
    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

uint8_t *weir__vocab_kinds(weir_system *s, const weir__vocab *v) {
    uint8_t *kinds = weir__alloc(s, v->size + 1);
    if (!kinds)
        return NULL;
    for (size_t i = 0; i < v->size; i++) {
        kinds[i] = v->pieces[i].size == 0 ? WEIR__UNUSED : v->kinds ? (uint8_t)v->kinds[i] : WEIR__NORMAL;
        if (v->byte_fallback && weir__byte_of_name(v->pieces[i]) >= 0)
            kinds[i] = WEIR__BYTE;
    }
    for (size_t i = 0; i < v->n_added; i++) {
        uint8_t *kind = &kinds[v->added[i].id];
        if (*kind != WEIR__UNKNOWN && (v->added[i].special || *kind != WEIR__BYTE))
            *kind = v->added[i].special ? WEIR__CONTROL : WEIR__USER;
    }
    if (v->unk >= 0 && (size_t)v->unk < v->size && kinds[v->unk] != WEIR__CONTROL)
        kinds[v->unk] = WEIR__UNKNOWN;
    return kinds;
}
