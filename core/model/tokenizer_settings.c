/* tokenizer_settings.c: reading of tokenizer_settings.h. */
#include "tokenizer_settings.h"

#include "tokenizer_json_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The value of a key, if it is there and not null. False: it is not, or *code says why. */
static bool get(weir__json j, const char *key, weir__json *at, int *code) {
    *at = j;
    if (*code)
        return false;
    bool there = weir__json_find(at, key) && !weir__json_null(at);
    *code = at->code;
    return there && !*code;
}

static void keep(weir__build *b, weir__json_text text, weir__string *to, int *code, weir_error **error) {
    const weir__tokenizer_file file = {.build = b};
    *code = weir__keep_text(&file, text, to, error);
}

static void get_text(weir__build *b, weir__json j, const char *key, weir__string *to, int *code, weir_error **error) {
    weir__json at;
    weir__json_text text;
    if (to->data || !get(j, key, &at, code))
        return;
    if (weir__json_string(&at, &text))
        keep(b, text, to, code, error);
    else
        *code = at.code;
}

/* A token: its text, or an object with it as "content". */
static void get_token(weir__build *b, weir__json j, const char *key, weir__string *to, int *code, weir_error **error) {
    weir__json at;
    if (to->data || !get(j, key, &at, code))
        return;
    if (weir__json_peek(&at) == WEIR__JSON_OBJECT)
        get_text(b, at, "content", to, code, error);
    else
        get_text(b, j, key, to, code, error);
}

static void get_flag(weir__json j, const char *key, int *to, int *code) {
    weir__json at;
    bool value = false;
    if (!get(j, key, &at, code))
        return;
    *code = weir__at_bool(at, &value);
    *to = value;
}

static void get_tokens(weir__build *b, weir__json j, weir__tokenizer_settings *t, int *code, weir_error **error) {
    get_token(b, j, "bos_token", &t->bos, code, error);
    get_token(b, j, "eos_token", &t->eos, code, error);
    get_token(b, j, "pad_token", &t->pad, code, error);
}

static int read_config(weir__build *b, const char *folder, weir__tokenizer_settings *t, weir_error **error) {
    weir__json j, added;
    int prefix = 0;
    int code = weir__text_file_try(b->system, folder, "tokenizer_config.json", WEIR__MOST_SETTINGS, &t->config, error);
    if (code || !t->config.data)
        return code;
    weir__json_init(&j, t->config.path, t->config.data, t->config.size, error);
    weir__json whole = j;
    code = weir__json_finish(&whole);
    get_tokens(b, j, t, &code, error);
    get_text(b, j, "tokenizer_class", &t->class, &code, error);
    get_flag(j, "add_bos_token", &t->add_bos, &code);
    get_flag(j, "add_eos_token", &t->add_eos, &code);
    get_flag(j, "add_prefix_space", &prefix, &code);
    t->add_prefix_space = prefix;
    if (get(j, "added_tokens_decoder", &added, &code))
        t->added = added;
    return code;
}

static int read_map(weir__build *b, const char *folder, weir__tokenizer_settings *t, weir_error **error) {
    weir__text_file f;
    weir__json j;
    int code = weir__text_file_try(b->system, folder, "special_tokens_map.json", WEIR__MOST_SETTINGS, &f, error);
    if (!code && f.data) {
        weir__json_init(&j, f.path, f.data, f.size, error);
        get_tokens(b, j, t, &code, error);
    }
    weir__text_file_fini(&f);
    return code;
}

/* An id, or a list of ids; those of the first file that has any are kept, those of a later one must be ids. */
static int read_ends(weir__build *b, weir__json at, weir__tokenizer_settings *t, weir_error **error) {
    enum { MOST = 256 };
    int64_t id;
    bool list = weir__json_peek(&at) == WEIR__JSON_ARRAY, keep = !t->ends;
    if (keep && !(t->ends = weir__build_alloc(b, MOST * sizeof *t->ends)))
        return weir_fail(error, WEIR_ENOMEM, "%s: eos_token_id", at.source);
    if (list)
        weir__json_array(&at);
    while ((!list || weir__json_next(&at)) && weir__json_int(&at, &id)) {
        bool may_be = id >= 0 && id < WEIR_MAX_VOCAB;
        if (keep && may_be && t->n_ends < MOST)
            t->ends[t->n_ends++] = (int32_t)id;
        if (keep && !may_be && t->outside == 0)
            t->outside = id;
        if (!list)
            break;
    }
    return at.code;
}

static int read_ids(weir__build *b, const char *folder, const char *name, weir__tokenizer_settings *t, weir_error **error) {
    weir__text_file f;
    weir__json j, at;
    int code = weir__text_file_try(b->system, folder, name, WEIR__MOST_SETTINGS, &f, error);
    if (!code && f.data) {
        weir__json_init(&j, f.path, f.data, f.size, error);
        weir__json whole = j;
        code = weir__json_finish(&whole);
        if (get(j, "eos_token_id", &at, &code))
            code = read_ends(b, at, t, error);
        if (t->bos_id < 0 && get(j, "bos_token_id", &at, &code) && weir__json_peek(&at) == WEIR__JSON_NUMBER)
            code = weir__at_range(at, INT64_MIN, INT64_MAX, &t->bos_id);
    }
    weir__text_file_fini(&f);
    return code;
}

int weir__tokenizer_settings_read(weir__build *b, const char *folder, weir__tokenizer_settings *t, weir_error **error) {
    int code;
    *t = (weir__tokenizer_settings){.add_bos = -1, .add_eos = -1, .bos_id = -1};
    if (!folder)
        return WEIR_OK;
    if ((code = read_config(b, folder, t, error)) || (code = read_map(b, folder, t, error)) ||
        (code = read_ids(b, folder, "generation_config.json", t, error)))
        return code;
    t->generation = t->ends;
    return read_ids(b, folder, "config.json", t, error);
}

void weir__tokenizer_settings_fini(weir__tokenizer_settings *t) {
    weir__text_file_fini(&t->config);
}

/* A special token by its text, else by its id. */
static void set_id(const weir__build *b, weir__string text, int64_t id, int32_t *to) {
    int32_t found = text.data ? weir__build_find(b, text.data, text.size) : -1;
    if (found < 0 && id >= 0 && (uint64_t)id < b->v.size)
        found = (int32_t)id;
    if (found >= 0)
        *to = found;
}

static int set_before(weir__build *b, int32_t id, bool wanted, weir_error **error) {
    bool there = b->v.n_before > 0 && b->before[0] == id;
    if (id < 0 || there == wanted)
        return WEIR_OK;
    if (wanted)
        return weir__build_before(b, id, error);
    memmove(b->before, b->before + 1, --b->v.n_before * sizeof *b->before);
    return WEIR_OK;
}

static int set_after(weir__build *b, int32_t id, bool wanted, weir_error **error) {
    bool there = b->v.n_after > 0 && b->after[b->v.n_after - 1] == id;
    if (id < 0 || there == wanted)
        return WEIR_OK;
    if (wanted)
        return weir__build_after(b, id, error);
    b->v.n_after--;
    return WEIR_OK;
}

static void warn(weir__build *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void warn(weir__build *b, const char *format, ...) {
    size_t used = strlen(b->warning);
    va_list args;
    va_start(args, format);
    if (used)
        used += (size_t)snprintf(b->warning + used, sizeof b->warning - used, "; ");
    if (used < sizeof b->warning)
        vsnprintf(b->warning + used, sizeof b->warning - used, format, args);
    va_end(args);
    b->v.warning = b->warning;
}

/* An end that the file names and the vocabulary has not. */
static void look_for_ends(weir__build *b, const weir__tokenizer_settings *t) {
    char shown[64];
    int64_t outside = t->outside;
    for (size_t i = 0; i < t->n_ends && outside == 0; i++)
        if ((size_t)t->ends[i] >= b->v.size)
            outside = t->ends[i];
    if (outside != 0 && t->generation)
        warn(b, "eos_token_id %lld of generation_config.json is outside of the vocabulary of %zu", (long long)outside, b->v.size);
    if (t->eos.size > 0 && b->v.size > 0 && weir__build_find(b, t->eos.data, t->eos.size) < 0)
        warn(b, "eos_token \"%s\" is no piece of the vocabulary", weir__quote(shown, sizeof shown, t->eos.data, t->eos.size));
}

int weir__tokenizer_settings_apply(weir__build *b, const weir__tokenizer_settings *t, weir_error **error) {
    weir__vocab *v = &b->v;
    int code = WEIR_OK;
    set_id(b, t->bos, t->bos_id, &v->bos);
    set_id(b, t->eos, t->n_ends > 0 ? t->ends[0] : -1, &v->eos);
    set_id(b, t->pad, -1, &v->pad);
    look_for_ends(b, t);
    v->ends = t->ends;
    v->n_ends = t->n_ends;
    if (t->add_bos >= 0)
        code = set_before(b, v->bos, t->add_bos, error);
    if (!code && t->add_eos >= 0)
        code = set_after(b, v->eos, t->add_eos, error);
    return code;
}
