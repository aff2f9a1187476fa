/* source.c: what checkpoints of every format have in common (source.h): choosing the format, finding tensors, reading them. */
#include "safetensors.h"
#include "source_internal.h"

#include <string.h>

static const weir__format_ops *const formats[WEIR__FORMATS] = {
    [WEIR__FORMAT_GGUF] = &weir__gguf_format, [WEIR__FORMAT_SAFETENSORS] = &weir__safetensors_format};

static int found_twice(const weir__source *src, const weir__tensor *t, weir_error **error) {
    char shown[128];
    const weir__tensor *other = &src->tensors[weir__index_find(&src->index, t->name.data, t->name.size)];
    weir__quote(shown, sizeof shown, t->name.data, t->name.size);
    if (t->file == other->file)
        return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%s\": found twice", src->files[t->file].path, shown);
    return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%s\": found also in %s", src->files[t->file].path, shown,
                     src->files[other->file].path);
}

static int index_tensors(weir__source *src, weir_error **error) {
    if (weir__index_init(src->system, &src->index, src->tensors, sizeof *src->tensors, src->n_tensors))
        return weir_fail(error, WEIR_ENOMEM, "%s: no memory for %zu tensors", src->path, src->n_tensors);
    for (size_t i = 0; i < src->n_tensors; i++)
        if (!weir__index_add(&src->index, (uint32_t)i))
            return found_twice(src, &src->tensors[i], error);
    return WEIR_OK;
}

static int open_format(weir__source *src, weir_error **error) {
    int code = weir__source_choose(src->system, src->path, &src->format, &src->main, error);
    if (code)
        return code;
    src->ops = formats[src->format];
    code = src->ops->open(src, error);
    return code ? code : index_tensors(src, error);
}

int weir__source_open(weir_system *s, const char *path, weir__source **out, weir_error **error) {
    weir__source *src = weir__alloc(s, sizeof *src);
    if (!src)
        return weir_fail(error, WEIR_ENOMEM, "%s: no memory", path);
    src->system = s;
    src->path = weir__strdup(s, path);
    int code = src->path ? open_format(src, error) : weir_fail(error, WEIR_ENOMEM, "%s: no memory", path);
    if (code)
        weir__source_free(src);
    else
        *out = src;
    return code;
}

void weir__source_free(weir__source *src) {
    if (!src)
        return;
    if (src->ops)
        src->ops->free(src);
    weir__index_fini(src->system, &src->index);
    weir__free(src->system, src->tensors);
    weir__free(src->system, src->files);
    weir__free(src->system, src->path);
    weir__free(src->system, src->main);
    weir__free(src->system, src);
}

weir_system *weir__source_system(const weir__source *src) {
    return src->system;
}
const char *weir__source_path(const weir__source *src) {
    return src->path;
}
const char *weir__source_settings_path(const weir__source *src) {
    return src->settings_path ? src->settings_path : src->main;
}
enum weir__format weir__source_format(const weir__source *src) {
    return src->format;
}
uint32_t weir__source_files(const weir__source *src) {
    return src->n_files;
}
const char *weir__source_file(const weir__source *src, uint32_t i) {
    return i < src->n_files ? src->files[i].path : NULL;
}

uint64_t weir__source_bytes(const weir__source *src) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < src->n_files; i++)
        bytes += src->files[i].size;
    return bytes;
}

int weir__source_family(const weir__source *src, weir__string *name, weir_error **error) {
    weir__value v;
    const char *settings = weir__source_settings_path(src);
    if (src->no_settings)
        return weir_fail(error, WEIR_ENOENT, "%s: not found, but needed: it says what the model is", settings);
    src->ops->get(src, src->ops->family_key, &v);
    if (v.kind != WEIR__TEXT)
        return weir_fail(error, WEIR_EFORMAT, "%s: key \"%s\": %s", settings, src->ops->family_key,
                         v.kind == WEIR__ABSENT ? "not found, but needed" : "found no string");
    *name = v.text;
    return WEIR_OK;
}

void weir__source_get(const weir__source *src, const char *key, weir__value *v) {
    src->ops->get(src, key, v);
}
void weir__source_element(const weir__source *src, const char *key, uint64_t i, weir__value *v) {
    src->ops->element(src, key, i, v);
}
int weir__source_each(const weir__source *src, weir__setting_fn *fn, void *data, weir_error **error) {
    return src->ops->each(src, fn, data, error);
}

const char *weir__tensor_type_name(int type) {
    const weir_type_info *info = weir_type_any(type);
    const weir__safetensors_type *other = weir__safetensors_type_get(type);
    return info ? info->name : other ? other->name : "unknown";
}

size_t weir__source_tensor_count(const weir__source *src) {
    return src->n_tensors;
}
const weir__tensor *weir__source_tensor_at(const weir__source *src, size_t i) {
    return i < src->n_tensors ? &src->tensors[i] : NULL;
}
const weir__tensor *weir__source_find(const weir__source *src, const char *name) {
    int64_t i = weir__index_find(&src->index, name, strlen(name));
    return i >= 0 ? &src->tensors[i] : NULL;
}

int weir__source_read(const weir__source *src, const weir__tensor *t, uint64_t offset, void *to, size_t size, weir_error **error) {
    if (offset > t->size || size > t->size - offset)
        return weir_fail(error, WEIR_EINVAL, "%s: tensor \"%.*s\" has %llu bytes, %zu at %llu were asked for", src->path, (int)t->name.size,
                         t->name.data, (unsigned long long)t->size, size, (unsigned long long)offset);
    return weir__file_read(&src->files[t->file], t->offset + offset, to, size, error);
}

int weir__source_vocab(const weir__source *src, weir__vocab_fn *fn, void *data, weir_error **error) {
    return src->ops->vocab(src, fn, data, error);
}
int weir__source_tokenizer(const weir__source *src, weir__tokenizer **out, weir_error **error) {
    weir__making making = {src->system, out, ""};
    *out = NULL;
    return weir__source_vocab(src, weir__make_tokenizer, &making, error);
}
bool weir__source_template(const weir__source *src, const char *name, weir__string *text) {
    return src->ops->chat_template(src, name, text);
}
bool weir__source_template_name(const weir__source *src, uint32_t i, weir__string *name) {
    return src->ops->template_name(src, i, name);
}
