/* bytes.h: GPT-2's characters for bytes, of which the pieces of byte-level vocabularies are made. */
#ifndef WEIR_TEXT_BYTES_H
#define WEIR_TEXT_BYTES_H

#include "vocab.h"

/* The bytes that a byte-level piece stands for, at `to`; false: it has a character that stands for none. */
bool weir__bytes_of(weir__string piece, char *to, size_t *size);
/* The piece of a byte, 1 or 2 bytes. */
size_t weir__byte_piece(unsigned char byte, char to[2]);

#endif
