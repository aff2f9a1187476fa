/* arch.c: the table of architectures. A new family is a file that defines its weir__arch and a row here. */
#include "model.h"

#include <string.h>

static const weir__arch *const table[] = {&weir__arch_llama};

const weir__arch *weir__arch_find(weir__string name) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strlen(table[i]->name) == name.size && memcmp(table[i]->name, name.data, name.size) == 0)
            return table[i];
    return NULL;
}

const char *weir__arch_names(void) {
    return "llama";
}
