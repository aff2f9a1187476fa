/* helper_folder.h: a folder of small files for one test. */
#ifndef WEIR_HELPER_FOLDER_H
#define WEIR_HELPER_FOLDER_H

#include "test.h"

#include <ftw.h>
#include <sys/stat.h>

static char folder[64];

static inline int folder_make(void **state) {
    (void)state;
    strcpy(folder, "/tmp/weir-folder-XXXXXX");
    return mkdtemp(folder) ? 0 : 1;
}

static inline int folder_remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st, (void)type, (void)at;
    return remove(path);
}

static inline int folder_remove(void **state) {
    (void)state;
    return nftw(folder, folder_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline const char *folder_path(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static inline void folder_put(const char *name, const void *bytes, size_t size) {
    FILE *f = fopen(folder_path(name), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, size, f), size);
    fclose(f);
}

static inline void folder_text(const char *name, const char *text) {
    folder_put(name, text, strlen(text));
}

#endif
