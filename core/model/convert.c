/* convert.c: one checkpoint as another (convert.h): opens, finds the family, hands over to the writers. */
#include "convert_internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_with(const char *path, const char *suffix) {
    size_t n = strlen(path), m = strlen(suffix);
    return n > m && strcmp(path + n - m, suffix) == 0;
}

static bool same_file(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool is_float(int type) {
    return type == WEIR_F32 || type == WEIR_F16 || type == WEIR_BF16;
}

static int check(const weir__conversion *c, const char *out, enum weir__format to, weir_error **error) {
    char known[256] = "";
    for (int i = 0; i < WEIR_TYPES; i++)
        if (weir_type_writes(i))
            weir__enumerate(known, sizeof known, weir_type_any(i)->name);
    if (c->options->type >= 0 && !weir_type_writes(c->options->type))
        return weir_fail(error, WEIR_EINVAL, "weights of type %d are not written (%s are)", c->options->type, known);
    if (c->options->type >= 0 && to == WEIR__FORMAT_SAFETENSORS && !is_float(c->options->type))
        return weir_fail(error, WEIR_EINVAL, "%s: weights of type %s for a folder: safetensors has no quantised types", out,
                         weir_type_any(c->options->type)->name);
    for (uint32_t i = 0; i < weir__source_files(c->source); i++)
        if (same_file(weir__source_file(c->source, i), out))
            return weir_fail(error, WEIR_EINVAL, "%s: is a file of the model that is converted", out);
    return same_file(weir__source_path(c->source), out) ? weir_fail(error, WEIR_EINVAL, "%s: is the model that is converted", out)
                                                        : WEIR_OK;
}

void weir__convert_warn(weir__conversion *c, const char *text) {
    char *to = c->options->warning;
    size_t used = strlen(to);
    if (*text)
        snprintf(to + used, sizeof c->options->warning - used, "%s%s", used ? "; " : "", text);
}

int weir__convert_vocab(weir__conversion *c, weir__vocab_fn *fn, void *data, weir_error **error) {
    weir_error *why = NULL;
    int code = weir__source_vocab(c->source, fn, data, &why);
    if (code == WEIR_EUNSUPPORTED) {
        char text[400];
        snprintf(text, sizeof text, "no tokeniser is written: %s", weir_error_text(why));
        weir__convert_warn(c, text);
        code = WEIR_OK;
    } else if (code) {
        weir_fail(error, code, "%s", weir_error_text(why));
    }
    weir_error_free(why);
    return code;
}

/* GGUF has mistral as llama with a window, which config.json's llama cannot say. */
static int read_family(weir__conversion *c, weir_error **error) {
    int code = weir__family_of(c->source, &c->family, error);
    if (!code)
        code = weir__config_read(c->source, c->family, &c->config, error);
    if (!code && c->config.own_head)
        weir__convert_warn(c, WEIR__OWN_HEAD);
    if (!code && c->family == &weir__llama && c->config.window > 0)
        c->family = &weir__mistral;
    return code;
}

int weir__convert(weir_system *s, const char *in, const char *out, weir__convert_options *o, weir_error **error) {
    weir__conversion c = {.system = s, .options = o};
    enum weir__format to = ends_with(out, ".gguf") ? WEIR__FORMAT_GGUF : WEIR__FORMAT_SAFETENSORS;
    o->kept = 0;
    *o->warning = 0;
    int code = weir__source_open(s, in, &c.source, error);
    if (!code)
        code = check(&c, out, to, error);
    if (!code && weir__source_format(c.source) != to)
        code = read_family(&c, error);
    if (!code)
        code = (to == WEIR__FORMAT_GGUF ? weir__convert_to_gguf : weir__convert_to_folder)(&c, out, error);
    for (size_t i = 0; i < c.n; i++) {
        weir__free(s, c.items[i].name);
        weir__free(s, c.items[i].values);
    }
    weir__free(s, c.items);
    weir__config_fini(s, &c.config);
    weir__source_free(c.source);
    return code;
}
