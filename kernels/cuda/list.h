/* list.h: the one list of device kernels: names, parameters, and how each is launched. Plain C: the .cu files take their prototypes from it, the host its names and
 * argument structs, so that neither can disagree. Knows no driver and no arithmetic.
 *
 * K(name, type,parameter, ...), at most 20 pairs. PTR(T) is a device pointer: T * in a .cu file, an integer of 64 bits on the host. Weights are `base` + `offset` as
 * in weir_weight. Parameters mean what the fields of the weir_k_* structs of the same name mean; activations are floats, the int8 ones do not exist here.
 *
 * A grid may be larger than what there is to do; "rows" in a grid are the most rows that a launch can have (of a tile, or of an output tile), and the step block
 * says how many there are. Blocks are one-dimensional; grids not given are 1. Shared memory is static but where a line says otherwise. */
#ifndef WEIR_KERNELS_CUDA_LIST_H
#define WEIR_KERNELS_CUDA_LIST_H

#define WEIR_CUDA_TYPES(T) T(f32) T(f16) T(bf16) T(q4_0) T(q4_1) T(q8_0) /* what weights can be on this device */

/* ---- geometry ---- */

#define WEIR_CUDA_DIV(a, b) (((a) + (b)-1) / (b)) /* rounded up */

#define WEIR_CUDA_TILE_THREADS 32
#define WEIR_CUDA_MAP_THREADS 256     /* kernels with one thread a value, and those with one block a row */
#define WEIR_CUDA_PRODUCT_THREADS 128 /* four warps, each a quarter of k */
#define WEIR_CUDA_PRODUCT_OUTPUTS 4   /* of a block of weir_product_T */
#define WEIR_CUDA_GATED_OUTPUTS 2     /* of a block of weir_gated_T: two rows of gate, two of up */
#define WEIR_CUDA_PRODUCT_ROWS 4      /* rows of x that share a pass over the weights */
#define WEIR_CUDA_STORE_THREADS 128   /* weir_rope_store: a warp a head */
#define WEIR_CUDA_STORE_HEADS 4       /* heads of a block of weir_rope_store */
#define WEIR_CUDA_ATTENTION_THREADS 128
#define WEIR_CUDA_ATTENTION_QUERIES 8 /* heads of one KV head that a block of weir_attention takes together */
#define WEIR_CUDA_ATTENTION_SPLIT 256 /* positions of a split: WEIR_ATTENTION_SPLIT */
#define WEIR_CUDA_ATTENTION_DIM 256   /* most dimensions of a head */
#define WEIR_CUDA_TILED_ROWS 16       /* rows of a block of weir_attention_tiled */
#define WEIR_CUDA_SAMPLE_THREADS 512
#define WEIR_CUDA_GEMM_ROWS 64 /* rows and outputs of a block of weir_gemm_* */
#define WEIR_CUDA_GEMM_OUTPUTS 64
#define WEIR_CUDA_GEMM_F32_THREADS 256
#define WEIR_CUDA_GEMM_F16_THREADS 128
#define WEIR_CUDA_PACK_THREADS 128

/* Floats of one (row, head, split) in the workspace of weir_attention: the values' sums, then the largest score and the sum of weights. */
#define WEIR_CUDA_PARTIAL_FLOATS(dim) ((dim) + 2)

/* Positions of a piece of K or V in shared memory, and the bytes of dynamic shared memory of weir_attention_tiled: below 48 KiB for every dim. */
#define WEIR_CUDA_TILED_POSITIONS(dim) ((dim) > 128 ? 16 : 32)
#define WEIR_CUDA_TILED_SHARED(dim)                                                                                                        \
    (4 * ((WEIR_CUDA_TILED_ROWS + WEIR_CUDA_TILED_POSITIONS(dim)) * ((dim) + 1) +                                                          \
          WEIR_CUDA_TILED_ROWS * (WEIR_CUDA_TILED_POSITIONS(dim) + 1)))

/* Bytes of weir_draw's workspace for one row of logits: a candidate (weight, id) for every token. */
#define WEIR_CUDA_SAMPLE_WORKSPACE(vocab) ((size_t)(vocab)*8)

/* ---- kernels of every weight type: the type's name is the last part of theirs ---- */

/* x[tile_first + r][0..k) = row token[r] of the table. Block MAP_THREADS; grid.x: rows. */
#define WEIR_CUDA_EMBED(K, T)                                                                                                              \
    K(weir_embed_##T, PTR(const weir_step), step, PTR(void *const), base, uint64_t, offset, int32_t, n, int32_t, k, PTR(float), x, float,  \
      scale)

/* y (+)= x W^T (+ bias). The same bits for a row and an output whatever else is in the launch. Block PRODUCT_THREADS; grid.x: n / PRODUCT_OUTPUTS, grid.y: rows /
 * PRODUCT_ROWS, both rounded up. */
#define WEIR_CUDA_PRODUCT(K, T)                                                                                                            \
    K(weir_product_##T, PTR(const weir_step), step, PTR(void *const), base, uint64_t, offset, int32_t, n, int32_t, k, PTR(const float), x, \
      int32_t, ldx, int32_t, rows, PTR(float), y, int32_t, ldy, int32_t, y_rows, int32_t, add, int32_t, bias, uint64_t, bias_offset)

/* weir_k_glu where gate and up are of one type. Block PRODUCT_THREADS; grid.x: n / GATED_OUTPUTS, grid.y: rows / PRODUCT_ROWS, both rounded up. */
#define WEIR_CUDA_GATED(K, T)                                                                                                              \
    K(weir_gated_##T, PTR(const weir_step), step, PTR(void *const), gate_base, uint64_t, gate_offset, PTR(void *const), up_base, uint64_t, \
      up_offset, int32_t, n, int32_t, k, PTR(const float), x, int32_t, ldx, PTR(float), y, int32_t, ldy, int32_t, activation, int32_t,     \
      bias, uint64_t, gate_bias, uint64_t, up_bias)

/* Rows first .. first + rows of an [n][k] matrix to out[rows][k], row-major. Rows from n (padded to 16) on must not be asked for. Block PACK_THREADS; grid.x: rows. */
#define WEIR_CUDA_DEQUANTISE(K, T)                                                                                                         \
    K(weir_dequantise_##T##_f16, PTR(void *const), base, uint64_t, offset, int32_t, n, int32_t, k, int32_t, first, PTR(__half), out)       \
    K(weir_dequantise_##T##_f32, PTR(void *const), base, uint64_t, offset, int32_t, n, int32_t, k, int32_t, first, PTR(float), out)

/* A file's row-major blocks to this device's layout (README.md), n padded to 16 with zero rows. Float types are made of any float type; a quantised type of itself
 * alone. The source may lie at any address. Block PACK_THREADS; grid.x: n padded to 16. */
#define WEIR_CUDA_PACK(K, T)                                                                                                               \
    K(weir_pack_##T, PTR(const void), source, int32_t, source_type, PTR(void *const), base, uint64_t, offset, int32_t, n, int32_t, k,      \
      int32_t, rope_heads, int32_t, rope_dim)

/* ---- kernels of KV blocks in f16 or f32: T, S = __half, f16 or float, f32 ---- */

/* Block STORE_THREADS; grid.x: rows, grid.y: (heads + kv_heads) / STORE_HEADS rounded up. norm_base 0: no norms. K and V both [block][kv_head][32][dim]. */
#define WEIR_CUDA_ROPE_STORE(K, T, S)                                                                                                      \
    K(weir_rope_store_##S, PTR(const weir_step), step, PTR(float), qkv, int32_t, ld, int32_t, k_offset, int32_t, v_offset, int32_t, heads, \
      int32_t, rope_dim, PTR(const float), table, PTR(T), kv_k, PTR(T), kv_v, int32_t, kv_heads, int32_t, dim, PTR(void *const),           \
      norm_base, uint64_t, q_norm, uint64_t, k_norm, float, norm_eps)

/* First half of attention for few rows (decode): every split of 256 absolute positions by itself, to partial[rows][heads][splits][PARTIAL_FLOATS(dim)]. dim at most
 * ATTENTION_DIM. Block ATTENTION_THREADS; grid.x: splits, grid.y: kv_heads * (heads / kv_heads / ATTENTION_QUERIES rounded up), grid.z: rows. */
#define WEIR_CUDA_ATTENTION(K, T, S)                                                                                                       \
    K(weir_attention_##S, PTR(const weir_step), step, PTR(const float), q, int32_t, ldq, int32_t, heads, float, scale, int32_t, splits,    \
      PTR(const T), kv_k, PTR(const T), kv_v, int32_t, kv_heads, int32_t, dim, PTR(float), partial, int32_t, window, float, softcap)

/* Attention of many rows (prefill), whole: no workspace, no merge. dim at most ATTENTION_DIM. Block ATTENTION_THREADS; grid.x: rows / TILED_ROWS rounded up, grid.y:
 * heads; dynamic shared memory TILED_SHARED(dim). */
#define WEIR_CUDA_ATTENTION_TILED(K, T, S)                                                                                                 \
    K(weir_attention_tiled_##S, PTR(const weir_step), step, PTR(const float), q, int32_t, ldq, int32_t, heads, float, scale, PTR(const T), \
      kv_k, PTR(const T), kv_v, int32_t, kv_heads, int32_t, dim, PTR(float), out, int32_t, window, float, softcap)

/* y (+)= x w^T (+ bias) of a row-major w [n][k] that weir_dequantise made: outputs n of some of a matrix's rows, y (and bias_offset) being those of the first. base 0:
 * no bias. Block GEMM_F32_THREADS or GEMM_F16_THREADS; grid.x: n / GEMM_OUTPUTS, grid.y: rows / GEMM_ROWS, both rounded up. */
#define WEIR_CUDA_GEMM(K, T, S)                                                                                                            \
    K(weir_gemm_##S, PTR(const weir_step), step, PTR(const T), x, int32_t, ldx, PTR(const T), w, int32_t, n, int32_t, k, int32_t, rows,    \
      PTR(float), y, int32_t, ldy, int32_t, y_rows, int32_t, add, PTR(void *const), bias_base, uint64_t, bias_offset)

#define WEIR_CUDA_EACH_TYPE(M, K) M(K, f32) M(K, f16) M(K, bf16) M(K, q4_0) M(K, q4_1) M(K, q8_0)
#define WEIR_CUDA_EACH_FLOAT(M, K) M(K, __half, f16) M(K, float, f32)

/* ---- the list ----
 *
 * weir_tile: block TILE_THREADS.
 * weir_gate: y = activation(gate) * up of two products that were made apart. Block MAP_THREADS; grid.x: n / MAP_THREADS rounded up, grid.y: rows.
 * weir_finish: y (+)= product (+ bias): what follows a cuBLAS product that could not go to y by itself. base 0: no bias. Grid as weir_gate.
 * weir_to_f16: x[rows][ldx], the first `width` of each row, to out[rows][width]. Grid as weir_gate, over width.
 * weir_rmsnorm: block MAP_THREADS; grid.x: rows.
 * weir_rope_table: block MAP_THREADS; grid.x: positions * dim / 2 / MAP_THREADS rounded up.
 * weir_attention_merge: second half of weir_attention. Block MAP_THREADS; grid.x: heads, grid.y: rows.
 * weir_softcap: block MAP_THREADS; grid.x: width / MAP_THREADS rounded up, grid.y: rows.
 * weir_draw: what weir_k_sample asks for: greedy, or temperature, top_k, top_p and min_p in the default order; what else a weir_sample can ask for is not looked at. workspace:
 *   SAMPLE_WORKSPACE(vocab) bytes for each row. Block SAMPLE_THREADS; grid.x: rows.
 * weir_pack_vector: block MAP_THREADS; grid.x: k / MAP_THREADS rounded up. */
#define WEIR_CUDA_KERNELS(K)                                                                                                               \
    K(weir_tile, PTR(weir_step), step, int32_t, outputs)                                                                                   \
    WEIR_CUDA_EACH_TYPE(WEIR_CUDA_EMBED, K)                                                                                                \
    WEIR_CUDA_EACH_TYPE(WEIR_CUDA_PRODUCT, K)                                                                                              \
    WEIR_CUDA_EACH_TYPE(WEIR_CUDA_GATED, K)                                                                                                \
    WEIR_CUDA_EACH_TYPE(WEIR_CUDA_DEQUANTISE, K)                                                                                           \
    WEIR_CUDA_EACH_TYPE(WEIR_CUDA_PACK, K)                                                                                                 \
    WEIR_CUDA_EACH_FLOAT(WEIR_CUDA_ROPE_STORE, K)                                                                                          \
    WEIR_CUDA_EACH_FLOAT(WEIR_CUDA_ATTENTION, K)                                                                                           \
    WEIR_CUDA_EACH_FLOAT(WEIR_CUDA_ATTENTION_TILED, K)                                                                                     \
    WEIR_CUDA_EACH_FLOAT(WEIR_CUDA_GEMM, K)                                                                                                \
    K(weir_gate, PTR(const weir_step), step, PTR(const float), gate, int32_t, ldg, PTR(const float), up, int32_t, ldu, int32_t, n,         \
      PTR(float), y, int32_t, ldy, int32_t, activation)                                                                                    \
    K(weir_finish, PTR(const weir_step), step, PTR(const float), product, int32_t, ldp, int32_t, n, int32_t, rows, PTR(float), y, int32_t, \
      ldy, int32_t, y_rows, int32_t, add, PTR(void *const), bias_base, uint64_t, bias_offset)                                              \
    K(weir_to_f16, PTR(const weir_step), step, PTR(const float), x, int32_t, ldx, int32_t, width, int32_t, rows, PTR(__half), out)         \
    K(weir_rmsnorm, PTR(const weir_step), step, PTR(const float), x, int32_t, x_rows, int32_t, width, PTR(void *const), weight_base,       \
      uint64_t, weight_offset, float, eps, PTR(float), y, int32_t, y_rows, int32_t, add)                                                   \
    K(weir_rope_table, PTR(float), out, int32_t, positions, int32_t, dim, PTR(const double), frequency, double, scale)                     \
    K(weir_attention_merge, PTR(const weir_step), step, int32_t, heads, int32_t, splits, int32_t, dim, PTR(const float), partial,          \
      PTR(float), out, int32_t, window)                                                                                                    \
    K(weir_softcap, PTR(const weir_step), step, PTR(float), x, int32_t, width, int32_t, rows, float, cap)                                  \
    K(weir_draw, PTR(const weir_step), step, PTR(const float), logits, int32_t, vocab, PTR(void), workspace)                               \
    K(weir_pack_vector, PTR(const void), source, int32_t, type, PTR(void *const), base, uint64_t, offset, int32_t, k, int32_t, rope_heads, \
      int32_t, rope_dim, float, add)

/* ---- tools: M(type,name) for every pair of a kernel ---- */

#define WEIR_K2(M, T, n) M(T, n)
#define WEIR_K4(M, T, n, ...) M(T, n) WEIR_K2(M, __VA_ARGS__)
#define WEIR_K6(M, T, n, ...) M(T, n) WEIR_K4(M, __VA_ARGS__)
#define WEIR_K8(M, T, n, ...) M(T, n) WEIR_K6(M, __VA_ARGS__)
#define WEIR_K10(M, T, n, ...) M(T, n) WEIR_K8(M, __VA_ARGS__)
#define WEIR_K12(M, T, n, ...) M(T, n) WEIR_K10(M, __VA_ARGS__)
#define WEIR_K14(M, T, n, ...) M(T, n) WEIR_K12(M, __VA_ARGS__)
#define WEIR_K16(M, T, n, ...) M(T, n) WEIR_K14(M, __VA_ARGS__)
#define WEIR_K18(M, T, n, ...) M(T, n) WEIR_K16(M, __VA_ARGS__)
#define WEIR_K20(M, T, n, ...) M(T, n) WEIR_K18(M, __VA_ARGS__)
#define WEIR_K22(M, T, n, ...) M(T, n) WEIR_K20(M, __VA_ARGS__)
#define WEIR_K24(M, T, n, ...) M(T, n) WEIR_K22(M, __VA_ARGS__)
#define WEIR_K26(M, T, n, ...) M(T, n) WEIR_K24(M, __VA_ARGS__)
#define WEIR_K28(M, T, n, ...) M(T, n) WEIR_K26(M, __VA_ARGS__)
#define WEIR_K30(M, T, n, ...) M(T, n) WEIR_K28(M, __VA_ARGS__)
#define WEIR_K32(M, T, n, ...) M(T, n) WEIR_K30(M, __VA_ARGS__)
#define WEIR_K34(M, T, n, ...) M(T, n) WEIR_K32(M, __VA_ARGS__)
#define WEIR_K36(M, T, n, ...) M(T, n) WEIR_K34(M, __VA_ARGS__)
#define WEIR_K38(M, T, n, ...) M(T, n) WEIR_K36(M, __VA_ARGS__)
#define WEIR_K40(M, T, n, ...) M(T, n) WEIR_K38(M, __VA_ARGS__)
#define WEIR_KNTH(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, \
                  a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38, a39, a40, N, ...)                                            \
    N
#define WEIR_CUDA_EACH(M, ...)                                                                                                             \
    WEIR_KNTH(__VA_ARGS__, WEIR_K40, x, WEIR_K38, x, WEIR_K36, x, WEIR_K34, x, WEIR_K32, x, WEIR_K30, x, WEIR_K28, x, WEIR_K26, x,         \
              WEIR_K24, x, WEIR_K22, x, WEIR_K20, x, WEIR_K18, x, WEIR_K16, x, WEIR_K14, x, WEIR_K12, x, WEIR_K10, x, WEIR_K8, x, WEIR_K6, \
              x, WEIR_K4, x, WEIR_K2, x)                                                                                                   \
    (M, __VA_ARGS__)

/* The parameter list of a prototype. */
#define WEIR_KTAIL_(x, ...) __VA_ARGS__
#define WEIR_KTAIL(...) WEIR_KTAIL_(__VA_ARGS__)
#define WEIR_KPARAM(T, n) , T n
#define WEIR_CUDA_PARAMETERS(...) WEIR_KTAIL(0 WEIR_CUDA_EACH(WEIR_KPARAM, __VA_ARGS__))

#endif
