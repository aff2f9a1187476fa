/* source_choose.c: from a path to the file that a checkpoint is opened by, and its format. Looks at names and at the first bytes; what is no checkpoint, or
 * one of another program, is refused by what it is. */
#include "source_internal.h"
#include "split.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define INDEX ".safetensors.index.json"
#define WHOLE "model.safetensors"

enum { MAGIC = 16, MOST_NAMES = 16 };

static bool ends_in(const char *name, const char *suffix) {
    size_t n = strlen(name), m = strlen(suffix);
    return n > m && strcmp(name + n - m, suffix) == 0;
}

static bool begins_with(const char *name, const char *prefix) {
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* ---- one file ---- */

static const struct {
    const char *suffix, *what;
} foreign[] = {
    {".pt", "a PyTorch checkpoint"},
    {".pth", "a PyTorch checkpoint"},
    {".ckpt", "a PyTorch checkpoint"},
    {".onnx", "an ONNX model"},
    {".h5", "a Keras checkpoint"},
    {".tflite", "a TensorFlow Lite model"},
    {".msgpack", "a Flax checkpoint"},
    {".mlmodel", "a Core ML model"},
    {".model", "a SentencePiece tokeniser"},
    {".npz", "a NumPy archive"},
    {".index", "a TensorFlow checkpoint"},
    {".engine", "a TensorRT engine"},
    {".json", "a JSON file"},
    {".txt", "a text"},
};

/* What other programs' files begin with. */
static const struct {
    size_t at, size;
    const char *bytes, *what;
} magics[] = {
    {0, 4, "PK\3\4", "a zip archive, as PyTorch and NumPy write them"},
    {0, 2, "\x80\2", "a Python pickle, as old PyTorch writes them"},
    {0, 4, "\x89HDF", "a Keras checkpoint"},
    {4, 4, "TFL3", "a TensorFlow Lite model"},
    {0, 4, "lmgg", "a file of llama.cpp before GGUF"},
    {0, 4, "fmgg", "a file of llama.cpp before GGUF"},
    {0, 4, "tjgg", "a file of llama.cpp before GGUF"},
    {0, 4, "algg", "an adapter of llama.cpp before GGUF"},
    {0, 8, "version ", "a Git LFS pointer: the file itself was not fetched"},
};

static int refuse(const char *path, const char *what, weir_error **error) {
    return weir_fail(error, WEIR_EUNSUPPORTED, "%s: found %s, wanted GGUF or safetensors", path, what);
}

static int refuse_magic(const char *path, const char *first, size_t size, weir_error **error) {
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (size >= magics[i].at + magics[i].size && memcmp(first + magics[i].at, magics[i].bytes, magics[i].size) == 0)
            return refuse(path, magics[i].what, error);
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (ends_in(path, foreign[i].suffix))
            return refuse(path, foreign[i].what, error);
    return WEIR_OK;
}

/* By content first: files are renamed. What is nothing known goes to GGUF's reader, which says what it found. */
static int choose_file(weir_system *s, const char *path, enum weir__format *format, weir_error **error) {
    weir__file f;
    char first[MAGIC];
    int code = weir__file_open(s, path, &f, error);
    if (code)
        return code;
    size_t size = f.size < MAGIC ? (size_t)f.size : MAGIC;
    code = weir__file_read(&f, 0, first, size, error);
    weir__file_close(&f);
    *format = WEIR__FORMAT_GGUF;
    if (code || (size >= 4 && (memcmp(first, "GGUF", 4) == 0 || memcmp(first, "FUGG", 4) == 0)) || ends_in(path, ".gguf"))
        return code;
    *format = WEIR__FORMAT_SAFETENSORS;
    if (ends_in(path, INDEX))
        return WEIR_OK;
    code = refuse_magic(path, first, size, error);
    if (!code && !ends_in(path, ".safetensors") && !(size > 8 && first[7] == 0 && first[8] == '{'))
        *format = WEIR__FORMAT_GGUF;
    return code;
}

/* ---- a folder ---- */

/* Names of one kind; more than MOST_NAMES are counted only. */
typedef struct names {
    char *name[MOST_NAMES]; /* owned */
    size_t count;
} names;

typedef struct listing {
    names gguf, safetensors, index, other;
    bool config, adapter, tokenizer, whole;
    const char *what; /* of other[0] */
} listing;

static int add(weir_system *s, names *n, const char *name) {
    if (n->count < MOST_NAMES && !(n->name[n->count] = weir__strdup(s, name)))
        return WEIR_ENOMEM;
    n->count++;
    return WEIR_OK;
}

/* A set of parts counts once. */
static bool have_set(const names *n, const char *name) {
    weir__split mine, other;
    if (!weir__split_parse(name, ".gguf", 5, &mine))
        return false;
    for (size_t i = 0; i < n->count && i < MOST_NAMES; i++)
        if (weir__split_parse(n->name[i], ".gguf", 5, &other) && other.prefix == mine.prefix && other.count == mine.count &&
            memcmp(n->name[i], name, mine.prefix) == 0)
            return true;
    return false;
}

static int see_other(weir_system *s, listing *l, const char *name) {
    const char *what = begins_with(name, "pytorch_model") && ends_in(name, ".bin") ? "a PyTorch checkpoint" : NULL;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign && !what; i++)
        if (ends_in(name, foreign[i].suffix) && !ends_in(name, ".json") && !ends_in(name, ".txt") && !ends_in(name, ".model"))
            what = foreign[i].what;
    if (!what)
        return WEIR_OK;
    l->what = l->what ? l->what : what;
    return add(s, &l->other, name);
}

static int see(weir_system *s, listing *l, const char *name) {
    if (name[0] == '.')
        return WEIR_OK;
    l->config |= strcmp(name, "config.json") == 0;
    l->adapter |= strcmp(name, "adapter_config.json") == 0;
    l->tokenizer |= strcmp(name, "tokenizer.json") == 0 || strcmp(name, "tokenizer.model") == 0;
    l->whole |= strcmp(name, WHOLE) == 0;
    if (ends_in(name, INDEX))
        return add(s, &l->index, name);
    if (ends_in(name, ".safetensors"))
        return begins_with(name, "adapter_model") ? WEIR_OK : add(s, &l->safetensors, name);
    if (ends_in(name, ".gguf"))
        return begins_with(name, "mmproj") || have_set(&l->gguf, name) ? WEIR_OK : add(s, &l->gguf, name);
    return see_other(s, l, name);
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int list(weir_system *s, const char *path, listing *l, weir_error **error) {
    DIR *dir = opendir(path);
    int code = dir ? WEIR_OK : weir_fail(error, WEIR_EIO, "%s: the folder cannot be read", path);
    for (struct dirent *d; !code && (d = readdir(dir));)
        code = see(s, l, d->d_name) ? weir_fail(error, WEIR_ENOMEM, "%s", path) : WEIR_OK;
    if (dir)
        closedir(dir);
    names *const all[] = {&l->gguf, &l->safetensors, &l->index, &l->other};
    for (size_t i = 0; i < 4; i++)
        qsort(all[i]->name, all[i]->count < MOST_NAMES ? all[i]->count : MOST_NAMES, sizeof *all[i]->name, by_name);
    return code;
}

/* An error that lists several. */
static int several(const char *path, const names *n, const char *wanted, weir_error **error) {
    char text[512] = "";
    size_t at = 0;
    for (size_t i = 0; i < n->count && i < MOST_NAMES && at < sizeof text - 1; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i ? ", " : "", n->name[i]);
    return weir_fail(error, WEIR_EINVAL, "%s: found %zu of them (%s%s), wanted %s", path, n->count, text,
                     n->count > MOST_NAMES ? ", ..." : "", wanted);
}

static int nothing(const char *path, const listing *l, weir_error **error) {
    if (l->adapter)
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: found adapter_config.json, a PEFT adapter, wanted a whole model", path);
    if (l->safetensors.count > 0)
        return weir_fail(error, WEIR_ENOENT, "%s: config.json is missing beside %s", path, l->safetensors.name[0]);
    if (l->other.count > 0)
        return weir_fail(error, WEIR_EUNSUPPORTED, "%s: found %s, %s, wanted GGUF or safetensors", path, l->other.name[0], l->what);
    if (l->tokenizer)
        return weir_fail(error, WEIR_ENOENT, "%s: found a tokeniser and no weights, wanted GGUF or safetensors", path);
    return weir_fail(error, WEIR_ENOENT, "%s: found no file of weights, wanted GGUF or safetensors", path);
}

static int pick(const char *path, const listing *l, enum weir__format *format, const char **name, weir_error **error) {
    *format = WEIR__FORMAT_SAFETENSORS;
    *name = NULL;
    if (l->config && l->whole)
        *name = WHOLE;
    else if (l->config && l->index.count == 1)
        *name = l->index.name[0];
    else if (l->config && l->index.count > 1)
        return several(path, &l->index, "one index; give the file", error);
    else if (l->config && l->safetensors.count == 1)
        *name = l->safetensors.name[0];
    else if (l->config && l->safetensors.count > 1)
        return several(path, &l->safetensors, "model.safetensors or model" INDEX "; or give the file", error);
    if (*name)
        return WEIR_OK;
    *format = WEIR__FORMAT_GGUF;
    if (l->gguf.count > 1)
        return several(path, &l->gguf, "one model; give the file", error);
    *name = l->gguf.count == 1 ? l->gguf.name[0] : NULL;
    return *name ? WEIR_OK : nothing(path, l, error);
}

static int choose_in_folder(weir_system *s, const char *path, enum weir__format *format, char **main, weir_error **error) {
    listing l = {0};
    const char *name;
    int code = list(s, path, &l, error);
    if (!code)
        code = pick(path, &l, format, &name, error);
    if (!code) {
        size_t room = strlen(path) + strlen(name) + 2;
        *main = weir__alloc(s, room);
        if (*main)
            snprintf(*main, room, "%s%s%s", path, path[strlen(path) - 1] == '/' ? "" : "/", name);
        else
            code = weir_fail(error, WEIR_ENOMEM, "%s", path);
    }
    names *const all[] = {&l.gguf, &l.safetensors, &l.index, &l.other};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < MOST_NAMES; k++)
            weir__free(s, all[i]->name[k]);
    return code;
}

int weir__source_choose(weir_system *s, const char *path, enum weir__format *format, char **main, weir_error **error) {
    struct stat st;
    *main = NULL;
    if (*path && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return choose_in_folder(s, path, format, main, error);
    int code = choose_file(s, path, format, error);
    if (!code && !(*main = weir__strdup(s, path)))
        code = weir_fail(error, WEIR_ENOMEM, "%s", path);
    return code;
}
