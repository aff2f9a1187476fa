/* io.c: watched descriptors of a system's main loop: who watches what, what was closed behind the loop's back, and what is left when the system is freed.
 * How a descriptor is watched is the driver's.
 *
 * The kernel forgets a closed descriptor silently. So before the loop sleeps, if an actor or a watcher's function ran since the last time, each descriptor is
 * compared with what it was when it was started, at most every CHECK_NS: an idle loop is woken for that once, a busy one pays one fstat a watcher. */
#include <errno.h>
#include <sys/stat.h>

#include "internal.h"

enum { CHECK_NS = 100000000 };

/* The loop looks before it sleeps again. */
static void check_due(weir__loop *l, weir__due *d) {
    (void)l, (void)d;
}

void weir__ios_init(weir__ios *ios) {
    weir__link_init(&ios->living);
    weir__link_init(&ios->failed);
    ios->due.fire = check_due;
}

static weir__io *io_at(weir__link *link) {
    return weir__container(link, weir__io, link);
}

static bool identify(int fd, uint64_t *device, uint64_t *inode) {
    struct stat st;
    if (fstat(fd, &st) != 0)
        return false;
    *device = (uint64_t)st.st_dev;
    *inode = (uint64_t)st.st_ino;
    return true;
}

/* ---- starting and stopping ---- */

static int may_start(weir_system *s, int fd, int events, bool complete, weir_error **error) {
    if (!weir__check(s && complete, "weir__io_start: system, fn and out are needed"))
        return weir_fail(error, WEIR_EINVAL, "weir__io_start: system, fn and out are needed");
    if (weir__forked(s) || s->thread != weir__thread())
        return weir_fail(error, WEIR_EINVAL, "descriptor %d: descriptors are watched on the thread that made the system", fd);
    if (!events || (events & ~(WEIR__IO_READ | WEIR__IO_WRITE)))
        return weir_fail(error, WEIR_EINVAL, "descriptor %d: events %d, wanted READ, WRITE or both", fd, events);
    if (!s->main_loop.driver->io_start)
        return weir_fail(error, WEIR_EUNSUPPORTED, "descriptor %d: the test driver watches no descriptors", fd);
    if (atomic_load(&s->stopped))
        return weir_fail(error, WEIR_ESTOPPING, "descriptor %d: the system is stopping", fd);
    if (weir__inject(s, WEIR__INJECT_IO))
        return weir_fail(error, WEIR_EIO, "descriptor %d cannot be watched: injected", fd);
    return WEIR_OK;
}

/* In the system's list. The place for the check's due time is the first watcher's. */
static int attach(weir_system *s, weir__io *io, weir_error **error) {
    weir__loop *l = &s->main_loop;
    bool first = weir__link_alone(&s->ios.living);
    if (!identify(io->fd, &io->device, &io->inode))
        return weir_fail(error, WEIR_EIO, "descriptor %d cannot be watched: %s", io->fd, strerror(errno));
    if (first && weir__due_reserve(l) != WEIR_OK)
        return weir_fail(error, WEIR_ENOMEM, "descriptor %d cannot be watched: no memory", io->fd);
    weir__link_add(&s->ios.living, &io->link);
    int code = l->driver->io_start(l, io, error);
    if (!code) {
        weir__pending(s, 1);
        return WEIR_OK;
    }
    weir__link_remove(&io->link);
    if (first)
        weir__due_unreserve(l);
    return code;
}

int weir__io_start(weir_system *s, int fd, int events, weir__io_fn *fn, void *data, weir__io **out, weir_error **error) {
    int code = may_start(s, fd, events, fn && out, error);
    if (code)
        return code;
    weir__io *io = weir__alloc(s, sizeof *io);
    if (!io)
        return weir_fail(error, WEIR_ENOMEM, "descriptor %d cannot be watched: no memory", fd);
    *io = (weir__io){.system = s, .fd = fd, .events = events, .fn = fn, .data = data};
    weir__link_init(&io->link);
    code = attach(s, io, error);
    if (code)
        weir__free(s, io);
    else
        *out = io;
    return code;
}

static void detach(weir__io *io) {
    weir_system *s = io->system;
    weir__loop *l = &s->main_loop;
    io->stopped = true;
    weir__link_remove(&io->link);
    l->driver->io_stop(l, io);
    if (weir__link_alone(&s->ios.living)) {
        weir__due_clear(l, &s->ios.due);
        weir__due_unreserve(l);
    }
    weir__pending(s, -1);
}

void weir__io_stop(weir__io *io) {
    if (!io)
        return;
    if (io->stopped)
        weir__link_remove(&io->link);
    else
        detach(io);
    weir__free(io->system, io);
}

void weir__io_fail(weir__io *io) {
    weir_system *s = io->system;
    detach(io);
    weir__link_add(&s->ios.failed, &io->link);
    io->fn(s, io->data, WEIR__IO_ERROR);
}

/* ---- what was closed ---- */

static bool is_same(const weir__io *io) {
    uint64_t device, inode;
    return identify(io->fd, &device, &inode) && device == io->device && inode == io->inode;
}

/* The first watcher whose descriptor is not what it was; NULL: none. */
static weir__io *find_closed(weir__ios *ios) {
    for (weir__link *at = ios->living.next; at != &ios->living; at = at->next)
        if (!is_same(io_at(at)))
            return io_at(at);
    return NULL;
}

bool weir__ios_settle(weir__loop *l) {
    weir__ios *ios = &l->system->ios;
    if (l != &l->system->main_loop || !ios->dirty || weir__link_alone(&ios->living))
        return false;
    if (l->now < weir__later(ios->checked, CHECK_NS)) {
        if (!ios->due.place)
            weir__due_set(l, &ios->due, weir__later(ios->checked, CHECK_NS));
        return false;
    }
    bool told = false;
    for (weir__io *io; (io = find_closed(ios)); told = true)
        weir__io_fail(io);
    ios->checked = l->now;
    ios->dirty = told;
    return told;
}

void weir__ios_fini(weir_system *s) {
    while (!weir__link_alone(&s->ios.living))
        weir__io_fail(io_at(s->ios.living.next));
    while (!weir__link_alone(&s->ios.failed))
        weir__io_stop(io_at(s->ios.failed.next));
}
