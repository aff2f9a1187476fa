/* test.h: what every C test includes. A test that needs the reference folder or the fetched model calls the matching function below, which skips it by name
 * (and fails it with CI=true) where they are missing. */
#ifndef WEIR_TEST_H
#define WEIR_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* WEIR_TEST=NAME runs one test of a program (a pattern: * and ? count). */
__attribute__((constructor)) static void weir_test_choose(void) {
    const char *name = getenv("WEIR_TEST");
    if (name)
        cmocka_set_test_filter(name);
}

/* Skips the running test: prints "SKIP reason", which the summary of scripts/test repeats. With CI=true a missing thing is a failure. */
#define weir_test_skip(...)                                                                                                                \
    do {                                                                                                                                   \
        const char *ci_ = getenv("CI");                                                                                                    \
        printf("SKIP %s: ", __func__);                                                                                                     \
        printf(__VA_ARGS__);                                                                                                               \
        printf("\n");                                                                                                                      \
        if (ci_ && strcmp(ci_, "true") == 0)                                                                                               \
            fail_msg("needed with CI=true");                                                                                               \
        skip();                                                                                                                            \
    } while (0)

/* Skips for a thing that this machine cannot have (a processor's instruction set): no failure with CI=true. */
#define weir_test_skip_machine(...)                                                                                                        \
    do {                                                                                                                                   \
        printf("SKIP %s: ", __func__);                                                                                                     \
        printf(__VA_ARGS__);                                                                                                               \
        printf("\n");                                                                                                                      \
        skip();                                                                                                                            \
    } while (0)

/* Path of a file of the reference folder: ${WEIR_REFERENCE}, or shared/ beside the source tree. NULL if it is not there. */
static inline const char *weir_test_reference(const char *name) {
    static char path[4096];
    const char *folder = getenv("WEIR_REFERENCE");
    if (folder)
        snprintf(path, sizeof path, "%s/%s", folder, name);
    else
        snprintf(path, sizeof path, "%s/../shared/%s", WEIR_SOURCE_ROOT, name);
    return access(path, R_OK) == 0 ? path : NULL;
}

/* Path of the fetched SmolLM2 file, NULL if it is not there. */
static inline const char *weir_test_smollm2(void) {
    static char path[4096];
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (data && *data)
        snprintf(path, sizeof path, "%s/weir/models/smollm2.gguf", data);
    else
        snprintf(path, sizeof path, "%s/.local/share/weir/models/smollm2.gguf", home ? home : "");
    return access(path, R_OK) == 0 ? path : NULL;
}

#define weir_test_need(path, what)                                                                                                         \
    do {                                                                                                                                   \
        if (!(path))                                                                                                                       \
            weir_test_skip("%s is not there", what);                                                                                       \
    } while (0)

#endif
