/* encode.c: the generator's verbs tokenize and detokenize (generator.h). */
#include "generator.h"

static bool has_tokenizer(weir_actor *self, const weir_message *m) {
    weir__generator *g = weir_state(self);
    const weir_error *why = NULL;
    if (g->tokenizer)
        return true;
    weir__checkpoint_tokenizer(g->checkpoint, &why);
    weir_reply_error(self, m,
                     weir_error_new(WEIR_EUNSUPPORTED, NULL, NULL, "%s", why ? weir_error_text(why) : "the model's file has no tokeniser"));
    return false;
}

/* A long text is encoded by residency, on its stream; its answer goes to the caller as it comes. */
static void on_encoded(weir_actor *self, void *data, const weir_message *reply, const weir_error *error) {
    weir__generator *g = weir_state(self);
    weir__forwarded **at = &g->forwarded;
    while (*at && (*at)->id != (uint64_t)(uintptr_t)data)
        at = &(*at)->next;
    weir__forwarded *f = *at;
    if (!f)
        return;
    *at = f->next;
    if (error)
        weir_answer_error(self, f->to, weir_error_ref(error));
    else
        weir_answer(self, f->to, weir_body_ref(weir_message_body(reply)));
    weir__free(g->system, f);
}

bool weir__residency_there(const weir__generator *g, weir_error **error) {
    if (weir__actor(g->system, g->options.residency))
        return true;
    weir_fail(error, WEIR_EBUSY, "residency, which encodes long texts, restarts");
    return false;
}

static void forward_encode(weir_actor *self, const weir_message *m) {
    weir__generator *g = weir_state(self);
    weir_error *busy = NULL;
    if (!weir__residency_there(g, &busy)) {
        weir_reply_error(self, m, busy);
        return;
    }
    weir__forwarded *f = weir__alloc(g->system, sizeof *f);
    if (!f) {
        weir_reply_error(self, m, weir_error_new(WEIR_ENOMEM, NULL, NULL, "tokenize: no memory"));
        return;
    }
    *f = (weir__forwarded){g->forwarded, ++g->count, weir_defer(self, m)};
    g->forwarded = f;
    weir_body *b = weir_body_ref(weir_message_body(m));
    int code = weir_call(self, g->options.residency, g->encode, b, -1, on_encoded, (void *)(uintptr_t)f->id, NULL);
    if (code) {
        weir_error *error = weir_error_new(code, NULL, NULL, "tokenize: residency cannot be asked");
        weir_answer_error(self, f->to, error);
        g->forwarded = f->next;
        weir__free(g->system, f);
    }
}

void weir__on_tokenize(weir_actor *self, const weir_message *m) {
    weir__generator *g = weir_state(self);
    weir_error *error = NULL;
    bool special = false, bounds = false;
    weir__ids ids = {0};
    if (!has_tokenizer(self, m))
        return;
    weir_cursor text = weir_read(weir_message_body(m), NULL), options = weir__options(weir_message_body(m), 1);
    if (!weir__option_bool(options, "special", &special, &error) || !weir__option_bool(options, "bounds", &bounds, &error)) {
        weir_reply_error(self, m, error);
        return;
    }
    if (weir__encode_size(text) > WEIR_TOKENIZE_INLINE) {
        forward_encode(self, m);
        return;
    }
    int code = weir__encode_value(g->system, g->tokenizer, text, special, bounds, &ids, &error);
    if (code)
        weir_reply_error(self, m, error ? error : weir_error_new(code, NULL, NULL, "tokenize: %s", weir_code_text(code)));
    else
        weir__reply_made(self, m, weir_pack(g->system, "b", ids.data ? (const void *)ids.data : "", ids.size * sizeof *ids.data));
    weir__ids_free(g->system, &ids);
}

static int decode_all(weir__generator *g, const weir__ids *ids, bool special, weir__decoder *d, weir_error **error) {
    int code = WEIR_OK;
    for (size_t i = 0; i < ids->size && !code; i++) {
        size_t size;
        const char *bytes;
        if (!special) {
            code = weir__decoder_feed(d, ids->data[i], error);
            continue;
        }
        bytes = weir__tokenizer_bytes(g->tokenizer, ids->data[i], true, &size);
        code = weir__decoder_feed_bytes(d, bytes, size, error);
    }
    return code ? code : weir__decoder_finish(d, error);
}

void weir__on_detokenize(weir_actor *self, const weir_message *m) {
    weir__generator *g = weir_state(self);
    weir_error *error = NULL;
    bool special = false;
    weir__ids ids = {0};
    weir__decoder d;
    if (!has_tokenizer(self, m))
        return;
    weir__option_bool(weir__options(weir_message_body(m), 1), "special", &special, NULL);
    int code = weir__read_ids(g->system, weir_read(weir_message_body(m), NULL), (int32_t)weir__tokenizer_size(g->tokenizer), &ids, &error);
    weir__decoder_init(&d, g->system, g->tokenizer, NULL, 0);
    if (!code)
        code = decode_all(g, &ids, special, &d, &error);
    if (code)
        weir_reply_error(self, m, error ? error : weir_error_new(code, NULL, NULL, "detokenize: %s", weir_code_text(code)));
    else
        weir__reply_made(self, m, weir_pack(g->system, "S", d.held ? d.held : "", d.safe));
    weir__decoder_fini(&d);
    weir__ids_free(g->system, &ids);
}
