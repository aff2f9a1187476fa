/* fuzz_decoder.c: any bytes in any pieces through the streaming decoder. What comes out is valid UTF-8, is the same however the input was cut, and holds no stop
 * string. Input: a byte for the number of stop strings, then their lengths and bytes, then the text; its own bytes say where it is cut. */
#include "../../core/text/text.h"

#include <stdlib.h>
#include <string.h>

static weir_system *s;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct output {
    char *data;
    size_t size;
} output;

static void take(weir__decoder *d, output *o) {
    if (weir__utf8_valid(d->held, d->safe) != d->safe)
        __builtin_trap();
    if (d->safe > 0)
        memcpy(o->data + o->size, d->held, d->safe);
    o->size += d->safe;
    weir__decoder_take(d);
}

/* Decodes text in pieces; step 0: all at once. */
static output decode(const char *text, size_t size, const weir__string *stops, size_t n_stops, unsigned step) {
    output o = {malloc(3 * size + 4), 0};
    weir__decoder d;
    weir__decoder_init(&d, s, NULL, stops, n_stops);
    for (size_t at = 0; at < size;) {
        size_t n = step ? 1 + ((unsigned char)text[at] * step) % 5 : size;
        n = n > size - at ? size - at : n;
        if (weir__decoder_feed_bytes(&d, text + at, n, NULL))
            __builtin_trap();
        take(&d, &o);
        at += n;
    }
    if (weir__decoder_finish(&d, NULL))
        __builtin_trap();
    take(&d, &o);
    weir__decoder_fini(&d);
    return o;
}

static bool contains(const output *o, weir__string stop) {
    for (size_t i = 0; stop.size > 0 && stop.size <= o->size && i <= o->size - stop.size; i++) {
        if (((unsigned char)o->data[i] & 0xC0) != 0x80 && memcmp(o->data + i, stop.data, stop.size) == 0)
            return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weir__string stops[4];
    size_t n_stops = 0;
    if (size == 0 || (!s && weir_system_new(NULL, &s, NULL)))
        return 0;
    size_t wanted = data[0] % 5, at = 1;
    for (; n_stops < wanted && at < size; n_stops++) {
        size_t n = data[at++] % 8;
        n = n > size - at ? size - at : n;
        stops[n_stops] = (weir__string){(const char *)data + at, n};
        at += n;
    }
    output whole = decode((const char *)data + at, size - at, stops, n_stops, 0);
    for (unsigned step = 1; step < 4; step++) {
        output cut = decode((const char *)data + at, size - at, stops, n_stops, step);
        if (cut.size != whole.size || memcmp(cut.data, whole.data, whole.size) != 0)
            __builtin_trap();
        free(cut.data);
    }
    for (size_t i = 0; i < n_stops; i++) {
        if (contains(&whole, stops[i]))
            __builtin_trap();
    }
    free(whole.data);
    return 0;
}
