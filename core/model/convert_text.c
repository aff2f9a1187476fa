/* convert_text.c: the files of a folder's tokeniser: translated from a vocabulary, or copied from another folder. */
#include "convert_internal.h"

#include "safetensors_writer.h"
#include "text_file.h"
#include "vocab_json.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { MOST_BYTES = 1 << 28 }; /* of one file; published ones have under 40 MiB */

typedef struct target {
    weir__conversion *c;
    weir__safetensors_writer *to;
} target;

static int put_vocab(void *data, const weir__vocab *v, weir_error **error) {
    const target *t = data;
    weir__json_writer w;
    weir__json_write_init(&w, t->c->system, 0);
    int code = weir__vocab_write_json(t->c->system, v, &w, error);
    if (code) {
        weir__json_write_fini(&w);
        return code;
    }
    weir__safetensors_put_json(t->to, "tokenizer.json", &w);
    weir__json_write_init(&w, t->c->system, 2);
    weir__vocab_write_config(v, t->c->source, &w);
    weir__safetensors_put_json(t->to, "tokenizer_config.json", &w);
    weir__json_write_init(&w, t->c->system, 2);
    weir__vocab_write_generation(v, &w);
    weir__safetensors_put_json(t->to, "generation_config.json", &w);
    return WEIR_OK;
}

int weir__convert_text(weir__conversion *c, weir__safetensors_writer *to, weir_error **error) {
    return weir__convert_vocab(c, put_vocab, &(target){c, to}, error);
}

/* ---- copies ---- */

static int copy(weir__conversion *c, weir__safetensors_writer *to, const char *from, const char *name, weir_error **error) {
    weir__text_file file;
    int code = weir__text_file_try(c->system, from, name, MOST_BYTES, &file, error);
    if (code || !file.data)
        return code;
    weir__safetensors_put_file(to, name, file.data, file.size);
    weir__text_file_fini(&file);
    return WEIR_OK;
}

static int copy_templates(weir__conversion *c, weir__safetensors_writer *to, const char *from, weir_error **error) {
    static const char inner[] = "additional_chat_templates", end[] = ".jinja";
    char path[4200], name[512];
    int code = WEIR_OK;
    snprintf(path, sizeof path, "%s/%s", from, inner);
    DIR *d = opendir(path);
    for (struct dirent *e; d && !code && (e = readdir(d));) {
        size_t n = strlen(e->d_name), m = sizeof end - 1;
        snprintf(name, sizeof name, "%s/%s", inner, e->d_name);
        if (n > m && strcmp(e->d_name + n - m, end) == 0)
            code = copy(c, to, from, name, error);
    }
    if (d)
        closedir(d);
    return code;
}

int weir__convert_copy_text(weir__conversion *c, weir__safetensors_writer *to, weir_error **error) {
    static const char *const names[] = {"config.json",        "generation_config.json",
                                        "tokenizer.json",     "tokenizer_config.json",
                                        "vocab.json",         "special_tokens_map.json",
                                        "merges.txt",         "added_tokens.json",
                                        "tokenizer.model",    "vocab.txt",
                                        "chat_template.json", "chat_template.jinja"};
    const char *file = weir__source_file(c->source, 0), *slash = strrchr(file, '/');
    char from[4096] = ".";
    if (slash && snprintf(from, sizeof from, "%.*s/", (int)(slash - file), file) >= (int)sizeof from)
        return weir_fail(error, WEIR_EINVAL, "%s: path too long", file);
    int code = WEIR_OK;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !code; i++)
        code = copy(c, to, from, names[i], error);
    return code ? code : copy_templates(c, to, from, error);
}
