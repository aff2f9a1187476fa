/* test_bits_models.c: the logits of every family (in both formats) and every weight type are the same bits whatever the threads, the tile, the batch, the
 * splitting into passes and the instruction set; with integer and with float activations. The models are the reference folder's small ones. */
#include "bits_fixture.h"

static int32_t tokens[96];

static const char *const families[] = {"llama", "llama-tied", "llama-rope3", "llama-yarn", "llama-linear", "qwen2",
                                       "qwen3", "mistral",    "phi3",        "gemma2",     "gemma2-b"};
static const char *const quants[] = {"q4_0",   "q4_1",   "q5_0", "q5_1",   "q8_0",   "q2_k", "q3_k_m",
                                     "q4_k_m", "q5_k_m", "q6_k", "iq4_nl", "iq4_xs", "f16",  "bf16"};
enum { FAMILIES = sizeof families / sizeof *families, QUANTS = sizeof quants / sizeof *quants };

/* One axis at a time. */
static const setting axes[] = {{.threads = 1},
                               {.threads = 3},
                               {.threads = 2, .tile = 1},
                               {.threads = 2, .tile = 7},
                               {.threads = 2, .tile = 64},
                               {.threads = 2, .batch = true},
                               {.threads = 2, .chunk = 13},
                               {.threads = 2, .chunk = 1},
                               {.threads = 2, .level = "generic"},
                               {.threads = 2, .level = "avx2"},
                               {.threads = 2, .level = "avx512"},
                               {.threads = 2, .level = "vnni"}};

static bool sanitized(void) {
    const char *by = getenv("WEIR_SANITIZED");
    return by && *by;
}

/* Under sanitizers the quick half of the axes. */
static void all_axes(bool activations_f32, const char *quant) {
    logits_under(&(setting){.threads = 2, .activations_f32 = activations_f32, .quant = quant, .context = 512}, &base_logits, &base_bytes);
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i += sanitized() ? 2 : 1) {
        setting s = axes[i];
        s.activations_f32 = activations_f32;
        s.quant = quant;
        s.context = 512;
        if (!s.level || weir_cpu_level_runs(weir_cpu_level_find(s.level)))
            same_bits(&s);
    }
    free(base_logits);
    base_logits = NULL;
}

static void need(const char *name) {
    model_path = weir_test_reference(name);
    weir_test_need(model_path, name);
    ids = tokens;
    positions = sizeof tokens / sizeof *tokens / (sanitized() ? 4 : 1);
    for (size_t i = 0; i < positions; i++)
        tokens[i] = (int32_t)(i * 167 % 509);
}

static void family(void **state) {
    char name[96];
    snprintf(name, sizeof name, "models/families/%s/%s", (const char *)*state, "config.json");
    need(name);
    char folder[4096];
    snprintf(folder, sizeof folder, "%.*s", (int)(strlen(model_path) - strlen("/config.json")), model_path);
    model_path = folder;
    all_axes(false, NULL);
    all_axes(false, "q8_0");
}

static void quant(void **state) {
    char name[96];
    snprintf(name, sizeof name, "models/kquants/%s.gguf", (const char *)*state);
    need(name);
    all_axes(false, NULL);
}

static void quant_in_float(void **state) {
    char name[96];
    snprintf(name, sizeof name, "models/kquants/%s.gguf", (const char *)*state);
    need(name);
    all_axes(true, NULL);
}

int main(void) {
    static char names[FAMILIES + 2 * QUANTS][80];
    struct CMUnitTest tests[FAMILIES + 2 * QUANTS];
    size_t n = 0;
    for (size_t i = 0; i < FAMILIES; i++, n++) {
        snprintf(names[n], sizeof names[n], "logits_of_%s_are_the_same_bits", families[i]);
        tests[n] = (struct CMUnitTest){names[n], family, NULL, NULL, (void *)(uintptr_t)families[i]};
    }
    for (size_t i = 0; i < QUANTS; i++, n++) {
        snprintf(names[n], sizeof names[n], "logits_of_%s_are_the_same_bits", quants[i]);
        tests[n] = (struct CMUnitTest){names[n], quant, NULL, NULL, (void *)(uintptr_t)quants[i]};
    }
    for (size_t i = 0; i < QUANTS; i++, n++) {
        snprintf(names[n], sizeof names[n], "logits_of_%s_in_float_are_the_same_bits", quants[i]);
        tests[n] = (struct CMUnitTest){names[n], quant_in_float, NULL, NULL, (void *)(uintptr_t)quants[i]};
    }
    return cmocka_run_group_tests_name("bits of models", tests, NULL, NULL);
}
