/* driver_fd.c: a loop for hosts that have an event loop of any other kind: one epoll descriptor that holds the loop's eventfd, its timerfd and the watched
 * descriptors. The host waits until it is readable and calls weir_system_step. */
#include <errno.h>
#include <sys/epoll.h>

#include "internal.h"

enum { EVENTS = 64 }; /* taken at a time; more come with the next call */

/* What an event carries: the descriptor, and the registration that was the latest when it was added or changed (0: the loop's own). */
static int add(weir__loop *l, int operation, int fd, uint32_t serial, uint32_t events) {
    struct epoll_event e = {.events = events, .data.u64 = (uint64_t)serial << 32 | (uint32_t)fd};
    return epoll_ctl(l->epoll_fd, operation, fd, &e) == 0 ? 0 : errno;
}

static void fd_close(weir__loop *l) {
    if (l->epoll_fd >= 0)
        close(l->epoll_fd);
    weir__wait_close(l);
}

static int fd_open(weir__loop *l, weir_error **error) {
    int code = weir__wait_open(l, error);
    if (code)
        return code;
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll_fd < 0)
        return weir_fail(error, WEIR_EIO, "epoll_create1: %s", strerror(errno));
    int failed = add(l, EPOLL_CTL_ADD, l->wake_fd, 0, EPOLLIN);
    if (!failed)
        failed = add(l, EPOLL_CTL_ADD, l->timer_fd, 0, EPOLLIN);
    return failed ? weir_fail(error, WEIR_EIO, "epoll_ctl: %s", strerror(failed)) : WEIR_OK;
}

/* ---- watched descriptors ---- */

static weir__io *io_at(weir__link *link) {
    return weir__container(link, weir__io, link);
}

static uint32_t wanted(weir__ios *ios, int fd) {
    uint32_t events = 0;
    for (weir__link *at = ios->living.next; at != &ios->living; at = at->next)
        if (io_at(at)->fd == fd && !io_at(at)->always)
            events |= (io_at(at)->events & WEIR__IO_READ ? EPOLLIN : 0) | (io_at(at)->events & WEIR__IO_WRITE ? EPOLLOUT : 0);
    return events;
}

/* All watchers of one descriptor share its registration. */
static int fd_io_start(weir__loop *l, weir__io *io, weir_error **error) {
    weir__ios *ios = &l->system->ios;
    io->born = ++ios->serial ? ios->serial : ++ios->serial;
    uint32_t events = wanted(ios, io->fd);
    int failed = add(l, EPOLL_CTL_ADD, io->fd, io->born, events);
    if (failed == EEXIST)
        failed = add(l, EPOLL_CTL_MOD, io->fd, io->born, events);
    if (failed == EPERM) {
        io->always = true;
        ios->always++;
        if (!l->running)
            weir__wake(l);
        return WEIR_OK;
    }
    return failed ? weir_fail(error, WEIR_EIO, "descriptor %d cannot be watched: %s", io->fd, strerror(failed)) : WEIR_OK;
}

static void fd_io_stop(weir__loop *l, weir__io *io) {
    weir__ios *ios = &l->system->ios;
    if (io->always) {
        ios->always--;
        return;
    }
    uint32_t events = wanted(ios, io->fd);
    add(l, events ? EPOLL_CTL_MOD : EPOLL_CTL_DEL, io->fd, ios->serial, events);
}

/* A function may stop any watcher and start others: the search begins anew after each, and passes by those that were told, or came after the event. */
static void tell(weir__loop *l, int fd, uint32_t serial, int events) {
    weir__ios *ios = &l->system->ios;
    uint64_t round = ++ios->round;
    for (weir__link *at = ios->living.next; at != &ios->living;) {
        weir__io *io = io_at(at);
        at = at->next;
        bool meant = fd < 0 ? io->always : io->fd == fd && !io->always;
        if (!meant || io->told >= round || (int32_t)(serial - io->born) < 0 || !(io->events & events))
            continue;
        io->told = round;
        ios->dirty = true;
        io->fn(l->system, io->data, io->events & events);
        at = ios->living.next;
    }
}

static void happened(weir__loop *l, const struct epoll_event *e) {
    int fd = (int)(uint32_t)e->data.u64;
    uint32_t serial = (uint32_t)(e->data.u64 >> 32);
    if (serial) {
        int both = e->events & (EPOLLERR | EPOLLHUP) ? WEIR__IO_READ | WEIR__IO_WRITE : 0;
        tell(l, fd, serial, both | (e->events & EPOLLIN ? WEIR__IO_READ : 0) | (e->events & EPOLLOUT ? WEIR__IO_WRITE : 0));
        return;
    }
    weir__drain_fd(fd);
    if (fd == l->timer_fd)
        l->timer_set = 0;
}

/* timeout: as in epoll_wait; with files that are always ready nothing is waited for. */
static void look(weir__loop *l, int timeout) {
    struct epoll_event events[EVENTS];
    weir__ios *ios = &l->system->ios;
    int n = epoll_wait(l->epoll_fd, events, EVENTS, ios->always ? 0 : timeout);
    weir__sleep_end(l);
    for (int i = 0; i < n; i++)
        happened(l, &events[i]);
    if (ios->always)
        tell(l, -1, ios->serial, WEIR__IO_READ | WEIR__IO_WRITE);
}

static void fd_poll(weir__loop *l) {
    look(l, 0);
}

static void fd_wait(weir__loop *l) {
    weir__wait_timer(l);
    if (weir__sleep_begin(l))
        look(l, -1);
}

const weir__driver weir__driver_fd = {.turn = WEIR_TURN_MESSAGES,
                                      .open = fd_open,
                                      .close = fd_close,
                                      .now = weir__wait_clock,
                                      .choose = weir__wait_choose,
                                      .poll = fd_poll,
                                      .wait = fd_wait,
                                      .wake = weir__wake_fd,
                                      .leave = weir__wait_leave,
                                      .io_start = fd_io_start,
                                      .io_stop = fd_io_stop};
