/* output.c: files that appear whole or not at all (output.h). */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TRIES = 100 };

/* A name beside the target that nobody else has; -1 and errno: none. */
static int open_temporary(char *to, size_t room, const char *path) {
    for (int i = 0; i < TRIES; i++) {
        snprintf(to, room, "%s.%ld-%d.part", path, (long)getpid(), i);
        int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

int weir__output_open(weir_system *s, const char *path, weir__output *o, weir_error **error) {
    size_t room = strlen(path) + 48;
    *o = (weir__output){.system = s, .fd = -1, .path = weir__strdup(s, path), .temporary = weir__alloc(s, room)};
    int code = o->path && o->temporary ? WEIR_OK : weir_fail(error, WEIR_ENOMEM, "%s", path);
    if (!code && (o->fd = open_temporary(o->temporary, room, path)) < 0)
        code = weir_fail(error, WEIR_EIO, "%s: %s", path, strerror(errno));
    if (!code)
        return WEIR_OK;
    weir__free(s, o->path);
    weir__free(s, o->temporary);
    *o = (weir__output){.fd = -1};
    return code;
}

int weir__output_write(weir__output *o, const void *bytes, size_t n, weir_error **error) {
    for (const char *p = bytes; n > 0;) {
        if (weir__inject(o->system, WEIR__INJECT_WRITE))
            return weir_fail(error, WEIR_EIO, "%s: write: injected fault", o->path);
        ssize_t did = write(o->fd, p, n);
        if (did < 0 && errno == EINTR)
            continue;
        if (did < 0)
            return weir_fail(error, WEIR_EIO, "%s: %s", o->path, strerror(errno));
        p += did;
        n -= (size_t)did;
    }
    return WEIR_OK;
}

int weir__output_seek(weir__output *o, uint64_t at, weir_error **error) {
    return lseek(o->fd, (off_t)at, SEEK_SET) >= 0 ? WEIR_OK : weir_fail(error, WEIR_EIO, "%s: %s", o->path, strerror(errno));
}

int weir__output_close(weir__output *o, weir_error **error) {
    int closed = o->fd >= 0 ? close(o->fd) : 0;
    o->fd = -1;
    return closed == 0 ? WEIR_OK : weir_fail(error, WEIR_EIO, "%s: %s", o->path, strerror(errno));
}

int weir__output_publish(weir__output *o, weir_error **error) {
    int code = weir__output_close(o, error);
    if (code)
        return code;
    if (rename(o->temporary, o->path) != 0)
        return weir_fail(error, WEIR_EIO, "%s: %s", o->path, strerror(errno));
    weir__free(o->system, o->temporary);
    o->temporary = NULL;
    return WEIR_OK;
}

void weir__output_fini(weir__output *o) {
    if (!o->system)
        return;
    if (o->fd >= 0)
        close(o->fd);
    if (o->temporary)
        unlink(o->temporary);
    weir__free(o->system, o->path);
    weir__free(o->system, o->temporary);
    *o = (weir__output){.fd = -1};
}
