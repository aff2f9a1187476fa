/* file.h: regular files that are opened once and read at places, by whatever thread. Knows no format. */
#ifndef WEIR_MODEL_FILE_H
#define WEIR_MODEL_FILE_H

#include "../rt/rt.h"

typedef struct weir__file {
    weir_system *system;
    const char *path; /* borrowed, for errors */
    int fd;
    uint64_t size; /* when it was opened, bytes */
} weir__file;

/* ENOENT, EIO; EFORMAT: not a regular file. `path` must outlive the file. On failure nothing is open. */
int weir__file_open(weir_system *s, const char *path, weir__file *f, weir_error **error);
/* All of `size` bytes at `offset`. EIO; EFORMAT: the file ends before. */
int weir__file_read(const weir__file *f, uint64_t offset, void *to, size_t size, weir_error **error);
void weir__file_close(weir__file *f);

#endif
