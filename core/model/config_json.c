/* config_json.c: from a config.json to flat settings (config_json.h). The text is walked twice by the same code: first to check and to count, then to fill
 * tables of known size; strings are unescaped where they stand. Iterative. */
#include "config_json.h"

#include "../text/index.h"
#include "../text/json.h"
#include "text_file.h"

#include <string.h>

typedef struct setting {
    weir__string key; /* its path; ends in a zero that does not count */
    weir__value value;
    size_t first; /* of a list: its first element */
} setting;

struct weir__config_json {
    weir_system *system;
    weir__text_file file; /* strings lie in its text */
    setting *settings;
    weir__value *elements; /* of all lists */
    char *names;
    weir__index index;
    size_t n_settings, n_elements, names_size;
};

/* The place of the walk. */
typedef struct walk {
    weir__json *j;
    weir__config_json *c;
    bool fill; /* the tables are there */
    size_t n_settings, n_elements, names_size;
    char path[WEIR_GGUF_MAX_NAME]; /* of the current setting */
    size_t size;
    size_t outer[WEIR_MAX_DEPTH + 1]; /* bytes of `path` that belong to the object at each depth */
} walk;

static void read_number(weir__json *j, weir__value *v) {
    weir__json ahead = *j;
    weir_error **error = j->error;
    ahead.error = NULL;
    if (!weir__json_int(&ahead, &v->integer)) {
        weir__json_double(j, &v->real);
        *v = (weir__value){.kind = WEIR__REAL, .real = v->real};
        return;
    }
    *j = ahead;
    j->error = error;
    *v = (weir__value){.kind = WEIR__INTEGER, .integer = v->integer, .real = (double)v->integer};
}

static void read_text(walk *w, weir__value *v) {
    weir__json_text text;
    if (!weir__json_string(w->j, &text))
        return;
    *v = (weir__value){.kind = WEIR__TEXT, .text = {text.data, text.size}};
    if (w->fill && text.escaped)
        v->text.size = weir__json_unescape(text, w->c->file.data + (text.data - w->c->file.data));
}

/* Any value but the members of an object and the elements of a list. */
static void read_value(walk *w, weir__value *v) {
    bool flag = false;
    *v = (weir__value){0};
    switch (weir__json_peek(w->j)) {
    case WEIR__JSON_STRING:
        read_text(w, v);
        break;
    case WEIR__JSON_NUMBER:
        read_number(w->j, v);
        break;
    case WEIR__JSON_BOOL:
        weir__json_bool(w->j, &flag);
        *v = (weir__value){.kind = WEIR__BOOLEAN, .integer = flag, .real = flag};
        break;
    case WEIR__JSON_NULL:
        weir__json_null(w->j);
        v->kind = WEIR__NULL;
        break;
    case WEIR__JSON_ARRAY:
        v->kind = WEIR__LIST;
        break;
    case WEIR__JSON_OBJECT:
        v->kind = WEIR__MAP;
        break;
    default:
        break;
    }
}

static void read_elements(walk *w, weir__value *list) {
    for (weir__json_array(w->j); weir__json_next(w->j); list->count++) {
        weir__value v;
        read_value(w, &v);
        if (v.kind == WEIR__LIST || v.kind == WEIR__MAP)
            weir__json_skip(w->j);
        if (w->fill)
            w->c->elements[w->n_elements] = v;
        w->n_elements++;
    }
}

/* Makes `path` the path of a key in the object at `depth`. */
static bool enter_key(walk *w, int depth, weir__json_text key) {
    size_t from = w->outer[depth];
    if (key.size > sizeof w->path || from + (from > 0) + key.size > sizeof w->path)
        return weir__json_fail(w->j, WEIR_EFORMAT, "found a key whose path has more than %zu bytes", sizeof w->path);
    if (from > 0)
        w->path[from++] = '.';
    w->size = from + weir__json_unescape(key, w->path + from);
    return true;
}

static bool add_setting(walk *w, const weir__value *v, size_t first) {
    if (w->n_settings == WEIR_MAX_SETTINGS)
        return weir__json_fail(w->j, WEIR_EFORMAT, "found more than %d settings", WEIR_MAX_SETTINGS);
    if (w->fill) {
        char *name = w->c->names + w->names_size;
        memcpy(name, w->path, w->size);
        w->c->settings[w->n_settings] = (setting){.key = {name, w->size}, .value = *v, .first = first};
    }
    w->n_settings++;
    w->names_size += w->size + 1;
    return true;
}

static int walk_all(walk *w, weir__json *j) {
    weir__json_text key;
    w->j = j;
    weir__json_object(j);
    for (int depth = 0; depth >= 0 && !j->code;) {
        weir__value v;
        size_t first = w->n_elements;
        if (!weir__json_next_key(j, &key)) {
            depth--;
            continue;
        }
        if (!enter_key(w, depth, key))
            break;
        read_value(w, &v);
        if (v.kind == WEIR__LIST)
            read_elements(w, &v);
        if (v.kind == WEIR__MAP && weir__json_object(j))
            w->outer[++depth] = w->size;
        if (!j->code)
            add_setting(w, &v, first);
    }
    return weir__json_finish(j);
}

static int make_tables(weir__config_json *c, const walk *w) {
    c->settings = weir__alloc(c->system, (w->n_settings + 1) * sizeof *c->settings);
    c->elements = weir__alloc(c->system, (w->n_elements + 1) * sizeof *c->elements);
    c->names = weir__alloc(c->system, w->names_size + 1);
    c->n_settings = w->n_settings;
    c->n_elements = w->n_elements;
    return c->settings && c->elements && c->names ? WEIR_OK : WEIR_ENOMEM;
}

static int index_settings(weir__config_json *c, const char *name, weir_error **error) {
    if (weir__index_init(c->system, &c->index, c->settings, sizeof *c->settings, c->n_settings))
        return weir_fail(error, WEIR_ENOMEM, "%s: %zu settings", name, c->n_settings);
    for (size_t i = 0; i < c->n_settings; i++) {
        char shown[128];
        if (!weir__index_add(&c->index, (uint32_t)i))
            return weir_fail(error, WEIR_EFORMAT, "%s: key \"%s\": found twice", name,
                             weir__quote(shown, sizeof shown, c->settings[i].key.data, c->settings[i].key.size));
    }
    return WEIR_OK;
}

static int parse(weir__config_json *c, weir_error **error) {
    weir__json j;
    const char *name = c->file.path;
    walk count = {.c = c}, fill = {.c = c, .fill = true};
    weir__json_init(&j, name, c->file.data, c->file.size, error);
    int code = walk_all(&count, &j);
    if (code)
        return code;
    if (make_tables(c, &count))
        return weir_fail(error, WEIR_ENOMEM, "%s: %zu settings", name, count.n_settings);
    weir__json_init(&j, name, c->file.data, c->file.size, error);
    code = walk_all(&fill, &j);
    return code ? code : index_settings(c, name, error);
}

/* Takes the file. */
static int make(weir__text_file *f, weir__config_json **out, weir_error **error) {
    weir__config_json *c = weir__alloc(f->system, sizeof *c);
    if (!c) {
        int code = weir_fail(error, WEIR_ENOMEM, "%s", f->path);
        weir__text_file_fini(f);
        return code;
    }
    *c = (weir__config_json){.system = f->system, .file = *f};
    int code = parse(c, error);
    if (code)
        weir__config_json_free(c);
    else
        *out = c;
    return code;
}

int weir__config_json_open(weir_system *s, const char *path, weir__config_json **out, weir_error **error) {
    weir__text_file f;
    int code = weir__text_file_read(s, NULL, path, WEIR_MAX_CONFIG, &f, error);
    return code ? code : make(&f, out, error);
}

int weir__config_json_parse(weir_system *s, const char *name, const char *text, size_t size, weir__config_json **out, weir_error **error) {
    weir__text_file f;
    int code = weir__text_file_copy(s, name, text, size, WEIR_MAX_CONFIG, &f, error);
    return code ? code : make(&f, out, error);
}

void weir__config_json_free(weir__config_json *c) {
    if (!c)
        return;
    weir__index_fini(c->system, &c->index);
    weir__free(c->system, c->settings);
    weir__free(c->system, c->elements);
    weir__free(c->system, c->names);
    weir__text_file_fini(&c->file);
    weir__free(c->system, c);
}

static const setting *find(const weir__config_json *c, const char *key) {
    int64_t i = weir__index_find(&c->index, key, strlen(key));
    return i >= 0 ? &c->settings[i] : NULL;
}

void weir__config_json_get(const weir__config_json *c, const char *key, weir__value *v) {
    const setting *s = find(c, key);
    *v = s ? s->value : (weir__value){0};
}

void weir__config_json_element(const weir__config_json *c, const char *key, uint64_t i, weir__value *v) {
    const setting *s = find(c, key);
    *v = s && s->value.kind == WEIR__LIST && i < s->value.count ? c->elements[s->first + i] : (weir__value){0};
}

int weir__config_json_each(const weir__config_json *c, weir__setting_fn *fn, void *data, weir_error **error) {
    for (size_t i = 0; i < c->n_settings; i++) {
        const setting *s = &c->settings[i], *next = i + 1 < c->n_settings ? s + 1 : NULL;
        bool members = next && next->key.size > s->key.size && memcmp(next->key.data, s->key.data, s->key.size) == 0 &&
                       next->key.data[s->key.size] == '.';
        if (s->value.kind == WEIR__MAP && members)
            continue;
        int code = fn(data, s->key.data, &s->value, error);
        if (code)
            return code;
    }
    return WEIR_OK;
}
