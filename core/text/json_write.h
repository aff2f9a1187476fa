/* json_write.h: a JSON text that grows in memory. The caller writes brackets and commas by the functions below in the right order; strings are escaped. Failures
 * stick: `code`, ENOMEM. */
#ifndef WEIR_TEXT_JSON_WRITE_H
#define WEIR_TEXT_JSON_WRITE_H

#include "text.h"

typedef struct weir__json_writer {
    weir_system *system;
    char *text; /* owned; [size] and an ending zero */
    size_t size, room;
    int depth;
    bool first; /* nothing stands before the next element of the innermost object or array */
    int indent; /* spaces a level; 0: all in one line */
    int code;
} weir__json_writer;

void weir__json_write_init(weir__json_writer *w, weir_system *s, int indent);
void weir__json_write_fini(weir__json_writer *w);
/* bracket: '{', '}', '[' or ']'. */
void weir__json_write_open(weir__json_writer *w, char bracket);
void weir__json_write_close(weir__json_writer *w, char bracket);
void weir__json_write_key(weir__json_writer *w, const char *key, size_t size);
/* Bytes that are no UTF-8 become U+FFFD. */
void weir__json_write_string(weir__json_writer *w, const char *text, size_t size);
void weir__json_write_int(weir__json_writer *w, int64_t v);
void weir__json_write_real(weir__json_writer *w, double v);         /* the shortest text that reads back as v */
void weir__json_write_word(weir__json_writer *w, const char *word); /* true, false, null, or JSON as it is */

#endif
