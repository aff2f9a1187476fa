/* stories_fixture.h: stories260K, converted once a program, where the reference folder has it; else the small llama of tests/data. */
#ifndef STORIES_FIXTURE_H
#define STORIES_FIXTURE_H

#include "model_fixture.h"

#include "../../core/model/llama2c.h"

static char stories_file[64];

static inline void remove_stories(void) {
    if (stories_file[0])
        unlink(stories_file);
}

static inline bool has_stories(void) {
    return weir_test_reference("models/stories260K/stories260K.bin") != NULL;
}

static inline const char *stories(void) {
    if (!has_stories())
        return LLAMA;
    if (stories_file[0])
        return stories_file;
    weir_system *s = new_system(WEIR_DRIVER_EV, 0);
    weir_error *error = NULL;
    snprintf(stories_file, sizeof stories_file, "/tmp/weir-stories-%d.gguf", (int)getpid());
    must(weir__llama2c_convert(s, weir_test_reference("models/stories260K/stories260K.bin"), NULL, stories_file, &error), error);
    weir_system_free(s);
    atexit(remove_stories);
    return stories_file;
}

#endif
