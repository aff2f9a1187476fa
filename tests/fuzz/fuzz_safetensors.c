/* fuzz_safetensors.c: any bytes as the header of a safetensors file, as a config.json or as an index of shards, by the first byte. What is taken must hold what
 * the readers promise. */
#include "../../core/model/config_json.h"
#include "../../core/model/safetensors.h"
#include "../../core/model/shard_index.h"

#include <stdlib.h>
#include <string.h>

static weir_system *s;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_header(const uint8_t *data, size_t size) {
    weir__safetensors *st;
    uint64_t covered = 0, first = UINT64_MAX;
    if (weir__safetensors_parse(s, "fuzz", data, size, size, &st, NULL))
        return;
    for (size_t i = 0; i < st->n_tensors; i++) {
        const weir__tensor *t = &st->tensors[i];
        if (t->size > size || t->offset > size - t->size || t->n_dims > WEIR_MAX_DIMS || t->name.size == 0)
            __builtin_trap();
        covered += t->size;
        first = t->offset < first ? t->offset : first;
    }
    if (st->n_tensors > 0 && covered != size - first)
        __builtin_trap();
    weir__safetensors_free(st);
}

static int use_setting(void *data, const char *key, const weir__value *v, weir_error **error) {
    const weir__config_json *c = data;
    weir__value again, element;
    (void)error;
    weir__config_json_get(c, key, &again);
    for (uint64_t i = 0; v->kind == WEIR__LIST && i <= v->count; i++) {
        weir__config_json_element(c, key, i, &element);
        if ((element.kind == WEIR__ABSENT) != (i == v->count))
            __builtin_trap();
    }
    return WEIR_OK;
}

static void use_config(const uint8_t *data, size_t size) {
    weir__config_json *c;
    if (weir__config_json_parse(s, "fuzz", (const char *)data, size, &c, NULL))
        return;
    weir__config_json_each(c, use_setting, c, NULL);
    weir__config_json_free(c);
}

static void use_index(const uint8_t *data, size_t size) {
    weir__shard_index *x;
    if (weir__shard_index_parse(s, "fuzz", (const char *)data, size, &x, NULL))
        return;
    for (uint32_t i = 0; i < weir__shard_index_files(x); i++) {
        const char *name = weir__shard_index_file(x, i);
        if (!*name || strchr(name, '/') || (i > 0 && strcmp(weir__shard_index_file(x, i - 1), name) >= 0))
            __builtin_trap();
    }
    weir__shard_index_free(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0 || (!s && weir_system_new(NULL, &s, NULL)))
        return 0;
    if (data[0] % 3 == 0)
        use_header(data + 1, size - 1);
    else if (data[0] % 3 == 1)
        use_config(data + 1, size - 1);
    else
        use_index(data + 1, size - 1);
    return 0;
}
