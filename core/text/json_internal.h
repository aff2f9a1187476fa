/* json_internal.h: what json.c and json_value.c share. */
#ifndef WEIR_TEXT_JSON_INTERNAL_H
#define WEIR_TEXT_JSON_INTERNAL_H

#include "json.h"

/* "found ..., wanted ..." at the reader's place. Returns false. */
bool weir__json_unexpected(weir__json *j, const char *wanted);
/* Whether a value of this kind comes next; else a failure. */
bool weir__json_want(weir__json *j, enum weir__json_kind kind);
/* Checks and reads a string from its opening quote on. */
bool weir__json_scan_string(weir__json *j, weir__json_text *to);
/* Checks and reads a number as it is written. */
bool weir__json_number(weir__json *j, weir__json_text *to);

#endif
