/* experts.c: the expert provider. A model without routed experts has no banks, and this actor says so; the stream is there as for every provider. */
#include "actors.h"

typedef struct {
    weir__device *device;
    weir__stream *stream;
} experts;

static void on_banks(weir_actor *self, const weir_message *m) {
    weir__reply_made(self, m, weir_pack(weir_system_of(self), "i", INT64_C(0)));
}

static void on_device_lost(weir_actor *self, const weir_message *m) {
    weir__on_device_lost(self, m, ((experts *)weir_state(self))->device);
}

static void fini(weir_system *s, void *state) {
    experts *x = state;
    weir__stream_close(x->stream);
    weir__free(s, x);
}

static const weir_handler handlers[] = {{"banks", on_banks}, {"device_lost", on_device_lost}, {NULL, NULL}};
const weir_behaviour weir__experts_behaviour = {.name = "experts", .handlers = handlers, .fini = fini};

int weir__experts_spawn(weir_system *s, weir__device *d, weir_address *out, weir_error **error) {
    experts *x = weir__alloc(s, sizeof *x);
    if (!x)
        return weir_fail(error, WEIR_ENOMEM, "experts: no memory");
    x->device = d;
    int code = weir_spawn(s, &weir__experts_behaviour, x, NULL, out, error);
    return code ? code : weir__actor_stream(s, *out, d, "experts", &x->stream, error);
}
