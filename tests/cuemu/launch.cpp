// launch.cpp: launches. Grid, block, shared memory and every argument are checked when the launch is made, and the values are copied then, as on the real driver.
#include "state.h"
#include <algorithm>
#include <cstring>

static const uint64_t max_grid_x = 0x7fffffff, max_grid_yz = 65535, max_threads = 1024, max_block_z = 64, registers = 65536;
static const unsigned plain_shared = 49152, reserved_shared = 1024; // the latter from sm_80 on, and counted in a cubin's static part

static int bad(int code, CUfunction f, const string &what) {
    return misuse(code, "bad argument", string(f->kernel->name) + ": " + what);
}

static int check_shape(CUfunction f, dim3 grid, dim3 block, unsigned shared) {
    const uint64_t threads = (uint64_t)block.x * block.y * block.z;
    const Resources &r = f->resources;
    if (!grid.x || !grid.y || !grid.z || grid.x > max_grid_x || grid.y > max_grid_yz || grid.z > max_grid_yz)
        return bad(CUDA_ERROR_INVALID_VALUE, f,
                   "grid " + std::to_string(grid.x) + "," + std::to_string(grid.y) + "," + std::to_string(grid.z) + " is out of range");
    if (!threads || threads > max_threads || block.z > max_block_z)
        return bad(CUDA_ERROR_INVALID_VALUE, f, "a block of " + std::to_string(threads) + " threads");
    if (r.max_threads && threads > (uint64_t)r.max_threads)
        return bad(CUDA_ERROR_INVALID_VALUE, f, "more threads than its __launch_bounds__");
    if ((uint64_t)r.registers * ((threads + 31) / 32 * 32) > registers)
        return bad(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, f, "its threads need more registers than there are");
    const unsigned reserved = emu.cc >= 80 ? reserved_shared : 0;
    const unsigned limit = std::max(plain_shared + reserved, f->max_dynamic ? (unsigned)(f->max_dynamic + r.shared) : 0u);
    if ((uint64_t)shared + (unsigned)r.shared > limit)
        return bad(CUDA_ERROR_INVALID_VALUE, f,
                   std::to_string(shared) + " bytes of dynamic shared memory are above the limit set for this function");
    return 0;
}

static bool readable(const void *p, size_t n) {
#ifdef CUEMU_ASAN
    return p && !__asan_region_is_poisoned(const_cast<void *>(p), n);
#else
    (void)n;
    return p != nullptr;
#endif
}

// A pointer must be memory of the device (or pinned, or NULL); a float that is no normal number is most likely an integer that went astray, an integer
// that is an address a pointer.
static string judge(const cuemu_param &p, const uint8_t *value) {
    uint64_t u = 0;
    memcpy(&u, value, p.size < 8 ? p.size : 8);
    if ((p.kind == 'p' || p.kind == 'r') && u && !find_memory(u, 1))
        return "a pointer, found " + (u & TAG ? pointer_name(u) : std::to_string(u));
    if (p.kind == 'f' && p.size == 4 && (u & 0x7f800000) == 0 && (u & 0x7fffff))
        return "a float, found the bits of the integer " + std::to_string(u);
    if ((p.kind == 'i' || p.kind == 'u') && p.size == 8 && (u & TAG) && find_memory(u, 1))
        return "an integer, found the address " + pointer_name(u);
    return "";
}

static int take_arguments(Node &n, CUfunction f, void **params) {
    const cuemu_kernel *k = f->kernel;
    n.args.clear();
    n.offsets.clear();
    n.touches.clear();
    for (int i = 0; i < k->count; i++) {
        const cuemu_param &p = k->params[i];
        if (!readable(params + i, sizeof *params) || !readable(params[i], p.size))
            return bad(CUDA_ERROR_INVALID_VALUE, f, "argument " + std::to_string(i) + " of " + std::to_string(k->count) + " is missing");
        const size_t at = (n.args.size() + 15) & ~(size_t)15;
        n.offsets.push_back(at);
        n.args.resize(at + p.size);
        memcpy(&n.args[at], params[i], p.size);
        const string wrong = judge(p, &n.args[at]);
        if (!wrong.empty())
            return bad(CUDA_ERROR_INVALID_VALUE, f, "argument " + std::to_string(i) + " should be " + wrong);
        uint64_t u = 0;
        if (p.kind == 'p' || p.kind == 'r')
            memcpy(&u, &n.args[at], 8);
        if (u)
            add_touch(n.touches, u, 1, true, p.kind == 'p');
    }
    return 0;
}

int set_kernel(Node &n, CUfunction f, dim3 grid, dim3 block, unsigned shared, void **params) {
    if (int code = check_shape(f, grid, block, shared))
        return code;
    if (f->kernel->count && !params)
        return bad(CUDA_ERROR_INVALID_VALUE, f, "no arguments were given");
    n.function = f;
    n.grid = grid;
    n.block = block;
    n.shared = shared;
    return take_arguments(n, f, params);
}

EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                               CUstream s, void **params, void **extra) {
    ENTER(cuLaunchKernel, CONTEXT);
    if (int code = check_stream(s))
        return code;
    if (int code = take_fault(string("launch:") + f->kernel->name))
        return code;
    if (extra)
        return bad(CUDA_ERROR_INVALID_VALUE, f, "arguments in a buffer are not emulated");
    Node n = make_node(KERNEL, f->kernel->name);
    if (int code = set_kernel(n, f, {gx, gy, gz}, {bx, by, bz}, shared, params))
        return code;
    return submit(s, std::move(n));
}
