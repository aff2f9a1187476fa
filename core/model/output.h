/* output.h: files that appear whole or not at all: written beside their place under another name, renamed when all of it is there. Knows no format. */
#ifndef WEIR_MODEL_OUTPUT_H
#define WEIR_MODEL_OUTPUT_H

#include "../rt/rt.h"

typedef struct weir__output {
    weir_system *system;
    char *path, *temporary; /* owned; "PATH.PID-N.part" */
    int fd;                 /* -1: closed */
} weir__output;

/* ENOMEM, EIO. On failure nothing is open and nothing is left on the disk. */
int weir__output_open(weir_system *s, const char *path, weir__output *o, weir_error **error);
/* EIO: the disk is full, ... */
int weir__output_write(weir__output *o, const void *bytes, size_t n, weir_error **error);
/* Bytes that follow go to this place. EIO. */
int weir__output_seek(weir__output *o, uint64_t at, weir_error **error);
/* No more bytes come. EIO. */
int weir__output_close(weir__output *o, weir_error **error);
/* Closes it if it is open and gives it its name, in place of what is there. EIO: it stays under the temporary name. */
int weir__output_publish(weir__output *o, weir_error **error);
/* Frees; what was not published is removed. A zeroed struct does nothing. */
void weir__output_fini(weir__output *o);

#endif
