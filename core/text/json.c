/* json.c: the structure of a JSON text (json.h): white space, commas, objects, arrays, skipping, failures. What is inside of strings and numbers is
 * json_value.c's. */
#include "json.h"

#include "json_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void weir__json_init(weir__json *j, const char *source, const char *text, size_t size, weir_error **error) {
    *j = (weir__json){.source = source, .text = text, .size = size, .error = error, .due = true};
}

/* Line and character of byte `at`, from 1. */
static void place(const weir__json *j, size_t *line, size_t *column) {
    *line = *column = 1;
    for (size_t i = 0; i < j->at && i < j->size; i++) {
        if (j->text[i] == '\n')
            ++*line, *column = 1;
        else if (((unsigned char)j->text[i] & 0xC0) != 0x80)
            ++*column;
    }
}

bool weir__json_fail(weir__json *j, int code, const char *format, ...) {
    char what[512];
    size_t line, column;
    va_list arguments;
    if (j->code)
        return false;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    place(j, &line, &column);
    j->code = weir_fail(j->error, code, "%s: line %zu, column %zu: %s", j->source, line, column, what);
    return false;
}

static const char *kind_name(enum weir__json_kind kind) {
    static const char *const names[] = {"nothing", "an object", "an array", "a string", "a number", "a boolean", "null"};
    return names[kind];
}

/* What stands at the reader's place, for an error. */
static const char *found(const weir__json *j, char *to, size_t room) {
    char quoted[24];
    if (j->at >= j->size)
        return "the end of the text";
    size_t n = j->size - j->at < 8 ? j->size - j->at : 8;
    snprintf(to, room, "\"%s\"", weir__quote(quoted, sizeof quoted, j->text + j->at, n));
    return to;
}

bool weir__json_unexpected(weir__json *j, const char *wanted) {
    char text[32];
    return weir__json_fail(j, WEIR_EFORMAT, "found %s, wanted %s", found(j, text, sizeof text), wanted);
}

static void skip_space(weir__json *j) {
    while (j->at < j->size && (j->text[j->at] == ' ' || j->text[j->at] == '\n' || j->text[j->at] == '\t' || j->text[j->at] == '\r'))
        j->at++;
}

/* The byte at the reader's place; 0 at the end of the text, and for a zero byte, which is wrong everywhere outside of strings. */
static char byte_here(const weir__json *j) {
    return j->at < j->size ? j->text[j->at] : 0;
}

enum weir__json_kind weir__json_peek(weir__json *j) {
    if (j->code)
        return WEIR__JSON_NONE;
    skip_space(j);
    switch (j->due ? byte_here(j) : 0) {
    case '{':
        return WEIR__JSON_OBJECT;
    case '[':
        return WEIR__JSON_ARRAY;
    case '"':
        return WEIR__JSON_STRING;
    case 't':
    case 'f':
        return WEIR__JSON_BOOL;
    case 'n':
        return WEIR__JSON_NULL;
    case '-':
    case '0' ... '9':
        return WEIR__JSON_NUMBER;
    default:
        weir__json_unexpected(j, "a value");
        return WEIR__JSON_NONE;
    }
}

bool weir__json_want(weir__json *j, enum weir__json_kind kind) {
    char name[64];
    enum weir__json_kind here = weir__json_peek(j);
    if (here == kind)
        return true;
    if (j->key.data)
        return weir__json_fail(j, WEIR_EFORMAT, "\"%s\": found %s, wanted %s", weir__quote(name, sizeof name, j->key.data, j->key.size),
                               kind_name(here), kind_name(kind));
    return weir__json_fail(j, WEIR_EFORMAT, "found %s, wanted %s", kind_name(here), kind_name(kind));
}

static uint64_t level_bit(const weir__json *j) {
    return UINT64_C(1) << (j->depth - 1);
}

static bool enter(weir__json *j, bool object) {
    if (j->depth == WEIR_MAX_DEPTH)
        return weir__json_fail(j, WEIR_EDEPTH, "objects and arrays are nested more than %d deep", WEIR_MAX_DEPTH);
    j->at++;
    j->depth++;
    j->due = false;
    j->objects = object ? j->objects | level_bit(j) : j->objects & ~level_bit(j);
    j->filled &= ~level_bit(j);
    return true;
}

bool weir__json_object(weir__json *j) {
    return weir__json_want(j, WEIR__JSON_OBJECT) && enter(j, true);
}

bool weir__json_array(weir__json *j) {
    return weir__json_want(j, WEIR__JSON_ARRAY) && enter(j, false);
}

/* Moves to the next element of the innermost object or array. False: it ended and was left, or a failure. */
static bool advance(weir__json *j, char end) {
    skip_space(j);
    bool filled = j->filled & level_bit(j);
    if (byte_here(j) == end) {
        j->at++;
        j->depth--;
        j->key.data = NULL;
        return false;
    }
    if (filled) {
        if (byte_here(j) != ',')
            return weir__json_unexpected(j, end == '}' ? "\",\" or \"}\"" : "\",\" or \"]\"");
        j->at++;
        skip_space(j);
    }
    j->filled |= level_bit(j);
    return true;
}

/* Whether the caller may walk here; skips a value that it left unread. */
static bool may_advance(weir__json *j, bool object) {
    if (j->code || !weir__check(j->depth > 0, "no object or array was entered"))
        return false;
    if (!weir__check(!(j->objects & level_bit(j)) == !object, "an object is walked by weir__json_next_key, an array by weir__json_next"))
        return false;
    return !j->due || weir__json_skip(j);
}

bool weir__json_next_key(weir__json *j, weir__json_text *key) {
    *key = (weir__json_text){0};
    if (!may_advance(j, true) || !advance(j, '}'))
        return false;
    if (byte_here(j) != '"')
        return weir__json_unexpected(j, "a key");
    if (!weir__json_scan_string(j, key))
        return false;
    j->key = *key;
    skip_space(j);
    if (byte_here(j) != ':')
        return weir__json_unexpected(j, "\":\"");
    j->at++;
    return j->due = true;
}

bool weir__json_next(weir__json *j) {
    if (!may_advance(j, false) || !advance(j, ']'))
        return false;
    return j->due = true;
}

/* Reads one value, or enters it if it is an object or an array. */
static bool skip_step(weir__json *j) {
    weir__json_text text;
    bool truth;
    switch (weir__json_peek(j)) {
    case WEIR__JSON_OBJECT:
        return enter(j, true);
    case WEIR__JSON_ARRAY:
        return enter(j, false);
    case WEIR__JSON_STRING:
        return weir__json_string(j, &text);
    case WEIR__JSON_NUMBER:
        return weir__json_number(j, &text);
    case WEIR__JSON_BOOL:
        return weir__json_bool(j, &truth);
    case WEIR__JSON_NULL:
        return weir__json_null(j);
    default:
        return false;
    }
}

bool weir__json_skip(weir__json *j) {
    weir__json_text key;
    uint8_t depth = j->depth;
    bool ok = skip_step(j);
    while (ok && j->depth > depth)
        if (j->objects & level_bit(j) ? weir__json_next_key(j, &key) : weir__json_next(j))
            ok = skip_step(j);
        else
            ok = !j->code;
    return ok;
}

bool weir__json_slice(weir__json *j, weir__string *to) {
    *to = (weir__string){0};
    if (weir__json_peek(j) == WEIR__JSON_NONE)
        return false;
    size_t from = j->at;
    if (!weir__json_skip(j))
        return false;
    *to = (weir__string){j->text + from, j->at - from};
    return true;
}

/* Moves from before an object to before the last of its values with this key. The rest of the object is checked. */
static bool find_key(weir__json *j, const char *name, size_t size) {
    weir__json_text key;
    weir__json place = *j;
    bool found = false;
    if (weir__json_peek(j) != WEIR__JSON_OBJECT)
        return false;
    weir__json_object(j);
    while (weir__json_next_key(j, &key))
        if (weir__json_same(key, name, size)) {
            place = *j;
            found = true;
        }
    if (!found || j->code)
        return false;
    *j = place;
    return true;
}

bool weir__json_find(weir__json *j, const char *path) {
    for (;; path++) {
        size_t size = strcspn(path, ".");
        if (!find_key(j, path, size))
            return false;
        path += size;
        if (!*path)
            return true;
    }
}

static size_t field_index(weir__json_text key, const char *const *names, size_t n) {
    size_t i = 0;
    while (i < n && !weir__json_equal(key, names[i]))
        i++;
    return i;
}

int weir__json_fields(weir__json *j, const char *what, const char *const *names, size_t n, weir__json *at) {
    char name[64];
    weir__json_text key;
    uint64_t seen = 0;
    memset(at, 0, n * sizeof *at);
    weir__json_object(j);
    while (weir__json_next_key(j, &key)) {
        size_t i = field_index(key, names, n);
        weir__quote(name, sizeof name, key.data, key.size);
        if (i == n)
            weir__json_fail(j, WEIR_EUNSUPPORTED, "%s: setting \"%s\" is not supported", what, name);
        else if (seen & UINT64_C(1) << i)
            weir__json_fail(j, WEIR_EFORMAT, "%s: \"%s\" is there twice", what, name);
        else if (seen |= UINT64_C(1) << i, weir__json_peek(j) != WEIR__JSON_NULL)
            at[i] = *j;
    }
    return j->code;
}

int weir__json_finish(weir__json *j) {
    if (j->code)
        return j->code;
    if (j->due)
        weir__json_skip(j);
    skip_space(j);
    if (!j->code && j->depth == 0 && j->at < j->size)
        weir__json_unexpected(j, "the end of the text");
    if (!j->code && !weir__check(j->depth == 0, "an object or array is still open"))
        j->code = weir_fail(j->error, WEIR_EINVAL, "%s: an object or array is still open", j->source);
    return j->code;
}
