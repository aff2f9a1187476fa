/* text_file.c: reading of text_file.h. */
#include "text_file.h"

#include "file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

char *weir__path_join(weir_system *s, const char *folder, const char *name) {
    if (!folder)
        return weir__strdup(s, name);
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = weir__alloc(s, size);
    if (path)
        snprintf(path, size, "%s/%s", folder, name);
    return path;
}

bool weir__path_is_file(weir_system *s, const char *folder, const char *name) {
    struct stat st;
    char *path = weir__path_join(s, folder, name);
    bool there = path && stat(path, &st) == 0 && S_ISREG(st.st_mode);
    weir__free(s, path);
    return there;
}

static int make_room(weir__text_file *f, uint64_t size, size_t most, weir_error **error) {
    if (size > most)
        return weir_fail(error, WEIR_ETOOBIG, "%s: found %llu bytes, wanted at most %zu", f->path, (unsigned long long)size, most);
    f->size = (size_t)size;
    f->data = weir__alloc(f->system, f->size + 1);
    return f->data ? WEIR_OK : weir_fail(error, WEIR_ENOMEM, "%s: %zu bytes", f->path, f->size);
}

int weir__text_file_read(weir_system *s, const char *folder, const char *name, size_t most, weir__text_file *f, weir_error **error) {
    weir__file file;
    *f = (weir__text_file){.system = s, .path = weir__path_join(s, folder, name)};
    if (!f->path)
        return weir_fail(error, WEIR_ENOMEM, "path of %s", name);
    int code = weir__file_open(s, f->path, &file, error);
    if (!code) {
        code = make_room(f, file.size, most, error);
        if (!code)
            code = weir__file_read(&file, 0, f->data, f->size, error);
        weir__file_close(&file);
    }
    if (code)
        weir__text_file_fini(f);
    return code;
}

int weir__text_file_copy(weir_system *s, const char *name, const void *bytes, size_t size, size_t most, weir__text_file *f,
                         weir_error **error) {
    *f = (weir__text_file){.system = s, .path = weir__strdup(s, name)};
    int code = f->path ? make_room(f, size, most, error) : weir_fail(error, WEIR_ENOMEM, "%s", name);
    if (code)
        weir__text_file_fini(f);
    else if (size > 0)
        memcpy(f->data, bytes, size);
    return code;
}

int weir__text_file_try(weir_system *s, const char *folder, const char *name, size_t most, weir__text_file *f, weir_error **error) {
    struct stat st;
    char *path = weir__path_join(s, folder, name);
    *f = (weir__text_file){0};
    if (!path)
        return weir_fail(error, WEIR_ENOMEM, "path of %s", name);
    bool there = stat(path, &st) == 0;
    weir__free(s, path);
    return there ? weir__text_file_read(s, folder, name, most, f, error) : WEIR_OK;
}

void weir__text_file_fini(weir__text_file *f) {
    if (!f->system)
        return;
    weir__free(f->system, f->path);
    weir__free(f->system, f->data);
    *f = (weir__text_file){0};
}
