/* lib_file.c: the little of a file system that Lua's io lacks: folders, sizes. Knows no formats. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binding.h"

/* core.list_folder(path) -> names, sorted by nobody; empty if there is no such folder */
static int list_folder(lua_State *L) {
    DIR *folder = opendir(luaL_checkstring(L, 1));
    lua_newtable(L);
    if (!folder)
        return 1;
    int n = 0;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        lua_pushstring(L, entry->d_name);
        lua_rawseti(L, -2, ++n);
    }
    closedir(folder);
    return 1;
}

/* core.file_size(path) -> bytes; nil for what is no plain file */
static int file_size(lua_State *L) {
    struct stat info;
    if (stat(luaL_checkstring(L, 1), &info) != 0 || !S_ISREG(info.st_mode))
        return 0;
    lua_pushnumber(L, (double)info.st_size);
    return 1;
}

/* core.make_folder(path) with all folders above it; nil, reason on failure */
static int make_folder(lua_State *L) {
    char path[4096];
    size_t n;
    const char *name = luaL_checklstring(L, 1, &n);
    if (n >= sizeof path)
        return raise_code(L, WEIR_EINVAL, "a path of %zu bytes", n);
    memcpy(path, name, n + 1);
    for (char *end = path + 1;; end++) {
        char c = *end;
        if (c && c != '/')
            continue;
        *end = 0;
        if (mkdir(path, 0777) != 0 && errno != EEXIST) {
            lua_pushnil(L);
            lua_pushfstring(L, "%s: %s", path, strerror(errno));
            return 2;
        }
        *end = c;
        if (!c)
            break;
    }
    lua_pushboolean(L, 1);
    return 1;
}

static bool write_all(int fd, const char *p, size_t n) {
    while (n > 0) {
        ssize_t written = write(fd, p, n);
        if (written < 0 && errno != EINTR)
            return false;
        p += written > 0 ? written : 0;
        n -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

/* core.replace_file(path, text): a file that its owner alone reads, old or new as a whole at any time. true; nil, reason on failure: it is the old one then */
static int replace_file(lua_State *L) {
    size_t n;
    const char *path = luaL_checkstring(L, 1), *text = luaL_checklstring(L, 2, &n);
    const char *beside = lua_pushfstring(L, "%s.%d", path, (int)getpid());
    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && write_all(fd, text, n) && fsync(fd) == 0;
    int reason = errno;
    if (fd >= 0)
        ok = close(fd) == 0 && ok;
    if (ok && rename(beside, path) != 0) {
        ok = false;
        reason = errno;
    }
    if (ok) {
        lua_pushboolean(L, 1);
        return 1;
    }
    if (fd >= 0)
        unlink(beside);
    lua_pushnil(L);
    lua_pushfstring(L, "%s: %s", path, strerror(reason));
    return 2;
}

void open_file(lua_State *L, binding *b) {
    static const luaL_Reg functions[] = {
        {"list_folder", list_folder}, {"file_size", file_size}, {"make_folder", make_folder}, {"replace_file", replace_file}, {NULL, NULL}};
    binding_register(L, b, functions);
}
