/* text_file.h: small files that are read as a whole, and the folder they lie in. Knows no format. */
#ifndef WEIR_MODEL_TEXT_FILE_H
#define WEIR_MODEL_TEXT_FILE_H

#include "../text/text.h"

typedef struct weir__text_file {
    weir_system *system;
    char *path; /* owned */
    char *data; /* owned, may be written; a zero stands behind it */
    size_t size;
} weir__text_file;

/* Reads folder/name (folder NULL: name is a path). ENOENT; EIO; EFORMAT: no regular file; ETOOBIG: more than `most` bytes. On failure there is nothing to give
 * back. */
int weir__text_file_read(weir_system *s, const char *folder, const char *name, size_t most, weir__text_file *f, weir_error **error);
/* The same, but a file that is not there leaves f->data NULL and is no failure. */
int weir__text_file_try(weir_system *s, const char *folder, const char *name, size_t most, weir__text_file *f, weir_error **error);
/* The same from memory, as if a file of this name had these bytes. Copies them. */
int weir__text_file_copy(weir_system *s, const char *name, const void *bytes, size_t size, size_t most, weir__text_file *f,
                         weir_error **error);
void weir__text_file_fini(weir__text_file *f); /* a zeroed one: nothing */

/* "folder/name", or name if folder is NULL; weir__free. NULL without memory. */
char *weir__path_join(weir_system *s, const char *folder, const char *name);
bool weir__path_is_file(weir_system *s, const char *folder, const char *name);

#endif
