/* source_internal.h: what the formats share: the struct behind source.h and the functions that a format brings. */
#ifndef WEIR_SOURCE_INTERNAL_H
#define WEIR_SOURCE_INTERNAL_H

#include "../text/index.h"
#include "file.h"
#include "source.h"

typedef struct weir__format_ops {
    /* Fills src->files, tensors and data. On failure free is called for what was made. */
    int (*open)(weir__source *src, weir_error **error);
    void (*free)(weir__source *src);
    void (*get)(const weir__source *src, const char *key, weir__value *v);
    void (*element)(const weir__source *src, const char *key, uint64_t i, weir__value *v);
    int (*each)(const weir__source *src, weir__setting_fn *fn, void *data, weir_error **error);
    int (*vocab)(const weir__source *src, weir__vocab_fn *fn, void *data, weir_error **error);
    bool (*chat_template)(const weir__source *src, const char *name, weir__string *text);
    bool (*template_name)(const weir__source *src, uint32_t i, weir__string *name);
    const char *family_key;
} weir__format_ops;

extern const weir__format_ops weir__gguf_format, weir__safetensors_format;

struct weir__gguf;
const struct weir__gguf *weir__gguf_source_keys(const weir__source *src); /* the file of a GGUF source that has the keys */

/* From a path to the file that the checkpoint is opened by (owned by the caller) and its format. A folder has one checkpoint: safetensors with config.json, or one
 * GGUF. ENOENT, EIO; EINVAL: a folder with several, which are listed; EUNSUPPORTED: another program's file, by what it is. */
int weir__source_choose(weir_system *s, const char *path, enum weir__format *format, char **main, weir_error **error);

struct weir__source {
    weir_system *system;
    const weir__format_ops *ops;
    enum weir__format format;
    char *path;                /* owned: what was opened, maybe a folder */
    char *main;                /* owned: the file that it is opened by */
    const char *settings_path; /* the file that has the settings; owned by `data`, NULL: main */
    bool no_settings;          /* it does not exist */
    weir__file *files;         /* [n_files] owned; each path is owned by `data` */
    uint32_t n_files;
    weir__tensor *tensors; /* [n_tensors] owned; names are owned by `data` */
    size_t n_tensors;
    weir__index index; /* name -> tensor */
    void *data;        /* the format's */
};

#endif
