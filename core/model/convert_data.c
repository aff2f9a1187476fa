/* convert_data.c: the bytes of one tensor in another type, row order or offset: read, widened to floats, reordered, written, some megabytes at a time. */
#include "convert_internal.h"

#include <string.h>

enum { PIECE = 1 << 20 }; /* values at a time; a head's rows stay together */

/* Buffers of one tensor's conversion. */
typedef struct buffers {
    uint8_t *raw;   /* rows as the source has them */
    float *values;  /* the same as floats */
    float *ordered; /* in the other order */
    uint8_t *out;
} buffers;

static void free_buffers(weir_system *s, buffers *b) {
    weir__free(s, b->raw);
    weir__free(s, b->values);
    weir__free(s, b->ordered);
    weir__free(s, b->out);
}

static size_t bytes_of(int type, int64_t values) {
    const weir_type_info *info = weir_type_any(type);
    return (size_t)(values / info->block) * info->bytes;
}

/* Within a head, row i of the halves and row 2 i of the pairs are the same: to_pairs puts source row (r % 2) * half + r / 2 at r, else r / half + r % half * 2. */
static void reorder(const weir__item *item, const float *from, float *to, int64_t rows, int64_t k, int32_t head_rows) {
    int32_t half = item->rope_dim / 2;
    for (int64_t r = 0; r < rows; r++) {
        int32_t i = (int32_t)(r % head_rows), source = i;
        if (i < item->rope_dim)
            source = item->to_pairs ? i % 2 * half + i / 2 : i / half + i % half * 2;
        memcpy(to + r * k, from + (r - i + source) * k, (size_t)k * sizeof *to);
    }
}

static bool plain(const weir__item *item) {
    return item->type == item->from->type && item->heads == 0 && item->add == 0;
}

/* Rows of the next piece: whole heads where rows are reordered. A vector's values are rows of one. */
static int64_t piece_rows(const weir__item *item, int64_t rows, int64_t k, int32_t head_rows) {
    int64_t n = PIECE / k > 0 ? PIECE / k : 1;
    if (item->heads)
        n = n / head_rows > 0 ? n / head_rows * head_rows : head_rows;
    return n < rows ? n : rows;
}

static int convert_piece(const weir__item *item, buffers *b, int64_t rows, int64_t k, int32_t head_rows, weir__sink_fn *put, void *sink,
                         weir_error **error) {
    float *values = b->values;
    weir_dequantise(item->from->type, b->raw, rows * k, values);
    if (item->heads) {
        reorder(item, values, b->ordered, rows, k, head_rows);
        values = b->ordered;
    }
    for (int64_t i = 0; i < rows * k && item->add != 0; i++)
        values[i] += item->add;
    weir_quantise(item->type, values, rows * k, b->out);
    return put(sink, b->out, bytes_of(item->type, rows * k), error);
}

static int tell(weir__conversion *c, size_t bytes, weir_error **error) {
    c->done += bytes;
    if (!c->options->progress || c->options->progress(c->options->data, c->done, c->total))
        return WEIR_OK;
    return weir_fail(error, WEIR_ECANCELLED, "%s: the conversion was given up", weir__source_path(c->source));
}

/* Bytes of any type, also of one that weir does not know, as they are. */
static int copy_bytes(weir__conversion *c, const weir__item *item, buffers *b, weir__sink_fn *put, void *sink, weir_error **error) {
    const weir__tensor *t = item->from;
    b->raw = weir__alloc(c->system, t->size < PIECE ? (size_t)t->size + 1 : PIECE);
    int code = b->raw ? WEIR_OK : weir_fail(error, WEIR_ENOMEM, "%s: no memory for \"%s\"", weir__source_path(c->source), item->name);
    for (uint64_t at = 0; at < t->size && !code;) {
        size_t n = t->size - at < PIECE ? (size_t)(t->size - at) : PIECE;
        code = weir__source_read(c->source, t, at, b->raw, n, error);
        if (!code)
            code = put(sink, b->raw, n, error);
        if (!code)
            code = tell(c, n, error);
        at += n;
    }
    return code;
}

/* Whole heads of an even number of rows each, of which rope_dim are rotated. */
static int check_heads(const weir__conversion *c, const weir__item *item, int64_t rows, weir_error **error) {
    if (item->heads == 0 || (rows % item->heads == 0 && rows / item->heads >= item->rope_dim))
        return WEIR_OK;
    return weir_fail(error, WEIR_EFORMAT, "%s: tensor \"%.*s\": found %lld rows, wanted %d heads of at least %d",
                     weir__source_path(c->source), (int)item->from->name.size, item->from->name.data, (long long)rows, item->heads,
                     item->rope_dim);
}

static int copy_values(weir__conversion *c, const weir__item *item, buffers *b, weir__sink_fn *put, void *sink, weir_error **error) {
    const weir__tensor *t = item->from;
    bool vector = t->n_dims == 1;
    int64_t k = vector ? 1 : t->dims[0], rows = (vector ? t->dims[0] : t->dims[1]) * t->dims[2] * t->dims[3];
    int code = check_heads(c, item, rows, error);
    if (code)
        return code;
    int32_t head_rows = item->heads ? (int32_t)(rows / item->heads) : 1;
    if (vector && weir_type_any(t->type)->block > 1)
        k = t->dims[0], rows = 1;
    int64_t most = piece_rows(item, rows, k, head_rows);
    b->raw = weir__alloc(c->system, bytes_of(t->type, most * k));
    b->values = weir__alloc(c->system, (size_t)(most * k) * sizeof(float));
    b->ordered = item->heads ? weir__alloc(c->system, (size_t)(most * k) * sizeof(float)) : NULL;
    b->out = weir__alloc(c->system, (size_t)(most * k) * sizeof(float));
    if (!b->raw || !b->values || !b->out || (item->heads && !b->ordered))
        return weir_fail(error, WEIR_ENOMEM, "%s: no memory for \"%s\"", weir__source_path(c->source), item->name);
    for (int64_t row = 0, n; row < rows; row += n) {
        n = rows - row < most ? rows - row : most;
        size_t bytes = bytes_of(t->type, n * k);
        code = weir__source_read(c->source, t, bytes_of(t->type, row * k), b->raw, bytes, error);
        if (!code)
            code = convert_piece(item, b, n, k, head_rows, put, sink, error);
        if (!code)
            code = tell(c, bytes, error);
        if (code)
            return code;
    }
    return WEIR_OK;
}

int weir__convert_data(weir__conversion *c, const weir__item *item, weir__sink_fn *put, void *sink, weir_error **error) {
    buffers b = {0};
    if (!item->from)
        return put(sink, item->values, bytes_of(item->type, item->dims[0]), error);
    int code = WEIR_OK;
    if (plain(item))
        code = copy_bytes(c, item, &b, put, sink, error);
    else if (item->from->size > 0)
        code = copy_values(c, item, &b, put, sink, error);
    free_buffers(c->system, &b);
    return code;
}
