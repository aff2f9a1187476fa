// sanitizer.h: what the runtime tells the sanitizers. The runtime itself is never instrumented; the build passes CUEMU_TSAN or CUEMU_ASAN when kernels and
// host code are. A token is a byte whose address stands for an order: release here, acquire there.
#pragma once
#include <cstddef>

extern "C" {
#ifdef CUEMU_TSAN
void __tsan_acquire(void *);
void __tsan_release(void *);
void *__tsan_create_fiber(unsigned);
void __tsan_destroy_fiber(void *);
void *__tsan_get_current_fiber(void);
void __tsan_switch_to_fiber(void *, unsigned);
void AnnotateIgnoreWritesBegin(const char *, int);
void AnnotateIgnoreWritesEnd(const char *, int);
void AnnotateIgnoreReadsBegin(const char *, int);
void AnnotateIgnoreReadsEnd(const char *, int);
#endif
#ifdef CUEMU_ASAN
void __sanitizer_start_switch_fiber(void **, const void *, size_t);
void __sanitizer_finish_switch_fiber(void *, const void **, size_t *);
void *__asan_region_is_poisoned(void *, size_t);
#endif
}

static inline void token_acquire(void *token) {
    (void)token;
#ifdef CUEMU_TSAN
    __tsan_acquire(token);
#endif
}
static inline void token_release(void *token) {
    (void)token;
#ifdef CUEMU_TSAN
    __tsan_release(token);
#endif
}

// Memory that is allocated or freed while one of these lives has no owner thread.
struct UnownedMemory {
#ifdef CUEMU_TSAN
    UnownedMemory() {
        AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    }
    ~UnownedMemory() {
        AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    }
#else
    UnownedMemory() {}
    ~UnownedMemory() {}
#endif
};

// A worker's thread only schedules: what it touches itself is not checked, what its fibers touch is.
struct UncheckedThread : UnownedMemory {
#ifdef CUEMU_TSAN
    UncheckedThread() {
        AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    }
    ~UncheckedThread() {
        AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    }
#else
    UncheckedThread() {}
    ~UncheckedThread() {}
#endif
};
