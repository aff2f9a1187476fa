/* json.h: a pull reader of JSON (RFC 8259) over a text that is already in memory: no tree, no allocation, no recursion, linear. Knows no file and no schema.
 *
 * The reader stands before a value. Reading it (weir__json_string, _int, ...) moves behind it; an object or array is entered and walked:
 *
 *     weir__json j;
 *     weir__json_text key;
 *     weir__json_init(&j, "config.json", text, size, error);
 *     weir__json_object(&j);
 *     while (weir__json_next_key(&j, &key)) {
 *         if (weir__json_equal(key, "hidden_size"))
 *             weir__json_int(&j, &hidden);
 *         else if (weir__json_equal(key, "architectures"))
 *             for (weir__json_array(&j); weir__json_next(&j);)
 *                 weir__json_string(&j, &name);
 *     }
 *     return weir__json_finish(&j);
 *
 * - A value that the caller does not read is skipped by the next weir__json_next or weir__json_next_key. An object or array that was entered must be walked to
 *   its end.
 * - Failures stick: the first one sets *error (file, line, column, what was found, what was wanted) and j->code; from then on every function returns false
 *   and sets what it was to give to nothing, so that loops end and one look at j->code (or weir__json_finish) suffices.
 * - The struct is plain: a copy is a bookmark, and reading a copy does not move the original. A copy has a code of its own.
 * - Strict: UTF-8 without surrogates or overlong forms, no lone \uD800, no control characters in strings, no byte order mark, no trailing comma, no comment,
 *   no NaN; at most WEIR_MAX_DEPTH (64) objects and arrays in each other. \u0000 is allowed: strings have a size. Keys that are there twice are the
 *   caller's matter.
 * - Positions in errors count lines and characters from 1. */
#ifndef WEIR_TEXT_JSON_H
#define WEIR_TEXT_JSON_H

#include "text.h"

enum weir__json_kind {
    WEIR__JSON_NONE, /* no value here: a failure */
    WEIR__JSON_OBJECT,
    WEIR__JSON_ARRAY,
    WEIR__JSON_STRING,
    WEIR__JSON_NUMBER,
    WEIR__JSON_BOOL,
    WEIR__JSON_NULL,
};

/* What stands between a string's quotes, checked, escapes not resolved. Lies in the reader's text. */
typedef struct weir__json_text {
    const char *data;
    size_t size;
    bool escaped; /* has a backslash; without one these bytes are the string */
} weir__json_text;

typedef struct weir__json {
    const char *source; /* borrowed: the file's name for errors */
    const char *text;   /* borrowed */
    size_t size, at;
    weir_error **error;  /* the caller's, may be NULL */
    weir__json_text key; /* the key that was read last, for errors; data NULL: none */
    uint64_t objects;    /* a bit a level: it is an object */
    uint64_t filled;     /* a bit a level: an element was read */
    uint8_t depth;       /* objects and arrays that are open */
    bool due;            /* the next thing is a value */
    int code;            /* WEIR_OK, or the first failure: EFORMAT, EDEPTH */
} weir__json;

void weir__json_init(weir__json *j, const char *source, const char *text, size_t size, weir_error **error);

/* The kind of the value that comes next, without reading it. Only the first byte is looked at. */
enum weir__json_kind weir__json_peek(weir__json *j);

bool weir__json_object(weir__json *j); /* enters an object */
bool weir__json_array(weir__json *j);  /* enters an array */
/* In an object: reads the next key; the reader then stands before its value. False: the object ended and was left, or a failure. */
bool weir__json_next_key(weir__json *j, weir__json_text *key);
/* In an array: true if the reader stands before a further element. False: the array ended and was left, or a failure. */
bool weir__json_next(weir__json *j);

/* Reading a value of a wanted kind; another one is EFORMAT. */
bool weir__json_string(weir__json *j, weir__json_text *to);
bool weir__json_int(weir__json *j, int64_t *to); /* exact; a fraction, an exponent or a value beyond 64 bits is EFORMAT */
bool weir__json_double(weir__json *j,
                       double *to); /* any number, rounded to nearest whatever the locale; beyond a double's range is EFORMAT */
bool weir__json_bool(weir__json *j, bool *to);
bool weir__json_null(weir__json *j); /* true: a null was read. False and nothing read: another value comes. No failure */
bool weir__json_skip(weir__json *j); /* reads any value, checking all of it */
/* Reads any value and gives its bytes as they stand in the text: `weir__json_init` on them reads it again. */
bool weir__json_slice(weir__json *j, weir__string *to);

/* Moves from before an object to before the value at a path of keys separated by dots, "rope_parameters.rope_theta". False: not there, or something on the way is
 * no object; then the reader is used up (work on a copy) and j->code says whether it was a failure. Of equal keys the last one counts, as in Python. The rest of
 * the outermost object is checked too. Linear in the object for each call. */
bool weir__json_find(weir__json *j, const char *path);

/* Reads an object of known keys and sets at[i] to a bookmark before the value of names[i]; at[i].text NULL: not there, or null. EUNSUPPORTED: a key that is not among
 * the n names, as "`what`: setting "key" is not supported"; EFORMAT: one of them is there twice. Returns j->code. */
int weir__json_fields(weir__json *j, const char *what, const char *const *names, size_t n, weir__json *at);

/* The end: only white space may follow the value that was read, and nothing may be open. Returns j->code. */
int weir__json_finish(weir__json *j);

/* A failure found by the caller, reported with the reader's position. Returns false; does nothing if there was one before. */
bool weir__json_fail(weir__json *j, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Compares with a string whose escapes are resolved. */
bool weir__json_equal(weir__json_text s, const char *text);
bool weir__json_same(weir__json_text s, const char *text, size_t size);
/* Writes the string with its escapes resolved, without an ending zero, and returns its size: at most s.size. `to` may be s.data itself, where that memory may be
 * written. */
size_t weir__json_unescape(weir__json_text s, char *to);

#endif
