/* onig.c: from Oniguruma's syntax (github.com/kkos/oniguruma/blob/master/doc/RE, Ruby's) to PCRE2's, where they differ:
 *
 * - a class may hold classes ([a[bc]] is a union) and intersections ([a-z&&[^aeiou]]);
 * - \s is White_Space (PCRE2's also has U+180E), \w is Alphabetic, marks, Nd and Pc, \h is a hexadecimal digit, \uHHHH a code point.
 *
 * A pattern that is one repeated class up to an end of line, C+$, is looked for only where a run of C begins: it would else be tried at each character of each run
 * of C, each try as long as the run. */
#include "index.h"
#include "regex.h"

#include <string.h>

/* The inside of classes. */
#define SPACE "\\t-\\r\\x{85}\\p{Z}"
#define WORD                                                                                                                               \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24B6}-\\x{24E9}\\x{1F130}-\\x{1F149}\\x{1F150}-\\x{1F169}\\x{1F170}-\\x{1F189}" /* Alphabetic, and marks */
#define HEX "0-9a-fA-F"
/* What \w matches besides outside of classes: Oniguruma has a table of its own for Latin-1. */
#define LATIN1_WORD "\\xB2\\xB3\\xB9\\xBC-\\xBE"

typedef struct translator {
    weir_system *system;
    const char *source;
    weir__string in;
    size_t at;
    char *out;
    size_t size, room;
    bool no_memory;
} translator;

static void put(translator *t, const char *text, size_t n) {
    t->no_memory = t->no_memory || weir__grow(t->system, &t->out, &t->room, t->size + n + 1, 1) != WEIR_OK;
    if (t->no_memory)
        return;
    memcpy(t->out + t->size, text, n);
    t->size += n;
    t->out[t->size] = 0;
}
static void puts_(translator *t, const char *text) {
    put(t, text, strlen(text));
}

static bool follows(const translator *t, const char *text) {
    size_t n = strlen(text);
    return t->in.size - t->at >= n && memcmp(t->in.data + t->at, text, n) == 0;
}

/* The class that an escape of one letter stands for; NULL: PCRE2 means the same. */
static const char *class_of(char c, bool *negated) {
    *negated = c >= 'A' && c <= 'Z';
    switch (c) {
    case 's':
    case 'S':
        return SPACE;
    case 'w':
    case 'W':
        return WORD;
    case 'h':
    case 'H':
        return HEX;
    default:
        return NULL;
    }
}

static bool is_hex4(const translator *t, size_t at) {
    bool all = t->in.size - at >= 4;
    for (size_t i = 0; all && i < 4; i++)
        all = memchr("0123456789abcdefABCDEF", t->in.data[at + i], 22) != NULL;
    return all;
}

/* An escape, at its backslash. `inside` a class a negated one of these stays as it is, which differs in U+180E only. */
static void escape(translator *t, bool inside) {
    bool negated = false;
    char c = t->at + 1 < t->in.size ? t->in.data[t->at + 1] : 0;
    const char *class = class_of(c, &negated);
    if (c == 'u' && is_hex4(t, t->at + 2)) {
        puts_(t, "\\x{");
        put(t, t->in.data + t->at + 2, 4);
        puts_(t, "}");
        t->at += 6;
        return;
    }
    if (class && !(inside && negated && c != 'H')) {
        puts_(t, inside ? "" : negated ? "[^" : "[");
        puts_(t, class);
        puts_(t, inside ? "" : c == 'w' || c == 'W' ? LATIN1_WORD "]" : "]");
    } else {
        put(t, t->in.data + t->at, t->in.size - t->at < 2 ? 1 : 2);
    }
    t->at += 2;
}

static int refuse(const translator *t, const char *what, weir_error **error) {
    char shown[128];
    return weir_fail(error, WEIR_EUNSUPPORTED, "%s: pattern \"%s\": %s", t->source,
                     weir__quote(shown, sizeof shown, t->in.data, t->in.size), what);
}

/* A nested class begins, at its bracket. Without ^ it is poured into the class around it; with ^ it must be the whole operand. */
static int open_nested(translator *t, size_t begin, bool *sealed, weir_error **error) {
    bool negated = follows(t, "[^");
    if (negated && t->size != begin + 1)
        return refuse(t, "a negated class beside others inside of a class is not supported", error);
    puts_(t, negated ? "^" : "");
    *sealed = negated;
    t->at += negated ? 2 : 1;
    return WEIR_OK;
}

/* One operand of a class as a class of its own, up to the bracket or the "&&" that ends it, which is passed over; *last: it was the bracket. */
static int operand(translator *t, bool negated, bool *last, weir_error **error) {
    size_t depth = 0, begin = t->size, first = t->at;
    bool sealed = false; /* a nested negated class was the operand */
    puts_(t, negated ? "[^" : "[");
    while (t->at < t->in.size) {
        char c = t->in.data[t->at];
        int code = WEIR_OK;
        bool ends = c == ']' && t->at != first, and = follows(t, "&&");
        if (depth == 0 && (ends || and)) {
            t->at += ends ? 1 : 2;
            *last = ends;
            puts_(t, "]");
            return WEIR_OK;
        }
        if (and || (sealed && depth == 0))
            return refuse(t, "a class that mixes nested classes so is not supported", error);
        if (c == '[' && !follows(t, "[:")) {
            code = open_nested(t, begin, &sealed, error);
            depth++;
        } else if (ends) {
            depth--;
            t->at++;
        } else if (c == '\\') {
            escape(t, true);
        } else {
            size_t n = follows(t, "[:") ? 2 : 1;
            put(t, t->in.data + t->at, n);
            t->at += n;
        }
        if (code)
            return code;
    }
    return refuse(t, "a class has no end", error);
}

/* A class, at its bracket. An intersection becomes lookaheads. */
static int class(translator *t, weir_error **error) {
    size_t begin = t->size;
    bool negated = follows(t, "[^"), last = false;
    t->at += negated ? 2 : 1;
    int code = operand(t, negated, &last, error);
    if (code || last)
        return code;
    if (negated)
        return refuse(t, "the complement of an intersection is not supported", error);
    static const char head[] = "(?:(?=";
    puts_(t, head);
    if (t->no_memory)
        return WEIR_OK;
    memmove(t->out + begin + sizeof head - 1, t->out + begin, t->size - begin - (sizeof head - 1));
    memcpy(t->out + begin, head, sizeof head - 1);
    puts_(t, ")");
    while (!last && !code) {
        puts_(t, "(?=");
        code = operand(t, false, &last, error);
        puts_(t, ")");
    }
    puts_(t, "[\\x{0}-\\x{10FFFF}])");
    return code;
}

static int translate(translator *t, size_t end, weir_error **error) {
    int code = WEIR_OK;
    while (t->at < end && !code && !t->no_memory) {
        if (t->in.data[t->at] == '\\')
            escape(t, false);
        else if (t->in.data[t->at] == '[')
            code = class(t, error);
        else
            put(t, t->in.data + t->at++, 1);
    }
    return code;
}

/* Whether the pattern is C+$: one escape or class, repeated up to an end of line. */
static bool is_run_to_end(translator *t, weir_error **error) {
    size_t n = t->in.size;
    bool candidate = n > 3 && memcmp(t->in.data + n - 2, "+$", 2) == 0 && (t->in.data[0] == '[' || (t->in.data[0] == '\\' && n == 4));
    if (!candidate)
        return false;
    if (t->in.data[0] == '[' && class(t, error) != WEIR_OK) {
        weir_error_free(*error);
        *error = NULL;
    }
    bool is = t->at == n - 2 || t->in.data[0] == '\\';
    t->at = t->size = 0;
    return is;
}

int weir__regex_translate(weir_system *s, weir__string pattern, const char *source, char **out, weir_error **error) {
    translator t = {.system = s, .source = source, .in = pattern};
    weir_error *ignored = NULL;
    put(&t, "", 0);
    int code = WEIR_OK;
    if (is_run_to_end(&t, &ignored)) {
        puts_(&t, "(?<!");
        code = translate(&t, pattern.size - 2, error);
        puts_(&t, ")");
        t.at = 0;
    }
    if (!code)
        code = translate(&t, pattern.size, error);
    if (!code && t.no_memory)
        code = weir_fail(error, WEIR_ENOMEM, "%s: pattern", source);
    if (code) {
        weir__free(s, t.out);
        return code;
    }
    *out = t.out;
    return WEIR_OK;
}
