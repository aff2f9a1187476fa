/* wait.c: how loops wait. What the drivers on epoll share: an eventfd for posted work, a timerfd for the next due time (hosts and libev wait in whole milliseconds), and
 * how a loop that does not run tells its host of work. Knows neither libev nor epoll.
 *
 * A loop that a host drives is between its turns in one of two states. Asleep: it has no work, the timerfd is set to its next due time, and whoever brings
 * work (a post, a send from outside of a turn, a new earliest due time) writes the eventfd once. Not asleep: the eventfd is readable, or about to be. */
#include <errno.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

#include "internal.h"

int weir__wait_open(weir__loop *l, weir_error **error) {
    l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (l->wake_fd < 0)
        return weir_fail(error, WEIR_EIO, "eventfd: %s", strerror(errno));
    l->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (l->timer_fd < 0)
        return weir_fail(error, WEIR_EIO, "timerfd_create: %s", strerror(errno));
    return WEIR_OK;
}

void weir__wait_close(weir__loop *l) {
    if (l->timer_fd >= 0)
        close(l->timer_fd);
    if (l->wake_fd >= 0)
        close(l->wake_fd);
}

/* Only when about to sleep, and only if it is set to something else; no due time: disarmed, so that an idle loop sleeps for good. */
void weir__wait_timer(weir__loop *l) {
    int64_t at = weir__due_next(l);
    if (at == l->timer_set)
        return;
    struct itimerspec t = {{0, 0}, {at / 1000000000, at % 1000000000}};
    timerfd_settime(l->timer_fd, TFD_TIMER_ABSTIME, &t, NULL);
    l->timer_set = at;
}

void weir__wait_leave(weir__loop *l) {
    if (l->ready_count || l->system->ios.always) {
        weir__wake_fd(l);
        return;
    }
    weir__wait_timer(l);
    atomic_store(&l->asleep, WEIR__DOZING);
    if (atomic_load(&l->inbox) || atomic_load(&l->asked)) /* pushed before the poster could see that the loop sleeps */
        weir__wake(l);
}

int64_t weir__wait_clock(const weir_system *s) {
    (void)s;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

size_t weir__wait_choose(weir__loop *l) {
    (void)l;
    return 0;
}

/* ---- loops that watch no descriptor ---- */

void weir__wait_futex(weir__loop *l) {
    int64_t at = weir__due_next(l);
    struct timespec t = {at / 1000000000, at % 1000000000};
    if (!weir__sleep_begin(l))
        return;
    uint32_t how = l->index && !at ? WEIR__IDLE : WEIR__DOZING;
    while (atomic_load(&l->asleep) == how) {
        long code = syscall(SYS_futex, &l->asleep, FUTEX_WAIT_BITSET_PRIVATE, how, at ? &t : NULL, NULL, FUTEX_BITSET_MATCH_ANY);
        if (code != 0 && errno == ETIMEDOUT)
            break;
    }
    weir__sleep_end(l);
}

void weir__wake_futex(weir__loop *l) {
    int saved = errno;
    syscall(SYS_futex, &l->asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved;
}
