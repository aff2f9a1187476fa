/* locate.c: from a model argument to a path (model.h). What a path leads to is the source's business. */
#include "model.h"
#include "split.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder of what `weir fetch` keeps, with a slash. */
static bool kept_folder(char *path, size_t size) {
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    int n;
    if (data && *data)
        n = snprintf(path, size, "%s/weir/models/", data);
    else
        n = snprintf(path, size, "%s/.local/share/weir/models/", home ? home : "");
    return n > 0 && (size_t)n < size;
}

/* The part of a split file of that name that the folder has; any leads to all. */
static bool find_part(const char *name, char *path, size_t size) {
    size_t folder = strlen(path), n = strlen(name);
    weir__split split;
    DIR *dir = opendir(path);
    bool found = false;
    for (struct dirent *d; dir && !found && (d = readdir(dir));)
        found = weir__split_parse(d->d_name, ".gguf", 5, &split) && split.prefix == n && memcmp(d->d_name, name, n) == 0 &&
                (size_t)snprintf(path + folder, size - folder, "%s", d->d_name) < size - folder;
    if (dir)
        closedir(dir);
    return found;
}

/* A kept model is NAME.gguf, a folder NAME, or parts NAME-00001-of-00003.gguf. */
static int find_kept(const char *name, char *path, size_t size, weir_error **error) {
    if (!kept_folder(path, size) || strlen(path) + strlen(name) + sizeof ".gguf" > size)
        return weir_fail(error, WEIR_EINVAL, "%s: path too long", name);
    size_t folder = strlen(path);
    static const char *const suffixes[] = {".gguf", ""};
    for (size_t i = 0; i < 2; i++) {
        snprintf(path + folder, size - folder, "%s%s", name, suffixes[i]);
        if (access(path, F_OK) == 0)
            return WEIR_OK;
    }
    path[folder] = 0;
    if (find_part(name, path, size))
        return WEIR_OK;
    path[folder] = 0;
    return weir_fail(error, WEIR_ENOENT,
                     "%s: no such file, and no model of that name is kept (looked for %s%s.gguf; `weir fetch %s` gets it if it is known)",
                     name, path, name, name);
}

int weir__model_locate(const char *model, char *path, size_t size, weir_error **error) {
    struct stat st;
    if (stat(model, &st) == 0) {
        if (strlen(model) >= size)
            return weir_fail(error, WEIR_EINVAL, "%s: path of more than %zu bytes", model, size - 1);
        strcpy(path, model);
        return WEIR_OK;
    }
    if (!*model || strchr(model, '/'))
        return weir_fail(error, WEIR_ENOENT, "%s: no such file", model);
    return find_kept(model, path, size, error);
}
