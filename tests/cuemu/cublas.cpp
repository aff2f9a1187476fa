// cublas.cpp: an emulated libcublas.so.13: three products, each sum in the order of k, run in stream order by the emulated driver. Column major: C[m,n] = alpha op(A) op(B) + beta C.
// Instrumented like a kernel, for it stands for code of the device.
#define CUEMU_RUNTIME
#include "core/dev/cuda/abi.h"
#include "cuemu.h"
#include "cuemu_ctl.h"
#include <vector>

struct cublasContext {
    CUstream stream;
    void *workspace;
    size_t workspace_size;
};

#define EXPORT extern "C" __attribute__((visibility("default"))) cublasStatus_t
#define ENTER(name)                                                                                                                        \
    int code_;                                                                                                                             \
    if (cuemu_enter(#name, &code_))                                                                                                        \
    return status_of(code_)

namespace {
// Injected codes are the driver's or cuBLAS's own; a lost device is the driver's.
cublasStatus_t status_of(int code) {
    return code >= CUBLAS_STATUS_NOT_INITIALIZED && code <= CUBLAS_STATUS_NOT_SUPPORTED ? code : CUBLAS_STATUS_EXECUTION_FAILED;
}

struct Matrix {
    const void *p;
    int type, trans, ld;
    long long stride; // elements, between the matrices of a batch
};

struct Product {
    int m, n, k, compute, batch;
    Matrix a, b, c;
    double alpha, beta;
    void *workspace;
    size_t workspace_size;
};

size_t size_of(int type) {
    return type == CUDA_R_32F ? 4 : 2;
}

float load(const void *p, size_t i, int type) {
    if (type == CUDA_R_32F)
        return ((const float *)p)[i];
    return type == CUDA_R_16F ? __half2float(((const __half *)p)[i]) : __bfloat162float(((const __nv_bfloat16 *)p)[i]);
}

void store(void *p, size_t i, int type, float v) {
    if (type == CUDA_R_32F)
        ((float *)p)[i] = v;
    else if (type == CUDA_R_16F)
        ((__half *)p)[i] = __float2half(v);
    else
        ((__nv_bfloat16 *)p)[i] = __float2bfloat16(v);
}

float element(const Matrix &x, const void *p, int row, int column) {
    const size_t i = x.trans == CUBLAS_OP_N ? (size_t)row + (size_t)column * (size_t)x.ld : (size_t)column + (size_t)row * (size_t)x.ld;
    return load(p, i, x.type);
}

// Scribbled over: finds who shares the workspace, or has freed it.
void use_workspace(const Product &g) {
    char *w = (char *)cuemu_untag(g.workspace);
    for (size_t i = 0; w && i < g.workspace_size && i < 65536; i++)
        w[i] = (char)0xff;
}

// Rows i to i + TILE of op(A), those that there are, as [k][TILE].
enum { TILE = 32 };
void load_rows(const Product &g, const void *a, int i, std::vector<float> &rows) {
    for (int l = 0; l < g.k; l++)
        for (int t = 0; t < TILE && i + t < g.m; t++)
            rows[(size_t)l * TILE + (size_t)t] = element(g.a, a, i + t, l);
}

// Each sum in the order of k, TILE of them side by side.
void dot_rows(const float *rows, const float *column, int k, float *s) {
    for (int t = 0; t < TILE; t++)
        s[t] = 0;
    for (int l = 0; l < k; l++)
        for (int t = 0; t < TILE; t++)
            s[t] += rows[(size_t)l * TILE + (size_t)t] * column[l];
}

void multiply(const Product &g, const void *a, const void *b, void *c) {
    std::vector<float> columns((size_t)g.k * (size_t)g.n), rows((size_t)g.k * TILE);
    for (int j = 0; j < g.n; j++)
        for (int l = 0; l < g.k; l++)
            columns[(size_t)j * (size_t)g.k + (size_t)l] = element(g.b, b, l, j);
    for (int i = 0; i < g.m; i += TILE) {
        load_rows(g, a, i, rows);
        for (int j = 0; j < g.n; j++) {
            float s[TILE];
            dot_rows(rows.data(), columns.data() + (size_t)j * (size_t)g.k, g.k, s);
            for (int t = 0; t < TILE && i + t < g.m; t++) {
                const size_t at = (size_t)(i + t) + (size_t)j * (size_t)g.c.ld;
                float v = s[t] * (float)g.alpha;
                if (g.beta != 0) // beta 0: C is not read, it may hold NaN
                    v += (float)g.beta * load(c, at, g.c.type);
                store(c, at, g.c.type, v);
            }
        }
    }
}

size_t bytes_of(const Matrix &x, int rows, int columns, int batch) {
    if (rows <= 0 || columns <= 0 || batch <= 0)
        return 0;
    return ((size_t)x.ld * (size_t)(columns - 1) + (size_t)rows + (size_t)(batch - 1) * (size_t)x.stride) * size_of(x.type);
}

std::vector<cuemu_operand> operands_of(const Product &g) {
    const bool at = g.a.trans != CUBLAS_OP_N, bt = g.b.trans != CUBLAS_OP_N;
    std::vector<cuemu_operand> o = {{g.a.p, bytes_of(g.a, at ? g.k : g.m, at ? g.m : g.k, g.batch), 0},
                                    {g.b.p, bytes_of(g.b, bt ? g.n : g.k, bt ? g.k : g.n, g.batch), 0},
                                    {g.c.p, bytes_of(g.c, g.m, g.n, g.batch), 1}};
    if (g.workspace)
        o.push_back({g.workspace, g.workspace_size, 1});
    return o;
}

bool live(const std::vector<cuemu_operand> &operands) {
    for (const cuemu_operand &o : operands)
        if (!cuemu_is_live(o.pointer, o.bytes))
            return false;
    return true;
}

void run_product(void *data) {
    Product g;
    memcpy(&g, data, sizeof g);
    if (!live(operands_of(g))) {
        cuemu_async_error(CUDA_ERROR_ILLEGAL_ADDRESS, "cuBLAS: an operand or the workspace is no longer live memory");
        return;
    }
    use_workspace(g);
    const char *a = (const char *)cuemu_untag(g.a.p), *b = (const char *)cuemu_untag(g.b.p);
    char *c = (char *)cuemu_untag(g.c.p);
    for (int i = 0; i < g.batch; i++)
        multiply(g, a + (size_t)(i * g.a.stride) * size_of(g.a.type), b + (size_t)(i * g.b.stride) * size_of(g.b.type),
                 c + (size_t)(i * g.c.stride) * size_of(g.c.type));
}

bool types_fit(int a, int b, int c, int compute) {
    if (compute == CUBLAS_COMPUTE_16F)
        return a == CUDA_R_16F && b == CUDA_R_16F && c == CUDA_R_16F;
    if (compute == CUBLAS_COMPUTE_32F_FAST_TF32)
        return a == CUDA_R_32F && b == CUDA_R_32F && c == CUDA_R_32F;
    return compute == CUBLAS_COMPUTE_32F && a == b && (c == CUDA_R_32F || c == a);
}

int check(const Product &g) {
    const int a_rows = g.a.trans != CUBLAS_OP_N ? g.k : g.m, b_rows = g.b.trans != CUBLAS_OP_N ? g.n : g.k;
    if (g.m < 0 || g.n < 0 || g.k < 0 || g.batch < 0 || g.a.ld < a_rows || g.b.ld < b_rows || g.c.ld < g.m)
        return CUBLAS_STATUS_INVALID_VALUE;
    return types_fit(g.a.type, g.b.type, g.c.type, g.compute) ? 0 : CUBLAS_STATUS_NOT_SUPPORTED;
}

// The type of alpha and beta follows the compute type. They are read at the call, so a graph keeps their values.
double scalar(const void *p, int compute) {
    return compute == CUBLAS_COMPUTE_16F ? __half2float(*(const __half *)p) : *(const float *)p;
}

int launch(cublasHandle_t h, Product &g, const char *name) {
    if (!h)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (int code = check(g))
        return code;
    if (!h->workspace && cuemu_is_capturing(h->stream)) // the real one would allocate inside the graph
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (!g.m || !g.n || !g.batch)
        return 0;
    g.workspace = h->workspace;
    g.workspace_size = h->workspace_size;
    const std::vector<cuemu_operand> o = operands_of(g);
    if (!live(o)) // the real one fails late, with an illegal address
        return CUBLAS_STATUS_EXECUTION_FAILED;
    return cuemu_enqueue(h->stream, name, run_product, &g, sizeof g, o.data(), (int)o.size()) ? CUBLAS_STATUS_EXECUTION_FAILED : 0;
}
} // namespace

EXPORT cublasCreate_v2(cublasHandle_t *h) {
    ENTER(cublasCreate);
    *h = new cublasContext{};
    cuemu_track_handle(1);
    return 0;
}

EXPORT cublasDestroy_v2(cublasHandle_t h) {
    int code;
    cuemu_enter("cublasDestroy", &code);
    delete h;
    cuemu_track_handle(-1);
    return code ? status_of(code) : 0;
}

EXPORT cublasSetStream_v2(cublasHandle_t h, CUstream s) { // documented: it resets the workspace
    ENTER(cublasSetStream);
    h->stream = s;
    h->workspace = nullptr;
    h->workspace_size = 0;
    return 0;
}

EXPORT cublasSetWorkspace_v2(cublasHandle_t h, void *p, size_t n) {
    ENTER(cublasSetWorkspace);
    if (p && (((uint64_t)p & 255) || !cuemu_is_live(p, n)))
        return CUBLAS_STATUS_INVALID_VALUE;
    h->workspace = p;
    h->workspace_size = n;
    return 0;
}

EXPORT cublasSetPointerMode_v2(cublasHandle_t, cublasPointerMode_t mode) {
    ENTER(cublasSetPointerMode);
    return mode == CUBLAS_POINTER_MODE_HOST ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

EXPORT cublasGemmStridedBatchedEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha,
                                  const void *a, cudaDataType at, int lda, long long sa, const void *b, cudaDataType bt, int ldb,
                                  long long sb, const void *beta, void *c, cudaDataType ct, int ldc, long long sc, int batch,
                                  cublasComputeType_t compute, cublasGemmAlgo_t) {
    ENTER(cublasGemmStridedBatchedEx);
    Product g{m,
              n,
              k,
              compute,
              batch,
              {a, at, ta, lda, sa},
              {b, bt, tb, ldb, sb},
              {c, ct, CUBLAS_OP_N, ldc, sc},
              scalar(alpha, compute),
              scalar(beta, compute),
              nullptr,
              0};
    return launch(h, g, "gemmStridedBatchedEx");
}

EXPORT cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha, const void *a,
                    cudaDataType at, int lda, const void *b, cudaDataType bt, int ldb, const void *beta, void *c, cudaDataType ct, int ldc,
                    cublasComputeType_t compute, cublasGemmAlgo_t) {
    ENTER(cublasGemmEx);
    Product g{m,
              n,
              k,
              compute,
              1,
              {a, at, ta, lda, 0},
              {b, bt, tb, ldb, 0},
              {c, ct, CUBLAS_OP_N, ldc, 0},
              scalar(alpha, compute),
              scalar(beta, compute),
              nullptr,
              0};
    return launch(h, g, "gemmEx");
}

// The parameters of groups are arrays of the host, read at the call; the arrays of pointers are the device's, read when the work runs.
namespace {
enum { MAX_GROUPS = 64 };
struct Grouped {
    const void *const *a;
    const void *const *b;
    void *const *c;
    int groups;
    Product group[MAX_GROUPS]; // batch: the group's size
};

void run_grouped(void *data) {
    const Grouped *q = (const Grouped *)data;
    const void *const *a = (const void *const *)cuemu_untag(q->a), *const *b = (const void *const *)cuemu_untag(q->b);
    void *const *c = (void *const *)cuemu_untag(q->c);
    size_t at = 0;
    for (int i = 0; i < q->groups; i++)
        for (int j = 0; j < q->group[i].batch; j++, at++)
            if (q->group[i].m && q->group[i].n)
                multiply(q->group[i], (const void *)cuemu_untag(a[at]), (const void *)cuemu_untag(b[at]), (void *)cuemu_untag(c[at]));
}
} // namespace

EXPORT cublasGemmGroupedBatchedEx(cublasHandle_t h, const cublasOperation_t *ta, const cublasOperation_t *tb, const int *m, const int *n,
                                  const int *k, const void *alpha, const void *const *a, cudaDataType at, const int *lda,
                                  const void *const *b, cudaDataType bt, const int *ldb, const void *beta, void *const *c, cudaDataType ct,
                                  const int *ldc, int groups, const int *sizes, cublasComputeType_t compute) {
    ENTER(cublasGemmGroupedBatchedEx);
    if (groups > MAX_GROUPS || compute == CUBLAS_COMPUTE_16F || at != ct) // A, B and C share one type there
        return CUBLAS_STATUS_NOT_SUPPORTED;
    Grouped q{a, b, c, groups, {}};
    size_t total = 0;
    for (int i = 0; i < groups; i++) {
        q.group[i] = Product{m[i],
                             n[i],
                             k[i],
                             compute,
                             sizes[i],
                             {nullptr, at, ta[i], lda[i], 0},
                             {nullptr, bt, tb[i], ldb[i], 0},
                             {nullptr, ct, CUBLAS_OP_N, ldc[i], 0},
                             ((const float *)alpha)[i],
                             ((const float *)beta)[i],
                             nullptr,
                             0};
        if (int code = check(q.group[i]))
            return code;
        total += (size_t)sizes[i];
    }
    const std::vector<cuemu_operand> o = {{a, total * 8, 0}, {b, total * 8, 0}, {c, total * 8, 0}};
    if (!live(o))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    return cuemu_enqueue(h->stream, "gemmGroupedBatchedEx", run_grouped, &q, sizeof q, o.data(), (int)o.size())
               ? CUBLAS_STATUS_EXECUTION_FAILED
               : 0;
}
