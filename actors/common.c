/* common.c: what the spawning functions share, and the table of behaviours (actors.h). */
#include "actors.h"

int weir__actor_stream(weir_system *s, weir_address owner, weir__device *d, const char *name, weir__stream **out, weir_error **error) {
    int code = weir__stream_new(d, owner, name, out, error);
    if (code)
        weir_kill(s, owner);
    return code;
}

const weir_behaviour *const *weir__behaviours(void) {
    static const weir_behaviour *const all[] = {&weir__model_behaviour,   &weir__residency_behaviour, &weir__policy_behaviour,
                                                &weir__experts_behaviour, &weir__stepper_behaviour,   &weir__generator_behaviour,
                                                NULL};
    return all;
}
