/* request.c: a request of the generator: its options, its text, its end (generator.h). */
#include "generator.h"

#include <string.h>

/* ---- options ---- */

static int read_stops(weir__request *r, weir_cursor options, weir_error **error) {
    weir_cursor list;
    uint32_t n = 1;
    if (!weir_read_find(options, "stop", &list))
        return WEIR_OK;
    weir_cursor peek = list;
    enum weir_kind kind = weir_read_value(&peek).kind;
    if (kind == WEIR_NIL)
        return WEIR_OK;
    if (kind == WEIR_ARRAY)
        weir_read_array(&list, &n);
    if (n > WEIR_MAX_STOPS)
        return weir_fail(error, WEIR_EINVAL, "option \"stop\": %u strings, at most %d", n, WEIR_MAX_STOPS);
    for (uint32_t i = 0; i < n; i++) {
        weir__string *s = &r->stops[r->n_stops];
        if (!weir_read_bytes(&list, &s->data, &s->size) || s->size > WEIR_MAX_STOP_BYTES)
            return weir_fail(error, WEIR_EINVAL, "option \"stop\": wanted strings of at most %d bytes", WEIR_MAX_STOP_BYTES);
        if (s->size)
            r->n_stops++;
    }
    return WEIR_OK;
}

static int read_options(weir__request *r, weir_cursor o, weir_error **error) {
    bool ok = weir__sampling_read(o, &r->sample, error) && weir__option_int(o, "max_tokens", 0, INT32_MAX, &r->max_tokens, error) &&
              weir__option_int(o, "credit", 1, 1 << 20, &r->credit, error) && weir__option_bool(o, "ignore_end", &r->ignore_end, error);
    return ok ? read_stops(r, o, error) : WEIR_EINVAL;
}

static int read_biases(weir__generator *g, weir__request *r, weir_cursor o, weir_error **error) {
    if (!r->sample.biases)
        return WEIR_OK;
    r->bias = weir__alloc(g->system, (size_t)r->sample.biases * sizeof *r->bias);
    if (!r->bias)
        return weir_fail(error, WEIR_ENOMEM, "generate: no memory for %d biases", r->sample.biases);
    return weir__sampling_biases(o, weir__checkpoint_config(g->checkpoint)->vocab, &r->sample, r->bias, error);
}

int weir__request_new(weir__generator *g, const weir_message *m, weir__request **out, weir_error **error) {
    weir__request *r = weir__alloc(g->system, sizeof *r);
    if (!r)
        return weir_fail(error, WEIR_ENOMEM, "generate: no memory");
    r->credit = WEIR_CREDIT;
    r->owner = weir_message_from(m);
    r->body = weir_body_ref(weir_message_body(m));
    r->began = weir_now(g->system);
    int code = read_options(r, weir__options(r->body, 0), error);
    if (!code)
        code = read_biases(g, r, weir__options(r->body, 0), error);
    if (code) {
        weir_body_free(r->body);
        weir__free(g->system, r->bias);
        weir__free(g->system, r);
        return code;
    }
    r->id = ++g->count;
    if (g->tokenizer)
        weir__decoder_init(&r->decoder, g->system, g->tokenizer, r->stops, r->n_stops);
    weir__request **at = &g->requests;
    while (*at)
        at = &(*at)->next;
    *at = r;
    *out = r;
    return WEIR_OK;
}

void weir__request_free(weir__generator *g, weir__request *r) {
    for (weir__request **at = &g->requests; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            break;
        }
    for (uint32_t i = 0; i < g->n_in_pass; i++)
        if (g->in_pass[i] == r->id)
            g->in_pass[i] = 0;
    weir__ids_free(g->system, &r->prompt);
    weir__ids_free(g->system, &r->tokens);
    if (g->tokenizer)
        weir__decoder_fini(&r->decoder);
    weir_error_free(r->error);
    weir_body_free(r->body);
    weir__free(g->system, r->text);
    weir__free(g->system, r->bias);
    weir__free(g->system, r->logprobs);
    weir__free(g->system, r);
}

weir__request *weir__request_find(weir__generator *g, uint64_t id) {
    for (weir__request *r = g->requests; r; r = r->next)
        if (r->id == id)
            return r;
    return NULL;
}

bool weir__request_owner(const weir__generator *g, weir_address owner) {
    for (const weir__request *r = g->requests; r; r = r->next)
        if (r->owner == owner)
            return true;
    return false;
}

/* ---- text ---- */

static int append(weir_system *s, void **data, size_t *size, size_t *room, const void *from, size_t n) {
    if (*size + n > *room) {
        size_t more = (*size + n) * 2 + 32;
        void *p = weir__realloc(s, *data, more);
        if (!p)
            return WEIR_ENOMEM;
        *data = p;
        *room = more;
    }
    if (n)
        memcpy((char *)*data + *size, from, n);
    *size += n;
    return WEIR_OK;
}

static int take_text(weir__generator *g, weir__request *r) {
    weir__decoder *d = &r->decoder;
    if (!d->safe)
        return WEIR_OK;
    int code = append(g->system, (void **)&r->text, &r->text_size, &r->text_room, d->held, d->safe);
    if (!code)
        weir__decoder_take(d);
    r->ahead++;
    return code;
}

static int take_id(weir__generator *g, weir__request *r, int32_t token) {
    size_t bytes = r->tokens.size * 4, room = r->tokens.room * 4;
    int code = append(g->system, (void **)&r->tokens.data, &bytes, &room, &token, 4);
    r->tokens.size = bytes / 4;
    r->tokens.room = room / 4;
    return code;
}

static int take_logprobs(weir__generator *g, weir__request *r, const weir_logprobs *l) {
    size_t bytes = r->n_logprobs * sizeof *l, room = r->logprobs_room * sizeof *l;
    int code = append(g->system, (void **)&r->logprobs, &bytes, &room, l, sizeof *l);
    r->n_logprobs = bytes / sizeof *l;
    r->logprobs_room = room / sizeof *l;
    return code;
}

int weir__request_finish(weir__generator *g, weir__request *r, const char *reason, weir_error **error) {
    int code = g->tokenizer ? weir__decoder_finish(&r->decoder, error) : WEIR_OK;
    if (!code && g->tokenizer)
        code = take_text(g, r);
    if (code)
        return code;
    r->reason = reason;
    r->state = WEIR__ENDED;
    return WEIR_OK;
}

int weir__request_token(weir__generator *g, weir__request *r, int32_t token, const weir_logprobs *logprobs, weir_error **error) {
    int64_t now = weir_now(g->system);
    r->first = r->first ? r->first : now;
    r->last = now;
    r->token = token;
    r->generated++;
    if (!r->ignore_end && g->tokenizer && weir__tokenizer_is_end(g->tokenizer, token))
        return weir__request_finish(g, r, "stop", error);
    int code = take_id(g, r, token);
    if (!code && logprobs)
        code = take_logprobs(g, r, logprobs);
    if (!code && g->tokenizer) {
        code = weir__decoder_feed(&r->decoder, token, error);
        if (!code)
            code = take_text(g, r);
    } else {
        r->ahead++;
    }
    if (code)
        return code;
    if (g->tokenizer && r->decoder.stopped)
        return weir__request_finish(g, r, "stop", error);
    if (r->max_tokens && r->generated >= r->max_tokens)
        return weir__request_finish(g, r, "length", error);
    r->state = r->ahead >= r->credit ? WEIR__STALLED : WEIR__READY;
    return WEIR_OK;
}

void weir__request_fail(weir__request *r, weir_error *error) {
    if (r->error || r->reason)
        weir_error_free(error);
    else
        r->error = error;
    r->state = WEIR__ENDED;
}

/* ---- the reader ---- */

/* [token, text, log-probability]; the text is str if it is valid UTF-8, else bin; nil without a tokeniser */
static void write_token(weir__generator *g, weir_writer *w, int32_t token, double logprob) {
    weir_write_int(w, token);
    if (g->tokenizer) {
        size_t size;
        const char *text = weir__tokenizer_bytes(g->tokenizer, token, true, &size);
        if (weir__utf8_valid(text, size) == size)
            weir_write_str(w, text, size);
        else
            weir_write_bin(w, text, size);
    } else {
        weir_write_nil(w);
    }
    weir_write_double(w, logprob);
}

static void write_logprobs(weir__generator *g, weir_writer *w, const weir__request *r) {
    weir__write_key(w, "logprobs");
    weir_write_array(w);
    for (size_t i = 0; i < r->n_logprobs; i++) {
        const weir_logprobs *l = &r->logprobs[i];
        weir_write_array(w);
        write_token(g, w, r->tokens.data[i], l->chosen);
        weir_write_array(w);
        for (int32_t k = 0; k < l->count; k++) {
            weir_write_array(w);
            write_token(g, w, l->token[k], l->best[k]);
            weir_write_close(w);
        }
        weir_write_close(w);
        weir_write_close(w);
    }
    weir_write_close(w);
}

static weir_body *piece_body(weir__generator *g, weir__request *r) {
    weir_writer *w = weir_write_begin(g->system);
    weir_write_map(w);
    weir__write_key(w, "text");
    weir_write_str(w, r->text ? r->text : "", r->text_size);
    weir__write_key(w, "tokens");
    weir_write_bin(w, r->tokens.data ? (const void *)r->tokens.data : "", r->tokens.size * 4);
    if (r->sample.logprobs)
        write_logprobs(g, w, r);
    weir__write_key(w, "done");
    weir_write_bool(w, r->reason != NULL);
    if (r->reason) {
        weir__write_key(w, "reason");
        weir__write_key(w, r->reason);
        if (g->tokenizer && r->decoder.met) {
            weir__write_key(w, "stop");
            weir_write_str(w, r->decoder.met->data, r->decoder.met->size);
        }
        weir__write_key(w, "prompt_tokens");
        weir_write_int(w, r->prompt_tokens);
        weir__write_key(w, "generated");
        weir_write_int(w, r->generated);
        weir__write_key(w, "prefill_s");
        weir_write_double(w, (double)(r->first - r->began) * 1e-9);
        weir__write_key(w, "decode_s");
        weir_write_double(w, (double)(r->last - r->first) * 1e-9);
    }
    weir_write_close(w);
    return weir_write_end(w);
}

bool weir__request_deliver(weir_actor *self, weir__request *r) {
    weir__generator *g = weir_state(self);
    if (!r->reading || (r->state != WEIR__ENDED && !r->text_size && (g->tokenizer || !r->tokens.size)))
        return false;
    r->reading = false;
    if (r->error) {
        weir_answer_error(self, r->reader, r->error);
        r->error = NULL;
        return true;
    }
    weir_body *b = piece_body(g, r);
    if (!b) {
        weir_answer_error(self, r->reader, weir_error_new(WEIR_ENOMEM, NULL, NULL, "generate: no memory for a piece"));
        return true;
    }
    r->text_size = r->tokens.size = r->n_logprobs = 0;
    r->ahead = 0;
    if (r->state == WEIR__STALLED)
        r->state = WEIR__READY;
    weir_answer(self, r->reader, b);
    return r->reason != NULL;
}
