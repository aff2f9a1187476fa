/* thread.c: threads of the library's own. */
#include <signal.h>
#include <stdio.h>

#include "internal.h"

int weir__thread_start(pthread_t *thread, const char *name, void *(*run)(void *), void *data) {
    char cut[16];
    sigset_t all, old;
    snprintf(cut, sizeof cut, "%.15s", name);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* inherited by the new thread */
    int code = pthread_create(thread, NULL, run, data);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (code == 0)
        pthread_setname_np(*thread, cut);
    return code;
}
