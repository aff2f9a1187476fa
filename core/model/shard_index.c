/* shard_index.c: reads and checks the index of a checkpoint in shards (shard_index.h). */
#include "shard_index.h"

#include "../text/index.h"
#include "../text/json.h"
#include "text_file.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 128 }; /* bytes of a name in an error */

typedef struct place {
    weir__string tensor;
    uint32_t file;
    bool seen; /* found in its shard */
} place;

typedef struct shard {
    weir__string name; /* zero-ended */
} shard;

struct weir__shard_index {
    weir_system *system;
    weir__text_file file; /* names lie in its text */
    place *places;
    shard *shards; /* [WEIR_MAX_FILES] */
    size_t n_places, places_room, n_shards;
    weir__index tensor_index, shard_index;
};

static const char *show(char to[SHOWN], weir__string s) {
    return weir__quote(to, SHOWN, s.data, s.size);
}

/* The string with its escapes resolved where it stands, and a zero behind it, in place of the quote. */
static weir__string settle(weir__shard_index *x, weir__json_text text) {
    char *data = x->file.data + (text.data - x->file.data);
    size_t n = text.escaped ? weir__json_unescape(text, data) : text.size;
    return (weir__string){data, n};
}

static bool is_plain(weir__string name) {
    return name.size > 0 && name.data[0] != '.' && !memchr(name.data, '/', name.size) && !memchr(name.data, 0, name.size);
}

/* The number of a shard, a new one if need be. */
static bool shard_number(weir__shard_index *x, weir__json *j, weir__string name, uint32_t *number) {
    char shown[SHOWN];
    int64_t known = weir__index_find(&x->shard_index, name.data, name.size);
    if (known >= 0) {
        *number = (uint32_t)known;
        return true;
    }
    if (!is_plain(name) || name.size > WEIR_GGUF_MAX_NAME)
        return weir__json_fail(j, WEIR_EFORMAT, "found shard \"%s\", wanted the name of a file beside the index", show(shown, name));
    if (x->n_shards == WEIR_MAX_FILES)
        return weir__json_fail(j, WEIR_EFORMAT, "found more than %d shards", WEIR_MAX_FILES);
    *number = (uint32_t)x->n_shards++;
    x->shards[*number].name = name;
    weir__index_add(&x->shard_index, *number);
    return true;
}

static bool add_place(weir__shard_index *x, weir__json *j, weir__json_text key, weir__json_text value) {
    uint32_t file = 0;
    if (x->n_places == WEIR_SAFETENSORS_MAX_TENSORS)
        return weir__json_fail(j, WEIR_EFORMAT, "found more than %d tensors", WEIR_SAFETENSORS_MAX_TENSORS);
    if (weir__grow(x->system, &x->places, &x->places_room, x->n_places + 1, sizeof *x->places))
        return weir__json_fail(j, WEIR_ENOMEM, "no memory for %zu tensors", x->n_places + 1);
    weir__string tensor = settle(x, key);
    if (!shard_number(x, j, settle(x, value), &file))
        return false;
    x->places[x->n_places++] = (place){.tensor = tensor, .file = file};
    return true;
}

static bool read_map(weir__shard_index *x, weir__json *j) {
    weir__json_text key, value;
    for (weir__json_object(j); weir__json_next_key(j, &key);)
        if (!weir__json_string(j, &value) || !add_place(x, j, key, value))
            return false;
    return !j->code;
}

static int read_text(weir__shard_index *x, weir_error **error) {
    weir__json j;
    weir__json_text key;
    bool map = false;
    weir__json_init(&j, x->file.path, x->file.data, x->file.size, error);
    for (weir__json_object(&j); weir__json_next_key(&j, &key);) {
        if (!weir__json_equal(key, "weight_map"))
            continue;
        if (map)
            weir__json_fail(&j, WEIR_EFORMAT, "\"weight_map\": found twice");
        map = read_map(x, &j);
    }
    int code = weir__json_finish(&j);
    if (!code && x->n_places == 0)
        code = weir_fail(error, WEIR_EFORMAT, "%s: key \"weight_map\": %s, but needed", x->file.path, map ? "empty" : "not found");
    return code;
}

/* ---- order ---- */

static int by_name(const void *a, const void *b) {
    const weir__string *x = &((const shard *)a)->name, *y = &((const shard *)b)->name;
    int order = memcmp(x->data, y->data, x->size < y->size ? x->size : y->size);
    return order ? order : x->size < y->size ? -1 : x->size > y->size;
}

/* Puts the shards in order of their names, and ends these with zeros: the text is not read again. */
static int sort_shards(weir__shard_index *x, weir_error **error) {
    shard *before = weir__alloc(x->system, x->n_shards * sizeof *before);
    uint32_t *now = weir__alloc(x->system, x->n_shards * sizeof *now);
    int code = before && now ? WEIR_OK : weir_fail(error, WEIR_ENOMEM, "%s", x->file.path);
    if (!code) {
        memcpy(before, x->shards, x->n_shards * sizeof *before);
        qsort(x->shards, x->n_shards, sizeof *x->shards, by_name);
        memset(x->shard_index.slots, 0, (x->shard_index.mask + 1) * sizeof *x->shard_index.slots);
        for (size_t i = 0; i < x->n_shards; i++)
            weir__index_add(&x->shard_index, (uint32_t)i);
        for (size_t i = 0; i < x->n_shards; i++)
            now[i] = (uint32_t)weir__index_find(&x->shard_index, before[i].name.data, before[i].name.size);
        for (size_t i = 0; i < x->n_places; i++)
            x->places[i].file = now[x->places[i].file];
        for (size_t i = 0; i < x->n_shards; i++)
            x->file.data[x->shards[i].name.data + x->shards[i].name.size - x->file.data] = 0;
    }
    weir__free(x->system, before);
    weir__free(x->system, now);
    return code;
}

static int index_tensors(weir__shard_index *x, weir_error **error) {
    char shown[SHOWN];
    if (weir__index_init(x->system, &x->tensor_index, x->places, sizeof *x->places, x->n_places))
        return weir_fail(error, WEIR_ENOMEM, "%s: %zu tensors", x->file.path, x->n_places);
    for (size_t i = 0; i < x->n_places; i++)
        if (!weir__index_add(&x->tensor_index, (uint32_t)i))
            return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%s\": found twice", x->file.path, show(shown, x->places[i].tensor));
    return WEIR_OK;
}

/* ---- opening ---- */

/* Takes the file. */
static int make(weir__text_file *f, weir__shard_index **out, weir_error **error) {
    weir_system *s = f->system;
    weir__shard_index *x = weir__alloc(s, sizeof *x);
    if (!x) {
        int code = weir_fail(error, WEIR_ENOMEM, "%s", f->path);
        weir__text_file_fini(f);
        return code;
    }
    *x = (weir__shard_index){.system = s, .file = *f, .shards = weir__alloc(s, WEIR_MAX_FILES * sizeof *x->shards)};
    int code = WEIR_OK;
    if (!x->shards || weir__index_init(s, &x->shard_index, x->shards, sizeof *x->shards, WEIR_MAX_FILES))
        code = weir_fail(error, WEIR_ENOMEM, "%s: an index of %zu bytes", f->path, f->size);
    if (!code)
        code = read_text(x, error);
    if (!code)
        code = sort_shards(x, error);
    if (!code)
        code = index_tensors(x, error);
    if (code)
        weir__shard_index_free(x);
    else
        *out = x;
    return code;
}

int weir__shard_index_open(weir_system *s, const char *path, weir__shard_index **out, weir_error **error) {
    weir__text_file f;
    int code = weir__text_file_read(s, NULL, path, WEIR_SAFETENSORS_MAX_HEADER, &f, error);
    return code ? code : make(&f, out, error);
}

int weir__shard_index_parse(weir_system *s, const char *name, const char *text, size_t size, weir__shard_index **out, weir_error **error) {
    weir__text_file f;
    int code = weir__text_file_copy(s, name, text, size, WEIR_SAFETENSORS_MAX_HEADER, &f, error);
    return code ? code : make(&f, out, error);
}

void weir__shard_index_free(weir__shard_index *x) {
    if (!x)
        return;
    weir__index_fini(x->system, &x->tensor_index);
    weir__index_fini(x->system, &x->shard_index);
    weir__free(x->system, x->places);
    weir__free(x->system, x->shards);
    weir__text_file_fini(&x->file);
    weir__free(x->system, x);
}

uint32_t weir__shard_index_files(const weir__shard_index *x) {
    return (uint32_t)x->n_shards;
}
const char *weir__shard_index_file(const weir__shard_index *x, uint32_t i) {
    return x->shards[i].name.data;
}

/* ---- against the shards ---- */

static int misplaced(const weir__shard_index *x, const weir__safetensors *st, const weir__tensor *t, int64_t at, weir_error **error) {
    char shown[SHOWN];
    if (at < 0)
        return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%s\": found, but %s does not name it", st->file.path, show(shown, t->name),
                         x->file.path);
    return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%s\": found, but %s says that it is in %s", st->file.path, show(shown, t->name),
                     x->file.path, x->shards[x->places[at].file].name.data);
}

int weir__shard_index_check(weir__shard_index *x, weir__safetensors *const *shards, weir_error **error) {
    char shown[SHOWN];
    for (uint32_t i = 0; i < x->n_shards; i++) {
        for (size_t k = 0; k < shards[i]->n_tensors; k++) {
            const weir__tensor *t = &shards[i]->tensors[k];
            int64_t at = weir__index_find(&x->tensor_index, t->name.data, t->name.size);
            if (at < 0 || x->places[at].file != i)
                return misplaced(x, shards[i], t, at, error);
            x->places[at].seen = true;
        }
    }
    for (size_t i = 0; i < x->n_places; i++)
        if (!x->places[i].seen)
            return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%s\": not found, but %s says that it is there",
                             shards[x->places[i].file]->file.path, show(shown, x->places[i].tensor), x->file.path);
    return WEIR_OK;
}
