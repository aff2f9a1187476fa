/* gguf_header.c: brings the bytes of a GGUF header into memory as the parser asks for them. Knows no meaning of theirs. */
#include "gguf_internal.h"

static int ended(const weir__header *h, uint64_t n, const char *what, weir_error **error) {
    return weir_fail(error, WEIR_EFORMAT, "%s: %s: found the end of the file at byte %llu, wanted %llu bytes at byte %zu", h->file->path,
                     what, (unsigned long long)h->file->size, (unsigned long long)n, h->at);
}

static int grow(weir__header *h, size_t wanted, weir_error **error) {
    if (wanted <= h->room)
        return WEIR_OK;
    size_t room = h->room * 2 > wanted ? h->room * 2 : wanted;
    if (room > h->file->size)
        room = (size_t)h->file->size;
    uint8_t *data = weir__realloc(h->file->system, h->data, room);
    if (!data)
        return weir_fail(error, WEIR_ENOMEM, "%s: a header of %zu bytes", h->file->path, room);
    h->data = data;
    h->room = room;
    return WEIR_OK;
}

int weir__header_need(weir__header *h, uint64_t n, const char *what, weir_error **error) {
    if (n <= h->size - h->at)
        return WEIR_OK;
    if (n > h->file->size - h->at || h->file->fd < 0)
        return ended(h, n, what, error);
    if (n > WEIR_GGUF_MAX_HEADER - h->at)
        return weir_fail(error, WEIR_EFORMAT, "%s: %s: found a header of more than %u bytes", h->file->path, what, WEIR_GGUF_MAX_HEADER);
    uint64_t wanted = (h->at + n + WEIR_GGUF_CHUNK - 1) / WEIR_GGUF_CHUNK * WEIR_GGUF_CHUNK;
    if (wanted > h->file->size)
        wanted = h->file->size;
    int code = grow(h, (size_t)wanted, error);
    if (!code)
        code = weir__file_read(h->file, h->size, h->data + h->size, (size_t)wanted - h->size, error);
    if (!code)
        h->size = (size_t)wanted;
    return code;
}

int weir__header_u32(weir__header *h, const char *what, uint32_t *v, weir_error **error) {
    int code = weir__header_need(h, 4, what, error);
    if (code)
        return code;
    *v = weir__le32(h->data + h->at);
    h->at += 4;
    return WEIR_OK;
}

int weir__header_u64(weir__header *h, const char *what, uint64_t *v, weir_error **error) {
    int code = weir__header_need(h, 8, what, error);
    if (code)
        return code;
    *v = weir__le64(h->data + h->at);
    h->at += 8;
    return WEIR_OK;
}

int weir__header_string(weir__header *h, const char *what, uint64_t most, weir__string *s, weir_error **error) {
    uint64_t n;
    int code = weir__header_u64(h, what, &n, error);
    if (code)
        return code;
    if (n > most)
        return weir_fail(error, WEIR_EFORMAT, "%s: %s: found a length of %llu bytes, wanted at most %llu", h->file->path, what,
                         (unsigned long long)n, (unsigned long long)most);
    code = weir__header_need(h, n, what, error);
    if (code)
        return code;
    *s = (weir__string){(const char *)h->data + h->at, (size_t)n};
    h->at += (size_t)n;
    return WEIR_OK;
}
