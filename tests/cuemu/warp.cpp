// warp.cpp: collective operations of the lanes in a mask. The last lane to arrive computes for all. Shuffles and votes order no memory; __syncwarp does.
#include "block.h"

// m16n8k16, f16 in, f32 out: the fragments' layout is that of the PTX instruction set manual.
NOSAN static void multiply(Thread *lanes) {
    float a[16][16], b[16][8];
    for (int l = 0; l < 32; l++) {
        const cuemu_mma_arg *m = (const cuemu_mma_arg *)lanes[l].value;
        const int g = l >> 2, t = l & 3;
        for (int i = 0; i < 4; i++)
            for (int h = 0; h < 2; h++)
                a[g + (i & 1) * 8][2 * t + h + (i >> 1) * 8] = __half2float({(uint16_t)(m->a[i] >> 16 * h)});
        for (int i = 0; i < 2; i++)
            for (int h = 0; h < 2; h++)
                b[2 * t + h + i * 8][g] = __half2float({(uint16_t)(m->b[i] >> 16 * h)});
    }
    for (int l = 0; l < 32; l++) {
        const cuemu_mma_arg *m = (const cuemu_mma_arg *)lanes[l].value;
        const int g = l >> 2, t = l & 3;
        for (int i = 0; i < 4; i++) {
            float s = m->d[i];
            for (int k = 0; k < 16; k++)
                s += a[g + (i >> 1) * 8][k] * b[k][2 * t + (i & 1)];
            m->d[i] = s;
        }
    }
}

NOSAN static uint32_t reduce_step(int op, uint32_t r, uint32_t v, int lane) {
    switch (op) {
    case CUEMU_BALLOT:
        return r | v << lane;
    case CUEMU_ADD:
        return r + v;
    case CUEMU_MIN:
        return v < r ? v : r;
    case CUEMU_MAX:
        return v > r ? v : r;
    case CUEMU_AND:
        return r & v;
    case CUEMU_OR:
        return r | v;
    default:
        return r ^ v;
    }
}

NOSAN static void reduce(int op, uint32_t mask, Thread *lanes) {
    uint32_t r = op == CUEMU_MIN || op == CUEMU_AND ? ~0u : 0;
    for (uint32_t m = mask; m; m &= m - 1) {
        const int lane = __builtin_ctz(m);
        r = reduce_step(op, r, (uint32_t)lanes[lane].value, lane);
    }
    for (uint32_t m = mask; m; m &= m - 1)
        lanes[__builtin_ctz(m)].result = r;
}

NOSAN static void shuffle(simt_sm *b, uint32_t mask, int line, Thread *lanes) {
    for (uint32_t m = mask; m; m &= m - 1) {
        Thread *x = &lanes[__builtin_ctz(m)];
        if (mask >> x->source & 1)
            x->result = lanes[x->source].value;
        else
            block_fail(b, "shuffle at line " + std::to_string(line) + " reads lane " + std::to_string(x->source) +
                              ", which is outside the mask");
    }
}

NOSAN static void match(uint32_t mask, Thread *lanes) {
    for (uint32_t m = mask; m; m &= m - 1) {
        uint32_t same = 0;
        for (uint32_t o = mask; o; o &= o - 1)
            if (lanes[__builtin_ctz(o)].value == lanes[__builtin_ctz(m)].value)
                same |= o & -o;
        lanes[__builtin_ctz(m)].result = same;
    }
}

NOSAN static void butterfly(simt_sm *b, const Collective &c, Thread *lanes) {
    uint64_t v[32], next[32];
    if (c.mask != ~0u) {
        block_fail(b, "butterfly at line " + std::to_string(c.line) + " over a part of a warp");
        return;
    }
    for (int l = 0; l < 32; l++)
        v[l] = lanes[l].value;
    for (int o = lanes[0].source / 2; o > 0; o /= 2) {
        for (int l = 0; l < 32; l++)
            next[l] = c.join(v[l], v[l ^ o]);
        for (int l = 0; l < 32; l++)
            v[l] = next[l];
    }
    for (int l = 0; l < 32; l++)
        lanes[l].result = v[l];
}

NOSAN static void complete(simt_sm *b, const Collective &c, Thread *lanes) {
    if (c.op == CUEMU_SHFL)
        shuffle(b, c.mask, c.line, lanes);
    else if (c.op == CUEMU_MATCH)
        match(c.mask, lanes);
    else if (c.op == CUEMU_MMA)
        multiply(lanes);
    else if (c.op == CUEMU_BUTTERFLY)
        butterfly(b, c, lanes);
    else if (c.op != CUEMU_SYNCWARP)
        reduce(c.op, c.mask, lanes);
    for (uint32_t m = c.mask; m; m &= m - 1)
        lanes[__builtin_ctz(m)].state = READY;
}

static void fail_divergent(simt_sm *b, const Collective &c, int line, uint32_t mask) {
    block_fail(b, "divergent warp operation: line " + std::to_string(c.line) + " and line " + std::to_string(line) +
                      (c.mask != mask ? " (masks differ)" : ""));
}

extern "C" NOSAN uint64_t cuemu_warp(int op, uint32_t mask, uint64_t value, int source, int line) {
    simt_sm *b = the_block;
    Thread *t = b->current, *lanes = &b->thread[t->warp * 32];
    if (b->n - t->warp * 32 < 32) // a last warp that is not full
        mask &= (1u << (b->n & 31)) - 1;
    if (!(mask >> t->lane & 1)) {
        block_fail(b, "warp operation at line " + std::to_string(line) + ": lane " + std::to_string(t->lane) + " is not in its own mask");
        block_wait(t);
    }
    Collective &c = b->warp[t->warp].collective[__builtin_ctz(mask)];
    if (!c.arrived) {
        c.mask = mask;
        c.op = op;
        c.line = line;
    } else if (c.mask != mask || c.op != op || c.line != line) {
        fail_divergent(b, c, line, mask);
        block_wait(t);
    }
    const uint32_t generation = c.generation;
    const bool orders = op == CUEMU_SYNCWARP || op == CUEMU_MMA;
    if (orders)
        token_release(&c.token[generation & 1]);
    t->value = value;
    t->source = source;
    c.arrived |= 1u << t->lane;
    if (c.arrived == mask) {
        c.arrived = 0;
        c.generation++;
        complete(b, c, lanes);
    } else {
        t->state = AT_WARP;
        t->line = line;
        block_wait(t);
    }
    if (orders)
        token_acquire(&c.token[generation & 1]);
    return t->result;
}

extern "C" NOSAN uint64_t cuemu_butterfly(uint64_t value, uint64_t (*join)(uint64_t, uint64_t), int width, int line) {
    simt_sm *b = the_block;
    b->warp[b->current->warp].collective[0].join = join;
    return cuemu_warp(CUEMU_BUTTERFLY, ~0u, value, width, line);
}
