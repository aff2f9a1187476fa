/* llama2c.h: reads checkpoints of llama2.c (github.com/karpathy/llama2.c, "version 0": 7 int32, then float32 weights) with their tok512.bin style vocabulary and
 * writes them as GGUF (architecture llama, f32, SentencePiece BPE). */
#ifndef WEIR_LLAMA2C_H
#define WEIR_LLAMA2C_H

#include "gguf.h"

/* tokenizer NULL: looks for tok*.bin or tokenizer.bin beside the checkpoint (exactly one). Blocks. Errors name file, field, found, wanted. */
WEIR_API int weir__llama2c_convert(weir_system *s, const char *checkpoint, const char *tokenizer, const char *out_path, weir_error **error);
/* Parsers of outside bytes, for fuzzing: check a header against the size of the file; check a vocabulary. */
int weir__llama2c_check(weir_system *s, const void *header, size_t size, uint64_t file_size, weir_error **error);
int weir__llama2c_vocab_check(weir_system *s, const void *bytes, size_t size, int64_t pieces, weir_error **error);

#endif
