/* sample.cu: a token from a row of logits, by one block: greedy, or temperature, top_k, top_p and min_p in the default order and one counter-based random number. The
 * same candidates, weights, order and draw as kernels/cpu/sample*.h; only sums of weights, in double, are taken in another order. Nothing is sorted: what a sorted list
 * would be asked for is found by bisection over keys, each step one sum over the candidates. */
#include "common.h"

#include <float.h>

enum { SAMPLE_THREADS = WEIR_CUDA_SAMPLE_THREADS, SAMPLE_WARPS = SAMPLE_THREADS / WARP };

typedef struct candidate {
    float weight;
    int32_t id;
} candidate;

/* ---- logits in order ---- */

/* Ascending with x; below every number's: NaN. Zeros of both signs are one. */
DEVICE uint32_t order_key(float x) {
    const uint32_t u = float_bits(x + 0.0f);
    return x != x ? 0 : u & 0x80000000u ? ~u : u | 0x80000000u;
}
DEVICE float order_value(uint32_t key) {
    return bits_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}
#define LEAST_KEY 0x007fffffu /* of minus infinity */
#define MOST_KEY 0xff800000u  /* of infinity */

/* Largest logit that is a number, and of equal ones the lowest id: (order_key, ~id). 0: none is a number. */
DEVICE unsigned long long best_logit(const float *x, int n) {
    unsigned long long best = 0;
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < n; i += SAMPLE_THREADS)
        if (x[i] == x[i])
            best = op_max::join(best, (unsigned long long)order_key(x[i]) << 32 | ~(uint32_t)i);
    return block_reduce<op_max>(best, 0ull);
}

/* ---- lists ---- */

/* Which tokens of a row go to a list, and with what. The weight is the logit itself, or exp((logit - largest) / temperature). */
struct picker {
    const float *x;
    int vocab;
    float least; /* logits below it do not */
    bool weighted;
    float largest, temperature;
    double least_weight;

    __device__ __forceinline__ bool take(int i, float *weight) const {
        if (i >= vocab || !(x[i] >= least))
            return false;
        *weight = x[i];
        if (!weighted)
            return true;
        *weight = exp_of(x[i] >= largest ? 0.0f : (x[i] - largest) / temperature);
        return (double)*weight >= least_weight;
    }
};

/* Lists what is taken by ascending id; returns how many. Each warp has a stretch of the row and goes through it twice: to count, and to write. */
DEVICE int collect(const picker &p, candidate *list) {
    __shared__ int of_warp[SAMPLE_WARPS];
    const int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP;
    const int stretch = (p.vocab + SAMPLE_THREADS - 1) / SAMPLE_THREADS * WARP, first = warp * stretch;
    int mine = 0, at = 0, total = 0;
    float weight;
#pragma unroll 1
    for (int i = 0; i < stretch; i += WARP)
        mine += __popc(__ballot_sync(ALL_LANES, p.take(first + i + lane, &weight)));
    if (lane == 0)
        of_warp[warp] = mine;
    __syncthreads();
    for (int i = 0; i < SAMPLE_WARPS; i++) {
        at += i < warp ? of_warp[i] : 0;
        total += of_warp[i];
    }
#pragma unroll 1
    for (int i = 0; i < stretch && mine; i += WARP) {
        const bool taken = p.take(first + i + lane, &weight);
        const unsigned which = __ballot_sync(ALL_LANES, taken);
        if (taken) {
            candidate *c = list + at + __popc(which & ((1u << lane) - 1));
            c->weight = weight;
            c->id = first + i + lane;
        }
        at += __popc(which);
    }
    __syncthreads();
    return total;
}

/* ---- top_k ---- */

/* The k-th largest of n numbers at list (NULL: of one number a thread, `mine`): the largest key that k of them reach. */
DEVICE float kth_of(const candidate *list, int n, uint32_t mine, int k) {
    uint32_t low = LEAST_KEY, high = MOST_KEY;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2 + 1;
        int count = !list && mine >= middle;
        for (int i = (int)threadIdx.x; list && i < n; i += SAMPLE_THREADS)
            count += order_key(list[i].weight) >= middle;
        if (block_reduce<op_sum>(count, 0) >= k)
            low = middle;
        else
            high = middle - 1;
    }
    return order_value(low);
}

/* The k-th largest logit that is a number. Only those are looked at that reach the k-th largest of the threads' own largest ones. */
DEVICE float kth_largest(const float *x, int vocab, int k, candidate *list) {
    uint32_t mine = 0;
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < vocab; i += SAMPLE_THREADS)
        mine = op_max::join(mine, order_key(x[i]));
    const float bound = k <= SAMPLE_THREADS ? kth_of(NULL, 0, mine, k) : -INFINITY;
    const picker p = {x, vocab, bound, false, 0.0f, 1.0f, 0.0};
    return kth_of(list, collect(p, list), 0, k);
}

/* ---- candidates in order ---- */

/* The candidates, in ascending order of keys: the id, or, after top_p, weight and id. Kept: those with a key of at least `cut` and a weight of at least least_weight. */
struct candidates {
    const candidate *c;
    int n, vocab;
    bool by_weight;
    unsigned long long cut;
    double least_weight;

    __device__ __forceinline__ unsigned long long key(int i) const {
        const unsigned long long id = (unsigned long long)c[i].id;
        return by_weight ? (unsigned long long)float_bits(c[i].weight) * (unsigned long long)vocab + id : id;
    }
    __device__ __forceinline__ bool kept(int i) const { return key(i) >= cut && (double)c[i].weight >= least_weight; }
};

/* Sum of the weights of those kept whose keys are in [from, to]. */
DEVICE double sum_of(const candidates &m, unsigned long long from, unsigned long long to) {
    double sum = 0;
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < m.n; i += SAMPLE_THREADS)
        if (m.kept(i) && m.key(i) >= from && m.key(i) <= to)
            sum += (double)m.c[i].weight;
    return block_reduce<op_sum>(sum, 0.0);
}

DEVICE unsigned long long last_key(const candidates &m) {
    unsigned long long last = 0;
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < m.n; i += SAMPLE_THREADS)
        if (m.kept(i))
            last = op_max::join(last, m.key(i));
    return block_reduce<op_max>(last, 0ull);
}

/* The fewest last candidates whose weights make at least `least` (Holtzman et al. 2020). */
DEVICE void cut_top(candidates *m, double least) {
    unsigned long long low = 0, high = last_key(*m);
    const unsigned long long last = high;
    while (low < high) {
        const unsigned long long middle = low + (high - low) / 2 + 1;
        if (sum_of(*m, middle, last) >= least)
            low = middle;
        else
            high = middle - 1;
    }
    m->cut = low;
}

/* splitmix64's finaliser (Steele, Lea & Flood 2014) over seed and position: a number in [0, 1). */
DEVICE uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}
DEVICE double random_number(uint64_t seed, int64_t position) {
    const uint64_t golden = 0x9e3779b97f4a7c15ull, x = mix(mix(seed + golden) + ((uint64_t)position + 1) * golden);
    return (double)(x >> 11) * 0x1p-53;
}

/* The first candidate at which the sum of weights so far is above its part of the whole. */
DEVICE int32_t draw(const candidates &m, double part) {
    unsigned long long low = m.cut, high = last_key(m);
    const double target = part * sum_of(m, low, high);
    while (low < high) {
        const unsigned long long middle = low + (high - low) / 2;
        if (sum_of(m, m.cut, middle) > target)
            high = middle;
        else
            low = middle + 1;
    }
    return (int32_t)(m.by_weight ? low % (unsigned long long)m.vocab : low);
}

/* ---- the kernel ---- */

/* How many a picker takes, and the sum of their weights. */
DEVICE int weigh(const picker &p, double *sum) {
    int count = 0;
    double mine = 0;
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < p.vocab; i += SAMPLE_THREADS) {
        float weight;
        if (p.take(i, &weight)) {
            count++;
            mine += (double)weight;
        }
    }
    *sum = block_reduce<op_sum>(mine, 0.0);
    return block_reduce<op_sum>(count, 0);
}

DEVICE int32_t sampled_token(const weir_sample &s, const float *x, int vocab, float largest, candidate *list) {
    const float least = s.top_k > 0 && s.top_k < vocab ? kth_largest(x, vocab, s.top_k, list) : -INFINITY;
    picker p = {x, vocab, largest > -INFINITY && least < -FLT_MAX ? -FLT_MAX : least, true, largest, s.temperature, 0.0};
    double sum = 0;
    const double top = (double)s.top_p;
    bool by_weight = top > 0 && top < 1;
    if (by_weight) {
        const int n = weigh(p, &sum);
        by_weight = n > 1;
        if (by_weight)
            p.least_weight = (1 - top) / n * sum * 0.999; /* a lighter one is never among the fewest */
    }
    candidates m = {list, collect(p, list), vocab, by_weight, 0, 0.0};
    if (m.n == 0)
        return 0;
    if (by_weight)
        cut_top(&m, top * sum);
    if (s.min_p > 0)
        m.least_weight = s.min_p < 1 ? (double)s.min_p : 1.0;
    return draw(m, random_number(s.seed, s.position));
}

extern "C" __global__ void __launch_bounds__(WEIR_CUDA_SAMPLE_THREADS, 1)
    weir_draw(const weir_step *step, const float *logits, int32_t vocab, void *workspace) {
    const int r = (int)blockIdx.x;
    if (r >= step->out_rows)
        return;
    const weir_sample s = KDEV_PTR(step->sample)[step->out_first + r];
    const float *x = logits + (size_t)r * (size_t)vocab;
    const unsigned long long best = best_logit(x, vocab);
    int32_t token = best ? (int32_t) ~(uint32_t)best : 0;
    if (s.temperature > 0)
        token = sampled_token(s, x, vocab, best ? order_value((uint32_t)(best >> 32)) : -INFINITY,
                              (candidate *)workspace + (size_t)r * (size_t)vocab);
    if (threadIdx.x == 0)
        KDEV_PTR(step->sampled)[step->out_first + r] = x[token] == x[token] ? token : -1;
}
