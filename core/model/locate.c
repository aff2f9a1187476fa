/* locate.c: from a model argument to a path (model.h). */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool kept_path(const char *name, char *path, size_t size) {
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    int n;
    if (data && *data)
        n = snprintf(path, size, "%s/weir/models/%s.gguf", data, name);
    else
        n = snprintf(path, size, "%s/.local/share/weir/models/%s.gguf", home ? home : "", name);
    return n > 0 && (size_t)n < size;
}

int weir__model_locate(const char *model, char *path, size_t size, weir_error **error) {
    struct stat st;
    if (stat(model, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return weir_fail(error, WEIR_EUNSUPPORTED, "%s: is a folder; give a GGUF file or a name kept by `weir fetch`", model);
        if (strlen(model) >= size)
            return weir_fail(error, WEIR_EINVAL, "%s: path of more than %zu bytes", model, size - 1);
        strcpy(path, model);
        return WEIR_OK;
    }
    if (!*model || strchr(model, '/'))
        return weir_fail(error, WEIR_ENOENT, "%s: no such file", model);
    if (!kept_path(model, path, size))
        return weir_fail(error, WEIR_EINVAL, "%s: path too long", model);
    if (access(path, F_OK) != 0)
        return weir_fail(error, WEIR_ENOENT,
                         "%s: no such file, and no model of that name is kept (looked for %s; `weir fetch %s` gets it if it is known)",
                         model, path, model);
    return WEIR_OK;
}
