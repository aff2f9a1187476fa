/* file.c: opening and reading of file.h. pread only, so that threads share a descriptor; never mapped, so that a file that shrinks is an error. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int weir__file_open(weir_system *s, const char *path, weir__file *f, weir_error **error) {
    struct stat st;
    *f = (weir__file){.system = s, .path = path, .fd = -1};
    if (weir__inject(s, WEIR__INJECT_OPEN))
        return weir_fail(error, WEIR_EIO, "%s: open: injected fault", path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block here */
    if (fd < 0)
        return weir_fail(error, errno == ENOENT || errno == ENOTDIR ? WEIR_ENOENT : WEIR_EIO, "%s: %s", path, strerror(errno));
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        close(fd);
        return weir_fail(error, WEIR_EFORMAT, "%s: found something that is no regular file", path);
    }
    f->fd = fd;
    f->size = (uint64_t)st.st_size;
    return WEIR_OK;
}

int weir__file_read(const weir__file *f, uint64_t offset, void *to, size_t size, weir_error **error) {
    unsigned long long at = offset;
    for (size_t done = 0; done < size;) {
        if (weir__inject(f->system, WEIR__INJECT_READ))
            return weir_fail(error, WEIR_EIO, "%s: read at byte %llu: injected fault", f->path, at);
        ssize_t got = pread(f->fd, (char *)to + done, size - done, (off_t)(offset + done));
        if (weir__inject(f->system, WEIR__INJECT_SHORT_READ))
            got = 0;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return weir_fail(error, WEIR_EIO, "%s: read at byte %llu: %s", f->path, at, strerror(errno));
        if (got == 0)
            return weir_fail(error, WEIR_EFORMAT, "%s: found %zu bytes at byte %llu, wanted %zu: the file ends there", f->path, done, at,
                             size);
        done += (size_t)got;
    }
    return WEIR_OK;
}

void weir__file_close(weir__file *f) {
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}
