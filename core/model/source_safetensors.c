/* source_safetensors.c: Hugging Face's checkpoints as a source (source.h): one safetensors file or shards with an index, and the config.json, the tokeniser and the chat
 * templates beside them. */
#include "chat_settings.h"
#include "config_json.h"
#include "safetensors.h"
#include "shard_index.h"
#include "source_internal.h"
#include "split.h"
#include "tokenizer_json.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define INDEX ".safetensors.index.json"

typedef struct checkpoint {
    char *folder, *config_path, *index_path; /* index_path NULL: one file */
    weir__chat_settings chat;
    weir__config_json *config; /* NULL: there is none */
    weir__shard_index *index;
    weir__safetensors **shards; /* [count] owned */
    uint32_t count;
} checkpoint;

static int no_memory(const weir__source *src, weir_error **error) {
    return weir_fail(error, WEIR_ENOMEM, "%s: no memory", src->path);
}

/* "FOLDER/name" for the folder of `path`. */
static char *beside(weir_system *s, const char *path, const char *name) {
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0, room = folder + strlen(name) + 1;
    char *to = weir__alloc(s, room);
    if (to)
        snprintf(to, room, "%.*s%s", (int)folder, path, name);
    return to;
}

/* ---- opening ---- */

/* The index that belongs to src->main: itself, or for a shard the one of its name. NULL and 0: it is one file. */
static int find_index(const weir__source *src, char **out, weir_error **error) {
    weir__split split;
    size_t n = strlen(src->main), suffix = strlen(INDEX);
    *out = NULL;
    if (n > suffix && strcmp(src->main + n - suffix, INDEX) == 0) {
        *out = weir__strdup(src->system, src->main);
        return *out ? WEIR_OK : no_memory(src, error);
    }
    if (!weir__split_parse(src->main, ".safetensors", 0, &split) || split.count < 2)
        return WEIR_OK;
    size_t room = split.prefix + suffix + 1;
    *out = weir__alloc(src->system, room);
    if (!*out)
        return no_memory(src, error);
    snprintf(*out, room, "%.*s%s", (int)split.prefix, src->main, INDEX);
    if (access(*out, F_OK) == 0)
        return WEIR_OK;
    return weir_fail(error, WEIR_ENOENT, "%s: is missing: %s is one of %llu shards", *out, src->main, (unsigned long long)split.count);
}

/* Opens the shards that the index names. */
static int open_shards(weir__source *src, checkpoint *c, weir_error **error) {
    uint32_t n = weir__shard_index_files(c->index);
    c->shards = weir__alloc(src->system, n * sizeof(void *));
    if (!c->shards)
        return no_memory(src, error);
    int code = WEIR_OK;
    for (; c->count < n && !code; c->count += !code) {
        char *path = beside(src->system, c->index_path, weir__shard_index_file(c->index, c->count));
        if (!path)
            return no_memory(src, error);
        if (access(path, F_OK) == 0)
            code = weir__safetensors_open(src->system, path, &c->shards[c->count], error);
        else
            code = weir_fail(error, WEIR_ENOENT, "%s: is missing: %s names it", path, c->index_path);
        weir__free(src->system, path);
    }
    return code ? code : weir__shard_index_check(c->index, c->shards, error);
}

static int open_weights(weir__source *src, checkpoint *c, weir_error **error) {
    int code = find_index(src, &c->index_path, error);
    if (code)
        return code;
    if (c->index_path) {
        code = weir__shard_index_open(src->system, c->index_path, &c->index, error);
        return code ? code : open_shards(src, c, error);
    }
    c->shards = weir__alloc(src->system, sizeof(void *));
    if (!c->shards)
        return no_memory(src, error);
    code = weir__safetensors_open(src->system, src->main, &c->shards[0], error);
    c->count = code ? 0 : 1;
    return code;
}

static int open_config(const weir__source *src, checkpoint *c, weir_error **error) {
    c->config_path = beside(src->system, src->main, "config.json");
    if (!c->config_path)
        return no_memory(src, error);
    if (access(c->config_path, F_OK) != 0)
        return WEIR_OK;
    return weir__config_json_open(src->system, c->config_path, &c->config, error);
}

static int open_chat(const weir__source *src, checkpoint *c, weir_error **error) {
    char *slash;
    c->folder = weir__strdup(src->system, src->main);
    if (c->folder && (slash = strrchr(c->folder, '/')))
        slash[slash == c->folder] = 0;
    else if (c->folder)
        memcpy(c->folder, ".", 2);
    return c->folder ? weir__chat_settings_read(src->system, c->folder, &c->chat, error) : no_memory(src, error);
}

/* Moves the tensors of shard i to the source. */
static void take_tensors(weir__source *src, uint32_t i, weir__safetensors *st) {
    src->files[i] = st->file;
    for (size_t t = 0; t < st->n_tensors; t++)
        st->tensors[t].file = i;
    if (!src->tensors) {
        src->tensors = st->tensors;
    } else {
        memcpy(src->tensors + src->n_tensors, st->tensors, st->n_tensors * sizeof *st->tensors);
        weir__free(src->system, st->tensors);
    }
    src->n_tensors += st->n_tensors;
    st->tensors = NULL;
    st->n_tensors = 0;
}

static int gather(weir__source *src, const checkpoint *c, weir_error **error) {
    size_t n = 0;
    for (uint32_t i = 0; i < c->count; i++)
        n += c->shards[i]->n_tensors;
    if (n > WEIR_SAFETENSORS_MAX_TENSORS)
        return weir_fail(error, WEIR_EFORMAT, "%s: found %zu tensors, wanted at most %d", src->path, n, WEIR_SAFETENSORS_MAX_TENSORS);
    src->files = weir__alloc(src->system, c->count * sizeof *src->files);
    src->tensors = c->count > 1 ? weir__alloc(src->system, (n + 1) * sizeof *src->tensors) : NULL;
    if (!src->files || (c->count > 1 && !src->tensors))
        return no_memory(src, error);
    src->n_files = c->count;
    for (uint32_t i = 0; i < c->count; i++)
        take_tensors(src, i, c->shards[i]);
    return WEIR_OK;
}

static int open_checkpoint(weir__source *src, weir_error **error) {
    checkpoint *c = src->data = weir__alloc(src->system, sizeof *c);
    if (!c)
        return no_memory(src, error);
    int code = open_config(src, c, error);
    src->settings_path = c->config_path;
    src->no_settings = !c->config;
    if (!code)
        code = open_chat(src, c, error);
    if (!code)
        code = open_weights(src, c, error);
    if (!code)
        code = gather(src, c, error);
    weir__shard_index_free(c->index);
    c->index = NULL;
    return code;
}

static void close_checkpoint(weir__source *src) {
    checkpoint *c = src->data;
    if (!c)
        return;
    for (uint32_t i = 0; i < c->count; i++)
        weir__safetensors_free(c->shards[i]);
    weir__shard_index_free(c->index);
    weir__config_json_free(c->config);
    weir__chat_settings_fini(&c->chat);
    weir__free(src->system, c->shards);
    weir__free(src->system, c->folder);
    weir__free(src->system, c->config_path);
    weir__free(src->system, c->index_path);
    weir__free(src->system, c);
}

/* ---- settings ---- */

static const weir__config_json *config(const weir__source *src) {
    return ((const checkpoint *)src->data)->config;
}

static void get(const weir__source *src, const char *key, weir__value *v) {
    *v = (weir__value){0};
    if (config(src))
        weir__config_json_get(config(src), key, v);
}

static void element(const weir__source *src, const char *key, uint64_t i, weir__value *v) {
    *v = (weir__value){0};
    if (config(src))
        weir__config_json_element(config(src), key, i, v);
}

static int each(const weir__source *src, weir__setting_fn *fn, void *data, weir_error **error) {
    return config(src) ? weir__config_json_each(config(src), fn, data, error) : WEIR_OK;
}

/* ---- text ---- */

static int vocab(const weir__source *src, weir__vocab_fn *fn, void *data, weir_error **error) {
    return weir__tokenizer_json_vocab(src->system, ((const checkpoint *)src->data)->folder, fn, data, error);
}

static const weir__chat_settings *chat(const weir__source *src) {
    return &((const checkpoint *)src->data)->chat;
}

static bool chat_template(const weir__source *src, const char *name, weir__string *text) {
    const weir__string *found = weir__chat_template_find(chat(src), name);
    *text = found ? *found : (weir__string){0};
    return found;
}

/* The default one has no name here. */
static bool template_name(const weir__source *src, uint32_t i, weir__string *name) {
    for (size_t k = 0; k < chat(src)->n_templates; k++) {
        *name = chat(src)->templates[k].name;
        if (strcmp(name->data, "default") != 0 && i-- == 0)
            return true;
    }
    return false;
}

const weir__format_ops weir__safetensors_format = {open_checkpoint, close_checkpoint, get,           element,     each,
                                                   vocab,           chat_template,    template_name, "model_type"};
