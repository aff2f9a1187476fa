/* decoder.c: the streaming decoder: tokens in, whole characters out, stop strings held back. Knows no model and no request.
 *
 * `held` is text that is whole and valid, then at most three bytes of an incomplete character. Invalid input becomes U+FFFD when it comes in, one for each
 * maximal part that could begin a character (Unicode Standard, 3.9, "U+FFFD Substitution of Maximal Subparts"), so that stop strings and readers see
 * valid text only. */
#include "tokenizer.h"

#include <string.h>

static const char replacement[] = "\xEF\xBF\xBD";
enum { REPLACEMENT_SIZE = 3, MOST_INCOMPLETE = 3 };

void weir__decoder_init(weir__decoder *d, weir_system *s, const weir__tokenizer *t, const weir__string *stops, size_t n_stops) {
    *d = (weir__decoder){.system = s, .tokenizer = t, .stops = stops, .n_stops = n_stops};
    d->first = true;
}

void weir__decoder_fini(weir__decoder *d) {
    weir__free(d->system, d->held);
    d->held = NULL;
    d->held_size = d->held_room = d->safe = 0;
}

/* Bytes at the end that begin a character. */
static size_t incomplete(const char *text, size_t size) {
    for (size_t n = 1; n <= MOST_INCOMPLETE && n <= size; n++) {
        if (weir__utf8_step(text + size - n, n) == -1)
            return n;
    }
    return 0;
}

/* Appends a character; NULL: something that is none. */
static void put(weir__decoder *d, const char *character, size_t size) {
    bool drop = !character && d->continued;
    d->continued = false;
    if (drop)
        return;
    memcpy(d->held + d->held_size, character ? character : replacement, character ? size : REPLACEMENT_SIZE);
    d->held_size += character ? size : REPLACEMENT_SIZE;
}

/* Appends bytes to the text in `held`, which has room for them; what cannot become a character is replaced. `carry` is an incomplete character before them.
 * Returns how many bytes of `carry` are left over. */
static size_t append(weir__decoder *d, char carry[4], size_t n, const char *bytes, size_t size) {
    for (size_t i = 0; i < size; i++) {
        carry[n++] = bytes[i];
        for (int step; n > 0 && (step = weir__utf8_step(carry, n)) != -1;) {
            /* Without its last byte an invalid carry was a beginning; that part is replaced, the last byte looked at again. */
            size_t used = step > 0 || n == 1 ? n : n - 1;
            put(d, step > 0 ? carry : NULL, used);
            memmove(carry, carry + used, n - used);
            n -= used;
        }
    }
    return n;
}

enum match { MISS, PARTIAL, FULL };

/* How the text at p goes with the stop strings; *met is the one that is there. */
static enum match match(const weir__decoder *d, const char *p, size_t n, const weir__string **met) {
    enum match best = MISS;
    for (size_t i = 0; i < d->n_stops; i++) {
        weir__string stop = d->stops[i];
        size_t common = stop.size < n ? stop.size : n;
        if (stop.size == 0 || memcmp(stop.data, p, common) != 0)
            continue;
        if (common == stop.size) {
            *met = &d->stops[i];
            return FULL;
        }
        best = PARTIAL;
    }
    return best;
}

/* Moves `safe` up to the first place where a stop string is or may still come. It may begin where a character does. The one that begins first wins, so
 * that what is given out does not depend on how the text was cut into tokens. `end`: of the whole text in `held`; `last`: no more will come. */
static void find_stop(weir__decoder *d, size_t end, bool last) {
    while (d->safe < end && d->n_stops > 0) {
        enum match m = match(d, d->held + d->safe, end - d->safe, &d->met);
        if (m == FULL) {
            d->stopped = true;
            d->held_size = d->safe;
            return;
        }
        if (m == PARTIAL && !last)
            return;
        d->safe += (size_t)weir__utf8_step(d->held + d->safe, end - d->safe);
    }
    d->safe = end;
}

static int reserve(weir__decoder *d, size_t size, weir_error **error) {
    size_t most = d->held_size + REPLACEMENT_SIZE * (size + MOST_INCOMPLETE);
    if (size > WEIR_MAX_TEXT || d->held_size > WEIR_MAX_TEXT)
        return weir_fail(error, WEIR_ETOOBIG, "decoder: more than %u bytes", WEIR_MAX_TEXT);
    return weir__grow(d->system, &d->held, &d->held_room, most, 1) ? weir_fail(error, WEIR_ENOMEM, "decoder") : WEIR_OK;
}

int weir__decoder_feed_bytes(weir__decoder *d, const char *bytes, size_t size, weir_error **error) {
    if (d->stopped || size == 0)
        return WEIR_OK;
    int code = reserve(d, size, error);
    if (code)
        return code;
    char carry[4];
    size_t n = incomplete(d->held, d->held_size);
    d->held_size -= n;
    memcpy(carry, d->held + d->held_size, n);
    n = append(d, carry, n, bytes, size);
    size_t end = d->held_size;
    memcpy(d->held + end, carry, n);
    d->held_size += n;
    find_stop(d, end, false);
    return WEIR_OK;
}

static bool is_hidden(const weir__tokenizer *t, int32_t id) {
    return t->kinds[id] == WEIR__CONTROL || t->kinds[id] == WEIR__UNKNOWN;
}

/* The text of a token at this place: at the beginning without what encode put before the text. */
static int token_text(weir__decoder *d, int32_t id, weir__string *text, weir_error **error) {
    const weir__tokenizer *t = d->tokenizer;
    if (id < 0 || (size_t)id >= t->size)
        return weir_fail(error, WEIR_ETOKEN, "decoder: found token %d, wanted 0 to %zu", id, t->size - 1);
    *text = d->first && t->firsts ? t->firsts[id] : t->texts[id];
    for (uint32_t i = 0; d->first && i < t->strip_most && text->size >= t->strip.size && t->strip.size > 0 &&
                         memcmp(text->data, t->strip.data, t->strip.size) == 0;
         i++)
        *text = (weir__string){text->data + t->strip.size, text->size - t->strip.size};
    return WEIR_OK;
}

/* Whether a token ends the beginning of a text: control pieces do not; of others without text those that join with what follows, as WordPiece's "##". */
static bool is_text(const weir__decoder *d, int32_t id) {
    const weir__tokenizer *t = d->tokenizer;
    return t->texts[id].size > 0 || (t->firsts && !is_hidden(t, id));
}

/* What decoders say of neighbours: a space behind the last piece, a token that is repeated. */
static void join(weir__decoder *d, int32_t id, bool *space, bool *repeated) {
    const weir__tokenizer *t = d->tokenizer;
    *space = *repeated = false;
    if (is_hidden(t, id))
        return;
    weir__string piece = t->pieces[id], suffix = t->suffix;
    *space = d->gap;
    *repeated = t->repeats && d->last == id + 1;
    d->gap = suffix.size > 0 && piece.size >= suffix.size && memcmp(piece.data + piece.size - suffix.size, suffix.data, suffix.size) == 0;
    d->last = id + 1;
}

int weir__decoder_feed(weir__decoder *d, int32_t id, weir_error **error) {
    weir__string text;
    bool space, repeated;
    int code = token_text(d, id, &text, error);
    if (code)
        return code;
    if ((code = reserve(d, text.size + 1, error)))
        return code;
    join(d, id, &space, &repeated);
    if (repeated)
        return WEIR_OK;
    code = weir__decoder_feed_bytes(d, " ", space, error);
    if (!code)
        code = weir__decoder_feed_bytes(d, text.data, text.size, error);
    if (!code && is_text(d, id))
        d->first = false;
    return code;
}

int weir__decoder_context(weir__decoder *d, const int32_t *ids, size_t n, weir_error **error) {
    weir__string text;
    bool space, repeated;
    int code = WEIR_OK;
    for (size_t i = 0; i < n && !code; i++) {
        code = token_text(d, ids[i], &text, error);
        if (!code)
            code = reserve(d, text.size, error);
        if (code)
            break;
        memcpy(d->held + d->held_size, text.data, text.size);
        d->held_size += text.size;
        d->first &= !is_text(d, ids[i]);
        join(d, ids[i], &space, &repeated);
        size_t left = incomplete(d->held, d->held_size);
        memmove(d->held, d->held + d->held_size - left, left);
        d->held_size = left;
    }
    d->continued = d->held_size > 0;
    return code;
}

int weir__decoder_finish(weir__decoder *d, weir_error **error) {
    if (d->stopped)
        return WEIR_OK;
    int code = reserve(d, 0, error);
    if (code)
        return code;
    size_t n = incomplete(d->held, d->held_size);
    if (n > 0) {
        d->held_size -= n;
        put(d, NULL, n);
    }
    find_stop(d, d->held_size, true);
    return WEIR_OK;
}

void weir__decoder_take(weir__decoder *d) {
    if (d->safe == 0)
        return;
    memmove(d->held, d->held + d->safe, d->held_size - d->safe);
    d->held_size -= d->safe;
    d->safe = 0;
}
