/* dispatch.c: the levels by name, which of them run here, and their tables. Knows no arithmetic. */
#include "check.h"
#include "level.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <xmmintrin.h>
#endif

static const char *const names[WEIR_CPU_LEVELS] = {"generic", "avx2", "avx512", "vnni"};

const char *weir_cpu_level_name(int level) {
    return level >= 0 && level < WEIR_CPU_LEVELS ? names[level] : NULL;
}

int weir_cpu_level_find(const char *name) {
    for (int i = 0; i < WEIR_CPU_LEVELS; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    return -1;
}

/* vec: the level of everything on vec16; product: that of the integer products. What has no vectors in it is generic. */
#define TABLE(vec, product)                                                                                                                \
    {                                                                                                                                      \
        {                                                                                                                                  \
            [WEIR_K_tile] = weir__tile_generic,                                                                                            \
            [WEIR_K_embed] = weir__embed_generic,                                                                                          \
            [WEIR_K_rmsnorm] = weir__rmsnorm_##vec,                                                                                        \
            [WEIR_K_matmul] = weir__matmul_##product,                                                                                      \
            [WEIR_K_glu] = weir__glu_##product,                                                                                            \
            [WEIR_K_rope_table] = weir__rope_table_generic,                                                                                \
            [WEIR_K_rope_store] = weir__rope_store_##vec,                                                                                  \
            [WEIR_K_attention] = weir__attention_##vec,                                                                                    \
            [WEIR_K_attention_merge] = weir__attention_merge_##vec,                                                                        \
            [WEIR_K_softcap] = weir__softcap_##vec,                                                                                        \
            [WEIR_K_sample] = weir__sample_##vec,                                                                                          \
            [WEIR_K_pack] = weir__pack_generic,                                                                                            \
            [WEIR_K_pack_vector] = weir__pack_vector_generic,                                                                              \
        },                                                                                                                                 \
            weir__cpu_check                                                                                                                \
    }

static const weir_cpu_table tables[WEIR_CPU_LEVELS] = {
    [WEIR_CPU_GENERIC] = TABLE(generic, generic),
#ifdef WEIR_HAS_avx2
    [WEIR_CPU_AVX2] = TABLE(avx2, avx2),
#endif
#ifdef WEIR_HAS_avx512
    [WEIR_CPU_AVX512] = TABLE(avx512, avx512),
#endif
#ifdef WEIR_HAS_vnni
    [WEIR_CPU_VNNI] = TABLE(avx512, vnni),
#endif
};

/* The compiler's support library asks the processor and, for the registers, the operating system. */
static bool processor_has(int level) {
#if defined(__x86_64__)
    unsigned a, b, c = 0, d;
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512dq");
    switch (level) {
    case WEIR_CPU_AVX2:
        return avx2;
    case WEIR_CPU_AVX512:
        return avx512;
    case WEIR_CPU_VNNI:
        return avx512 && __builtin_cpu_supports("avx512vnni");
    }
#endif
    return level == WEIR_CPU_GENERIC;
}

bool weir_cpu_level_runs(int level) {
    return level >= 0 && level < WEIR_CPU_LEVELS && tables[level].check && processor_has(level);
}

int weir_cpu_level_best(void) {
    int level = WEIR_CPU_LEVELS - 1;
    while (!weir_cpu_level_runs(level))
        level--;
    return level;
}

const weir_cpu_table *weir_cpu_table_get(int level) {
    return weir_cpu_level_runs(level) ? &tables[level] : NULL;
}

void weir_cpu_set_mxcsr(void) {
#if defined(__x86_64__)
    _mm_setcsr(0x1f80); /* all exceptions masked, round to nearest even, denormals kept */
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(UINT64_C(0)));
#endif
}
