/* fuzz_source.c: any bytes as files of a folder, opened as a checkpoint: choice of the format, parts and shards, settings and tensors of both formats. The first
 * byte says how the files are called; a byte 0xFF cuts the rest into two of them. */
#include "../../core/model/source.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static weir_system *s;
static char folder[64];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is opened, and the two files. */
static const char *const layouts[][3] = {
    {"m.gguf", "m.gguf", "other"},
    {"m-00001-of-00002.gguf", "m-00001-of-00002.gguf", "m-00002-of-00002.gguf"},
    {"m-00002-of-00002.gguf", "m-00001-of-00002.gguf", "m-00002-of-00002.gguf"},
    {"", "model.safetensors", "config.json"},
    {"", "a.gguf", "config.json"},
    {"w-00001-of-00002.safetensors", "w-00001-of-00002.safetensors", "w.safetensors.index.json"},
    {"w", "w", "other"},
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static void path_of(const char *name, char path[128]) {
    snprintf(path, 128, "%s/%s", folder, name);
}

static void write_file(const char *name, const uint8_t *data, size_t size) {
    char path[128];
    path_of(name, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    close(fd);
}

static void remove_file(const char *name) {
    char path[128];
    path_of(name, path);
    unlink(path);
}

static void remove_folder(void) {
    rmdir(folder);
}

static int use_setting(void *data, const char *key, const weir__value *v, weir_error **error) {
    weir__value got;
    (void)error;
    weir__source_get(data, key, &got);
    for (uint64_t i = 0; v->kind == WEIR__LIST && i < v->count && i < 16; i++)
        weir__source_element(data, key, i, &got);
    weir__source_element(data, key, v->count, &got);
    if (got.kind != WEIR__ABSENT)
        __builtin_trap();
    return WEIR_OK;
}

static void use(weir__source *src) {
    uint8_t bytes[16];
    weir__string text;
    weir_error *error = NULL;
    weir__source_each(src, use_setting, src, NULL);
    for (size_t i = 0; i < weir__source_tensor_count(src); i++) {
        const weir__tensor *t = weir__source_tensor_at(src, i);
        size_t n = t->size < sizeof bytes ? (size_t)t->size : sizeof bytes;
        if (t->file >= weir__source_files(src) || weir__source_read(src, t, t->size - n, bytes, n, NULL))
            __builtin_trap();
    }
    weir__source_family(src, &text, &error);
    weir_error_free(error);
    weir__source_template(src, NULL, &text);
    weir__source_template_name(src, 0, &text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[128];
    weir__source *src;
    if (!s) {
        strcpy(folder, "/tmp/weir-fuzz-source-XXXXXX");
        if (!mkdtemp(folder) || weir_system_new(NULL, &s, NULL))
            abort();
        atexit(remove_folder);
    }
    if (size == 0)
        return 0;
    const char *const *names = layouts[data[0] % LAYOUTS];
    const uint8_t *cut = memchr(data + 1, 0xFF, size - 1);
    size_t first = cut ? (size_t)(cut - data) - 1 : size - 1;
    write_file(names[1], data + 1, first);
    write_file(names[2], cut ? cut + 1 : data + 1, cut ? size - first - 2 : first);
    path_of(names[0], path);
    if (weir__source_open(s, path, &src, NULL) == WEIR_OK) {
        use(src);
        weir__source_free(src);
    }
    remove_file(names[1]);
    remove_file(names[2]);
    return 0;
}
