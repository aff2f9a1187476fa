/* safetensors_writer.c: the header is gathered in memory, data goes straight to the file that will take the target's name (safetensors_writer.h). */
#include "safetensors_writer.h"

#include "../text/json_write.h"
#include "output.h"
#include "safetensors.h"

struct weir__safetensors_writer {
    weir_system *system;
    weir__output out;
    weir__json_writer header;
    uint64_t announced, written; /* bytes of data */
    bool begun;                  /* the header is in the file */
    int code;
    weir_error *error;
};

int weir__safetensors_create(weir_system *s, const char *path, weir__safetensors_writer **out, weir_error **error) {
    weir__safetensors_writer *w = weir__alloc(s, sizeof *w);
    if (!w)
        return weir_fail(error, WEIR_ENOMEM, "%s: no memory", path);
    w->system = s;
    int code = weir__output_open(s, path, &w->out, error);
    if (code) {
        weir__free(s, w);
        return code;
    }
    weir__json_write_init(&w->header, s, 0);
    weir__json_write_open(&w->header, '{');
    weir__json_write_key(&w->header, "__metadata__", 12);
    weir__json_write_word(&w->header, "{\"format\":\"pt\"}");
    *out = w;
    return WEIR_OK;
}

void weir__safetensors_put_tensor(weir__safetensors_writer *w, const char *name, int type, unsigned n_dims, const int64_t *dims) {
    unsigned bits = 0;
    static const char *const names[WEIR_TYPES] = {[WEIR_F32] = "F32", [WEIR_F16] = "F16", [WEIR_BF16] = "BF16"};
    const char *dtype = type >= 0 && type < WEIR_TYPES ? names[type] : NULL;
    weir__safetensors_type(type, &bits);
    weir__json_writer *h = &w->header;
    uint64_t bytes = bits / 8;
    weir__json_write_key(h, name, __builtin_strlen(name));
    weir__json_write_open(h, '{');
    weir__json_write_key(h, "dtype", 5);
    weir__json_write_string(h, dtype ? dtype : "", dtype ? __builtin_strlen(dtype) : 0);
    weir__json_write_key(h, "shape", 5);
    weir__json_write_open(h, '[');
    for (unsigned i = n_dims; i-- > 0;) {
        weir__json_write_int(h, dims[i]);
        bytes *= (uint64_t)dims[i];
    }
    weir__json_write_close(h, ']');
    weir__json_write_key(h, "data_offsets", 12);
    weir__json_write_open(h, '[');
    weir__json_write_int(h, (int64_t)w->announced);
    w->announced += bytes;
    weir__json_write_int(h, (int64_t)w->announced);
    weir__json_write_close(h, ']');
    weir__json_write_close(h, '}');
}

/* The header's length and text, with spaces to a multiple of 8. */
static int begin(weir__safetensors_writer *w) {
    uint8_t length[8];
    w->begun = true;
    weir__json_write_close(&w->header, '}');
    if (w->header.code)
        return weir_fail(&w->error, w->header.code, "%s: header", w->out.path);
    uint64_t size = (w->header.size + 7) / 8 * 8;
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(size >> 8 * i);
    int code = weir__output_write(&w->out, length, 8, &w->error);
    if (!code)
        code = weir__output_write(&w->out, w->header.text, w->header.size, &w->error);
    return code ? code : weir__output_write(&w->out, "       ", size - w->header.size, &w->error);
}

void weir__safetensors_put_data(weir__safetensors_writer *w, const void *data, size_t size) {
    if (!w->code && !w->begun)
        w->code = begin(w);
    if (!w->code)
        w->code = weir__output_write(&w->out, data, size, &w->error);
    w->written += size;
}

static void release(weir__safetensors_writer *w) {
    weir__output_fini(&w->out);
    weir__json_write_fini(&w->header);
    weir_error_free(w->error);
    weir__free(w->system, w);
}

int weir__safetensors_finish(weir__safetensors_writer *w, weir_error **error) {
    if (!w->code && !w->begun)
        w->code = begin(w);
    if (!w->code && w->written != w->announced)
        w->code = weir_fail(&w->error, WEIR_EINVAL, "%s: %llu bytes of data were written, %llu announced", w->out.path,
                            (unsigned long long)w->written, (unsigned long long)w->announced);
    if (!w->code)
        w->code = weir__output_close(&w->out, &w->error);
    if (!w->code)
        w->code = weir__output_publish(&w->out, &w->error);
    int code = w->code;
    if (code && error) {
        *error = w->error;
        w->error = NULL;
    }
    release(w);
    return code;
}

void weir__safetensors_abort(weir__safetensors_writer *w) {
    if (w)
        release(w);
}
