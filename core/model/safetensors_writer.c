/* safetensors_writer.c: writes checkpoints of safetensors (safetensors_writer.h). All tensors are announced before the first byte of data, so headers and shards
 * are known then. In a file wider elements stand first, so that every tensor is aligned for readers that map it. Errors stick: the first one comes out of finish. */
#include "safetensors_writer.h"

#include "../text/index.h"
#include "../text/json_write.h"
#include "output.h"
#include "safetensors.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LENGTH = 8, WIDTHS = 4 }; /* bytes of a header's length; of elements: 8, 4, 2, 1 */

typedef struct tensor {
    char *name; /* owned */
    const weir__safetensors_type *type;
    unsigned n_dims;
    int64_t dims[WEIR_MAX_DIMS];
    uint64_t size, offset; /* bytes; in its file's buffer */
    uint32_t shard;
} tensor;

struct weir__safetensors_writer {
    weir_system *system;
    char *folder;
    bool made_folder;
    char *inner; /* owned; a folder in it for files beside the weights, NULL: none yet */
    bool made_inner;
    uint64_t shard_bytes;
    tensor *tensors;
    size_t n_tensors, tensors_room;
    weir__output *outputs; /* files beside the weights and, once data has begun, shards behind them, the last one open */
    size_t n_outputs, outputs_room;
    uint32_t n_shards;
    uint64_t start;   /* of the buffer in the open shard */
    bool begun;       /* data has begun */
    size_t tensor;    /* that data goes to */
    uint64_t written; /* of its data */
    int code;         /* the first error, WEIR_OK: none */
    weir_error *error;
};

void weir__safetensors_fail(weir__safetensors_writer *w, int code, const char *what) {
    if (!w->code)
        w->code = weir_fail(&w->error, code, "%s: %s", w->folder, what);
}

/* ---- outputs ---- */

/* A new file of the folder, the last of the outputs. NULL: an error has stuck. */
static weir__output *open_output(weir__safetensors_writer *w, const char *name) {
    if (!w->code && weir__grow(w->system, &w->outputs, &w->outputs_room, w->n_outputs + 1, sizeof *w->outputs))
        weir__safetensors_fail(w, WEIR_ENOMEM, name);
    size_t room = strlen(w->folder) + strlen(name) + 2;
    char *path = w->code ? NULL : weir__alloc(w->system, room);
    if (!path) {
        weir__safetensors_fail(w, WEIR_ENOMEM, name);
        return NULL;
    }
    snprintf(path, room, "%s/%s", w->folder, name);
    w->code = weir__output_open(w->system, path, &w->outputs[w->n_outputs], &w->error);
    weir__free(w->system, path);
    return w->code ? NULL : &w->outputs[w->n_outputs++];
}

static void write_last(weir__safetensors_writer *w, const void *bytes, size_t n) {
    if (!w->code)
        w->code = weir__output_write(&w->outputs[w->n_outputs - 1], bytes, n, &w->error);
}

static void close_last(weir__safetensors_writer *w) {
    if (!w->code && w->n_outputs > 0)
        w->code = weir__output_close(&w->outputs[w->n_outputs - 1], &w->error);
}

/* ---- announcing ---- */

void weir__safetensors_put_tensor(weir__safetensors_writer *w, const char *name, int type, unsigned n_dims, const int64_t *dims) {
    const weir__safetensors_type *t = weir__safetensors_type_get(type);
    int64_t bits = t ? (int64_t)t->bits : 0;
    bool bad = !t || n_dims > WEIR_MAX_DIMS || w->begun || strcmp(name, "__metadata__") == 0 ||
               weir__utf8_valid(name, strlen(name)) < strlen(name) || w->n_tensors == WEIR_SAFETENSORS_MAX_TENSORS;
    for (unsigned i = 0; !bad && i < n_dims; i++)
        bad = dims[i] < 0 || __builtin_mul_overflow(bits, dims[i], &bits);
    if (bad || bits % 8 != 0) {
        weir__safetensors_fail(w, WEIR_EINVAL, "a tensor of a name, type or shape that safetensors has not");
        return;
    }
    if (w->code)
        return;
    char *copy = weir__strdup(w->system, name);
    if (!copy || weir__grow(w->system, &w->tensors, &w->tensors_room, w->n_tensors + 1, sizeof *w->tensors)) {
        weir__free(w->system, copy);
        weir__safetensors_fail(w, WEIR_ENOMEM, "tensors");
        return;
    }
    tensor *to = &w->tensors[w->n_tensors++];
    *to = (tensor){.name = copy, .type = t, .n_dims = n_dims, .size = (uint64_t)bits / 8};
    for (unsigned i = 0; i < n_dims; i++)
        to->dims[i] = dims[i];
}

/* ---- shards ---- */

/* In which shard each tensor is: as many as fit, in the order of announcement. */
static void cut(weir__safetensors_writer *w) {
    uint64_t used = 0;
    w->n_shards = 1;
    for (size_t i = 0; i < w->n_tensors; i++) {
        if (w->shard_bytes > 0 && used > 0 && (w->tensors[i].size > w->shard_bytes || used > w->shard_bytes - w->tensors[i].size)) {
            w->n_shards++;
            used = 0;
        }
        used += w->tensors[i].size;
        w->tensors[i].shard = w->n_shards - 1;
    }
}

/* 0 for the widest elements. */
static unsigned width_class(const weir__safetensors_type *t) {
    return t->bits >= 64 ? 0 : t->bits >= 32 ? 1 : t->bits >= 16 ? 2 : 3;
}

/* Places of tensors [first, end), one shard. */
static void place(weir__safetensors_writer *w, size_t first, size_t end) {
    uint64_t at = 0;
    for (unsigned width = 0; width < WIDTHS; width++) {
        for (size_t i = first; i < end; i++) {
            if (width_class(w->tensors[i].type) != width)
                continue;
            w->tensors[i].offset = at;
            at += w->tensors[i].size;
        }
    }
}

static void put_entry(weir__json_writer *j, const tensor *t) {
    weir__json_write_key(j, t->name, strlen(t->name));
    weir__json_write_open(j, '{');
    weir__json_write_key(j, "dtype", 5);
    weir__json_write_string(j, t->type->dtype, strlen(t->type->dtype));
    weir__json_write_key(j, "shape", 5);
    weir__json_write_open(j, '[');
    for (unsigned i = t->n_dims; i-- > 0;)
        weir__json_write_int(j, t->dims[i]);
    weir__json_write_close(j, ']');
    weir__json_write_key(j, "data_offsets", 12);
    weir__json_write_open(j, '[');
    weir__json_write_int(j, (int64_t)t->offset);
    weir__json_write_int(j, (int64_t)(t->offset + t->size));
    weir__json_write_close(j, ']');
    weir__json_write_close(j, '}');
}

/* The header of the file of tensors [first, end), and its length before it. */
static void write_header(weir__safetensors_writer *w, size_t first, size_t end) {
    weir__json_writer j;
    uint8_t length[LENGTH];
    weir__json_write_init(&j, w->system, 0);
    weir__json_write_open(&j, '{');
    weir__json_write_key(&j, "__metadata__", 12);
    weir__json_write_word(&j, "{\"format\":\"pt\"}");
    for (size_t i = first; i < end; i++)
        put_entry(&j, &w->tensors[i]);
    weir__json_write_close(&j, '}');
    if (j.code)
        weir__safetensors_fail(w, j.code, "header");
    uint64_t size = (j.size + LENGTH - 1) / LENGTH * LENGTH;
    for (int i = 0; i < LENGTH; i++)
        length[i] = (uint8_t)(size >> 8 * i);
    write_last(w, length, LENGTH);
    write_last(w, j.text, j.size);
    write_last(w, "       ", (size_t)size - j.size);
    w->start = LENGTH + size;
    weir__json_write_fini(&j);
}

static void name_shard(const weir__safetensors_writer *w, uint32_t shard, char *to, size_t room) {
    if (w->n_shards == 1)
        snprintf(to, room, "model.safetensors");
    else
        snprintf(to, room, "model-%05u-of-%05u.safetensors", shard + 1, w->n_shards);
}

/* Opens the shard that begins with tensor `first`, after the one before it was closed. */
static void begin_shard(weir__safetensors_writer *w, size_t first) {
    char name[64];
    uint32_t shard = first < w->n_tensors ? w->tensors[first].shard : 0;
    size_t end = first;
    while (end < w->n_tensors && w->tensors[end].shard == shard)
        end++;
    place(w, first, end);
    name_shard(w, shard, name, sizeof name);
    close_last(w);
    if (open_output(w, name))
        write_header(w, first, end);
}

/* ---- data ---- */

static void begin_data(weir__safetensors_writer *w) {
    if (w->begun || w->code)
        return;
    w->begun = true;
    cut(w);
    begin_shard(w, 0);
}

static void next_tensor(weir__safetensors_writer *w) {
    w->written = 0;
    w->tensor++;
    if (w->tensor < w->n_tensors && w->tensors[w->tensor].shard != w->tensors[w->tensor - 1].shard)
        begin_shard(w, w->tensor);
}

/* Goes to the place of the current tensor; passes over empty ones. */
static void begin_tensor(weir__safetensors_writer *w) {
    while (!w->code && w->tensor < w->n_tensors && w->tensors[w->tensor].size == 0)
        next_tensor(w);
    if (!w->code && w->tensor < w->n_tensors && w->written == 0)
        w->code = weir__output_seek(&w->outputs[w->n_outputs - 1], w->start + w->tensors[w->tensor].offset, &w->error);
}

/* The error that has stuck, once. */
static int surrender(weir__safetensors_writer *w, weir_error **error) {
    if (w->error && error) {
        *error = w->error;
        w->error = NULL;
    }
    return w->code;
}

int weir__safetensors_put_data(weir__safetensors_writer *w, const void *data, size_t size, weir_error **error) {
    begin_data(w);
    for (const char *p = data; size > 0 && !w->code;) {
        begin_tensor(w);
        if (w->tensor == w->n_tensors) {
            weir__safetensors_fail(w, WEIR_EINVAL, "more data than the tensors have");
            break;
        }
        uint64_t left = w->tensors[w->tensor].size - w->written;
        size_t n = size < left ? size : (size_t)left;
        write_last(w, p, n);
        p += n;
        size -= n;
        w->written += n;
        if (w->written == w->tensors[w->tensor].size)
            next_tensor(w);
    }
    return surrender(w, error);
}

/* ---- files beside the weights ---- */

/* The folder of "folder/name". */
static void make_inner(weir__safetensors_writer *w, const char *name) {
    const char *slash = strrchr(name, '/');
    size_t room = strlen(w->folder) + strlen(name) + 2;
    if (!slash || w->inner || w->code)
        return;
    w->inner = weir__alloc(w->system, room);
    if (!w->inner) {
        weir__safetensors_fail(w, WEIR_ENOMEM, name);
        return;
    }
    snprintf(w->inner, room, "%s/%.*s", w->folder, (int)(slash - name), name);
    w->made_inner = mkdir(w->inner, 0777) == 0;
}

void weir__safetensors_put_file(weir__safetensors_writer *w, const char *name, const void *bytes, size_t size) {
    if (w->begun)
        begin_tensor(w);
    if (w->begun && w->tensor < w->n_tensors)
        weir__safetensors_fail(w, WEIR_EINVAL, "a file amid tensor data");
    close_last(w);
    make_inner(w, name);
    if (open_output(w, name)) {
        write_last(w, bytes, size);
        close_last(w);
    }
}

void weir__safetensors_put_json(weir__safetensors_writer *w, const char *name, weir__json_writer *json) {
    if (json->code)
        weir__safetensors_fail(w, json->code, name);
    else
        weir__safetensors_put_file(w, name, json->text, json->size);
    weir__json_write_fini(json);
}

static void put_index(weir__safetensors_writer *w) {
    weir__json_writer j;
    uint64_t total = 0;
    for (size_t i = 0; i < w->n_tensors; i++)
        total += w->tensors[i].size;
    weir__json_write_init(&j, w->system, 2);
    weir__json_write_open(&j, '{');
    weir__json_write_key(&j, "metadata", 8);
    weir__json_write_open(&j, '{');
    weir__json_write_key(&j, "total_size", 10);
    weir__json_write_int(&j, (int64_t)total);
    weir__json_write_close(&j, '}');
    weir__json_write_key(&j, "weight_map", 10);
    weir__json_write_open(&j, '{');
    for (size_t i = 0; i < w->n_tensors; i++) {
        char name[64];
        name_shard(w, w->tensors[i].shard, name, sizeof name);
        weir__json_write_key(&j, w->tensors[i].name, strlen(w->tensors[i].name));
        weir__json_write_string(&j, name, strlen(name));
    }
    weir__json_write_close(&j, '}');
    weir__json_write_close(&j, '}');
    weir__safetensors_put_json(w, "model.safetensors.index.json", &j);
}

/* ---- ends ---- */

/* Weights that are there would be read in place of these, or beside them. */
static int refuse_checkpoint(const char *folder, weir_error **error) {
    static const char *const names[] = {"model.safetensors", "model.safetensors.index.json"};
    for (size_t i = 0; i < 2; i++) {
        char path[4096];
        int n = snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0)
            return weir_fail(error, WEIR_EINVAL, "%s: found a checkpoint there, wanted a folder without one", path);
    }
    return WEIR_OK;
}

int weir__safetensors_create(weir_system *s, const char *folder, uint64_t shard_bytes, weir__safetensors_writer **out, weir_error **error) {
    int code = refuse_checkpoint(folder, error);
    if (code)
        return code;
    weir__safetensors_writer *w = weir__alloc(s, sizeof *w);
    char *copy = weir__strdup(s, folder);
    code = w && copy ? WEIR_OK : weir_fail(error, WEIR_ENOMEM, "%s", folder);
    bool made = !code && mkdir(folder, 0777) == 0;
    if (!code && !made && errno != EEXIST)
        code = weir_fail(error, WEIR_EIO, "%s: %s", folder, strerror(errno));
    if (code) {
        weir__free(s, w);
        weir__free(s, copy);
        return code;
    }
    *w = (weir__safetensors_writer){.system = s, .folder = copy, .made_folder = made, .shard_bytes = shard_bytes};
    *out = w;
    return WEIR_OK;
}

void weir__safetensors_abort(weir__safetensors_writer *w) {
    if (!w)
        return;
    for (size_t i = 0; i < w->n_outputs; i++)
        weir__output_fini(&w->outputs[i]);
    if (w->made_inner)
        rmdir(w->inner);
    if (w->made_folder)
        rmdir(w->folder); /* stays unless it is empty */
    weir__free(w->system, w->inner);
    for (size_t i = 0; i < w->n_tensors; i++)
        weir__free(w->system, w->tensors[i].name);
    weir__free(w->system, w->tensors);
    weir__free(w->system, w->outputs);
    weir__free(w->system, w->folder);
    weir_error_free(w->error);
    weir__free(w->system, w);
}

/* All outputs or none. */
static void publish(weir__safetensors_writer *w) {
    size_t done = 0;
    for (; done < w->n_outputs && !w->code; done += !w->code)
        w->code = weir__output_publish(&w->outputs[done], &w->error);
    for (size_t i = 0; i < done && w->code; i++)
        unlink(w->outputs[i].path);
}

int weir__safetensors_finish(weir__safetensors_writer *w, weir_error **error) {
    begin_data(w);
    begin_tensor(w);
    if (!w->code && w->tensor < w->n_tensors)
        weir__safetensors_fail(w, WEIR_EINVAL, "less data than the tensors have");
    close_last(w);
    if (w->n_shards > 1)
        put_index(w);
    publish(w);
    int code = surrender(w, error);
    weir__safetensors_abort(w);
    return code;
}
