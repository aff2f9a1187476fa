/* hold.c: see hold.h. */
#include "hold.h"

enum { KEPT = 16 };

typedef struct kept {
    CUstream stream;
    CUhostFn fn;
    void *data;
} kept;

static struct {
    weir__cuda *device;
    CUresult (*launch)(CUstream, CUhostFn, void *);
    CUresult (*query)(CUstream);
    _Atomic bool on;
    pthread_mutex_t lock; /* what is kept */
    kept kept[KEPT];
    int count;
} hold = {.lock = PTHREAD_MUTEX_INITIALIZER};

static CUresult keep(CUstream st, CUhostFn fn, void *data) {
    CUresult code = CUDA_SUCCESS;
    pthread_mutex_lock(&hold.lock);
    if (hold.on && hold.count < KEPT)
        hold.kept[hold.count++] = (kept){st, fn, data};
    else
        code = hold.launch(st, fn, data);
    pthread_mutex_unlock(&hold.lock);
    return code;
}

static CUresult query(CUstream st) {
    return hold.on ? CUDA_ERROR_NOT_READY : hold.query(st);
}

void hold_begin(weir__cuda *c) {
    if (c->driver.LaunchHostFunc != keep) {
        hold.launch = c->driver.LaunchHostFunc;
        hold.query = c->driver.StreamQuery;
    }
    hold.device = c;
    c->driver.LaunchHostFunc = keep;
    c->driver.StreamQuery = query;
    hold.on = true;
}

void hold_end(void) {
    weir__cuda_scope scope = weir__cuda_enter(hold.device);
    pthread_mutex_lock(&hold.lock);
    hold.on = false;
    for (int i = 0; i < hold.count; i++)
        assert_int_equal(hold.launch(hold.kept[i].stream, hold.kept[i].fn, hold.kept[i].data), CUDA_SUCCESS);
    hold.count = 0;
    pthread_mutex_unlock(&hold.lock);
    weir__cuda_leave(hold.device, scope);
}

void hold_until_called(const char *function, long count) {
    while (EMU(cuemu_count)(function) < count)
        dev_nap(1000000);
}
