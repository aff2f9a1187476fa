// kernels_test.cu: small kernels for the tests of the emulator, some of them wrong on purpose.
#include "kernels/cuda/kdev.h"

extern "C" __global__ void weir_test_fill(float *y, float value, int n) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        y[i] = value;
}

extern "C" __global__ void weir_test_add(float *y, const float *x, int n) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        y[i] += x[i];
}

// The sum of n values by one block, through shared memory and shuffles.
extern "C" __global__ void weir_test_sum(float *y, const float *x, int n) {
    __shared__ float part[32];
    float s = 0;
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
        s += x[i];
    for (int o = 16; o > 0; o >>= 1)
        s += __shfl_xor_sync(~0u, s, o);
    if ((threadIdx.x & 31) == 0)
        part[threadIdx.x >> 5] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (unsigned w = 1; w < blockDim.x / 32; w++)
            s += part[w];
        y[0] = s;
    }
}

extern "C" __global__ void weir_test_reverse(int *y, const int *x) {
    KDEV_DYN_SHARED(int, row);
    row[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = row[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void weir_test_count(int *y) { atomicAdd(y, 1); }

extern "C" __global__ void weir_test_through(float *const *slots, int i, float value) { KDEV_PTR(slots[i])[threadIdx.x] = value; }

// ---- wrong ones ----

extern "C" __global__ void weir_test_beyond(float *y, int n) {
    if (threadIdx.x == 0)
        y[n] = 1;
}

extern "C" __global__ void weir_test_diverge(int *y) {
    if (threadIdx.x < 16) {
        __syncthreads();
        y[0] = 1;
    } else {
        __syncthreads();
    }
}

extern "C" __global__ void weir_test_absent(int *y) {
    if (threadIdx.x < 16)
        y[threadIdx.x] = __shfl_xor_sync(~0u, 1, 1);
}

extern "C" __global__ void weir_test_mask(int *y) { y[threadIdx.x] = __shfl_sync(1u << 31, 1, 0); }

extern "C" __global__ void weir_test_stale(float *y) {
    __shared__ float s[32];
    if (threadIdx.x)
        s[threadIdx.x] = 1;
    __syncthreads();
    y[threadIdx.x] = s[threadIdx.x];
}

extern "C" __global__ void weir_test_unsynced(int *y, int sync) {
    __shared__ int s[32];
    s[threadIdx.x] = (int)threadIdx.x;
    if (sync)
        __syncwarp();
    y[threadIdx.x] = s[threadIdx.x ^ 1];
}

KDEV_EXPORT(weir_test_fill)
KDEV_EXPORT(weir_test_add)
KDEV_EXPORT(weir_test_sum)
KDEV_EXPORT(weir_test_reverse)
KDEV_EXPORT(weir_test_count)
KDEV_EXPORT(weir_test_through)
KDEV_EXPORT(weir_test_beyond)
KDEV_EXPORT(weir_test_diverge)
KDEV_EXPORT(weir_test_absent)
KDEV_EXPORT(weir_test_mask)
KDEV_EXPORT(weir_test_stale)
KDEV_EXPORT(weir_test_unsynced)
