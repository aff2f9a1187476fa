/* bytes.c: GPT-2's characters for bytes (github.com/openai/gpt-2, encoder.py, bytes_to_unicode): a byte that is printable Latin-1 is itself, the others are the
 * characters from U+0100 on. */
#include "tokenizer.h"

enum { SHIFTED = 256, POINTS = 324 };

static bool is_printable(unsigned b) {
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 255 && b != 173);
}

/* The bytes that are not printable, in order: 0..32, 127..160, 173. */
static int shifted_byte(unsigned rank) {
    return rank < 33 ? (int)rank : rank < 67 ? (int)rank + 94 : rank == 67 ? 173 : -1;
}
static unsigned shifted_rank(unsigned b) {
    return b < 33 ? b : b <= 160 ? b - 94 : 67;
}

size_t weir__byte_piece(unsigned char byte, char to[2]) {
    unsigned point = is_printable(byte) ? byte : SHIFTED + shifted_rank(byte);
    if (point < 0x80) {
        to[0] = (char)point;
        return 1;
    }
    to[0] = (char)(0xC0 | point >> 6);
    to[1] = (char)(0x80 | (point & 0x3F));
    return 2;
}

bool weir__bytes_of(weir__string piece, char *to, size_t *size) {
    *size = 0;
    for (size_t i = 0; i < piece.size;) {
        int step = weir__utf8_step(piece.data + i, piece.size - i);
        unsigned c = (unsigned char)piece.data[i];
        if (step != 1 && step != 2)
            return false;
        unsigned point = step == 1 ? c : (c & 0x1F) << 6 | ((unsigned char)piece.data[i + 1] & 0x3F);
        int byte = point >= POINTS ? -1 : point >= SHIFTED ? shifted_byte(point - SHIFTED) : is_printable(point) ? (int)point : -1;
        if (byte < 0)
            return false;
        to[(*size)++] = (char)byte;
        i += (size_t)step;
    }
    return true;
}
