/* test_pointers.c: the pointers to a model's weights reach the device with the first pass that is granted them; when their copy, or anything else of that pass, fails,
 * they are not taken for there. Needs the emulated driver; the only test of this folder with actors. */
#include "../actors/model_fixture.h"
#include "../cuemu/cuemu_ctl.h"

#include <dlfcn.h>

enum { UNKNOWN = 999 }; /* CUDA_ERROR_UNKNOWN: no code that says that the context is lost */

static void (*inject)(const char *what, int nth, int code);

static void begin(weir_system *s, weir_model *m, generation *g) {
    static const int32_t prompt[] = {1, 17, 42};
    weir_generate_options o = {.tokens = prompt, .n_tokens = 3, .max_tokens = 3};
    *g = (generation){0};
    generate(s, m, &o, g);
}

static void a_first_pass_that_fails_is_followed_by_a_right_one(void **state) {
    (void)state;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    *(void **)&inject = dlsym(library, "cuemu_fail");
    generation right, g;
    for (int nth = 0; nth <= 3; nth++) {
        weir_system *s = new_system(WEIR_DRIVER_EV, 0);
        weir_model *m = load(s, &(weir_load_options){.device = "cuda"});
        if (nth) {
            inject("cuMemcpyHtoDAsync", nth, UNKNOWN);
            begin(s, m, &g);
            inject("cuMemcpyHtoDAsync", 0, 0);
            assert_int_equal(g.code, WEIR_EDEVICE);
        }
        begin(s, m, nth ? &g : &right);
        if (nth) {
            assert_int_equal(g.code, 0);
            assert_string_equal(g.text, right.text);
        }
        weir_model_free(m);
        weir_system_free(s);
    }
    dlclose(library);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_first_pass_that_fails_is_followed_by_a_right_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
