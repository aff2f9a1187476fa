/* json_write.c: JSON texts in memory (json_write.h). */
#include "json_write.h"

#include "index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void weir__json_write_init(weir__json_writer *w, weir_system *s, int indent) {
    *w = (weir__json_writer){.system = s, .first = true, .indent = indent};
}

void weir__json_write_fini(weir__json_writer *w) {
    weir__free(w->system, w->text);
    *w = (weir__json_writer){0};
}

static void put(weir__json_writer *w, const char *bytes, size_t n) {
    if (w->code || weir__grow(w->system, &w->text, &w->room, w->size + n + 1, 1)) {
        w->code = w->code ? w->code : WEIR_ENOMEM;
        return;
    }
    memcpy(w->text + w->size, bytes, n);
    w->size += n;
    w->text[w->size] = 0;
}

static void line(weir__json_writer *w) {
    static const char spaces[] = "                                ";
    if (!w->indent)
        return;
    put(w, "\n", 1);
    for (int left = w->depth * w->indent; left > 0; left -= (int)sizeof spaces - 1)
        put(w, spaces, (size_t)(left < (int)sizeof spaces - 1 ? left : (int)sizeof spaces - 1));
}

/* Before an element or a key; what follows a key stands where it is. */
static void begin(weir__json_writer *w) {
    bool value = w->size > 0 && w->text[w->size - 1] == ':';
    if (value) {
        if (w->indent)
            put(w, " ", 1);
        return;
    }
    if (!w->first)
        put(w, ",", 1);
    if (w->depth > 0)
        line(w);
    w->first = false;
}

void weir__json_write_open(weir__json_writer *w, char bracket) {
    begin(w);
    put(w, &bracket, 1);
    w->depth++;
    w->first = true;
}

void weir__json_write_close(weir__json_writer *w, char bracket) {
    w->depth--;
    if (!w->first)
        line(w);
    put(w, &bracket, 1);
    w->first = false;
}

static void quoted(weir__json_writer *w, const char *text, size_t size) {
    put(w, "\"", 1);
    for (size_t i = 0, step; i < size; i += step) {
        unsigned char c = (unsigned char)text[i];
        char code[8];
        int n = weir__utf8_step(text + i, size - i);
        step = n > 0 ? (size_t)n : 1;
        if (n <= 0)
            put(w, "\xef\xbf\xbd", 3);
        else if (c == '"' || c == '\\')
            put(w, code, (size_t)snprintf(code, sizeof code, "\\%c", c));
        else if (c == '\n')
            put(w, "\\n", 2);
        else if (c < 32 || c == 127)
            put(w, code, (size_t)snprintf(code, sizeof code, "\\u%04x", c));
        else
            put(w, text + i, step);
    }
    put(w, "\"", 1);
}

void weir__json_write_key(weir__json_writer *w, const char *key, size_t size) {
    begin(w);
    quoted(w, key, size);
    put(w, ":", 1);
}

void weir__json_write_string(weir__json_writer *w, const char *text, size_t size) {
    begin(w);
    quoted(w, text, size);
}

void weir__json_write_int(weir__json_writer *w, int64_t v) {
    char text[24];
    begin(w);
    put(w, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)v));
}

void weir__json_write_real(weir__json_writer *w, double v) {
    char text[40];
    int digits = 1;
    do
        snprintf(text, sizeof text, "%.*g", digits, v);
    while (strtod(text, NULL) != v && ++digits <= 17);
    if (!strpbrk(text, ".e"))
        strcat(text, ".0");
    begin(w);
    put(w, text, strlen(text));
}

void weir__json_write_word(weir__json_writer *w, const char *word) {
    begin(w);
    put(w, word, strlen(word));
}
