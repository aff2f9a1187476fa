/* fuzz_llama2c.c: any bytes as a llama2.c checkpoint's header (first byte even) or vocabulary (odd; the second byte is the number of pieces). */
#include "../../core/model/llama2c.h"

#include <string.h>

static weir_system *s;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint64_t file_size;
    if (size < 10 || (!s && weir_system_new(NULL, &s, NULL)))
        return 0;
    if (data[0] % 2) {
        weir__llama2c_vocab_check(s, data + 2, size - 2, data[1], NULL);
        return 0;
    }
    memcpy(&file_size, data + 2, 8);
    weir__llama2c_check(s, data + 10, size - 10, file_size, NULL);
    return 0;
}
