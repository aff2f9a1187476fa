/* settings_write.c: from a config to a file's settings, by the same tables that read them. */
#include "family.h"

#include <stdio.h>
#include <string.h>

/* Alternative i of names separated by spaces, the last one if there are fewer. */
static void alternative(const char *names, int i, char *to, size_t size) {
    const char *at = names, *next;
    while ((next = strchr(at, ' ')) && i-- > 0)
        at = next + 1;
    snprintf(to, size, "%.*s", (int)strcspn(at, " "), at);
}

/* Of config.json's spellings the older one of the rotary settings, which every reader knows, and the first one of others. */
static int choice(const weir__setting *s) {
    return strchr(s->hf, '.') ? 99 : 0;
}

/* What the factor of yarn's tables is in this format; 0: what it is anyway. */
static double attention_factor(const weir__config *c, bool gguf) {
    double whole = weir__yarn_magnitude(c->rope_config.factor, 1);
    if (c->rope.scaling != WEIR_ROPE_YARN || c->rope_scale == whole)
        return 0;
    return gguf ? c->rope_scale / whole : c->rope_scale;
}

/* Settings that are not written as they stand. False: not at all. */
static bool adjust(const weir__setting *s, const weir__config *c, bool gguf, weir__value *v) {
    if (s->offset == WEIR__AT(rope_config.type))
        return c->rope.scaling != WEIR_ROPE_PLAIN && c->rope.scaling != WEIR_ROPE_FACTORS && !(gguf && c->rope.scaling == WEIR_ROPE_LLAMA3);
    if (s->offset == WEIR__AT(rope_config.factor) && gguf)
        return c->rope.scaling == WEIR_ROPE_LINEAR || c->rope.scaling == WEIR_ROPE_YARN;
    if (s->offset == WEIR__AT(rope_config.original) && gguf)
        return c->rope.scaling == WEIR_ROPE_YARN && v->real > 0;
    if (s->offset == WEIR__AT(rope_config.mscale) || s->offset == WEIR__AT(rope_config.mscale_all_dim) ||
        s->offset == WEIR__AT(rope_config.linear))
        return false;
    if (s->offset == WEIR__AT(rope_config.attention))
        v->real = attention_factor(c, gguf);
    return !(s->offset == WEIR__AT(rope_config.partial) && c->rope_config.partial == 1);
}

static bool value_of(const weir__setting *s, const weir__config *c, bool gguf, weir__value *v) {
    const void *from = (const char *)c + s->offset;
    *v = (weir__value){0};
    if (s->kind == WEIR__SET_FLAG) {
        v->kind = WEIR__BOOLEAN;
        v->integer = *(const bool *)from;
        return s->offset != WEIR__AT(rope_config.truncate) || !v->integer;
    }
    if (s->kind == WEIR__SET_NAME) {
        const weir__name *n = s->names;
        while (n->name && n->value != *(const int32_t *)from)
            n++;
        v->kind = n->name ? WEIR__TEXT : WEIR__ABSENT;
        v->text = n->name ? (weir__string){n->name, strlen(n->name)} : v->text;
        return n->name && adjust(s, c, gguf, v);
    }
    v->kind = s->kind == WEIR__SET_INT ? WEIR__INTEGER : WEIR__REAL;
    v->integer = s->kind == WEIR__SET_INT ? *(const int32_t *)from : 0;
    v->real = s->kind == WEIR__SET_INT ? (double)v->integer : *(const double *)from;
    if (!adjust(s, c, gguf, v))
        return false;
    if (v->real == 0 && s->nullable && !gguf)
        v->kind = WEIR__NULL;
    return v->real != 0 || s->nullable;
}

void weir__config_emit(const weir__family *f, const weir__config *c, enum weir__format format, weir__emit_fn *fn, void *data) {
    bool gguf = format == WEIR__FORMAT_GGUF;
    const weir__setting *s;
    for (size_t i = 0; (s = weir__family_setting(f, i)); i++) {
        const char *names = gguf ? s->gguf : s->hf;
        char name[96], key[160];
        weir__value v;
        if (!names || s->kind == WEIR__SET_ELSEWHERE || !value_of(s, c, gguf, &v))
            continue;
        alternative(names, gguf ? 0 : choice(s), name, sizeof name);
        snprintf(key, sizeof key, "%s%s%s", gguf ? (f->gguf ? f->gguf : f->name) : "", gguf ? "." : "", name);
        fn(data, key, &v);
    }
}
