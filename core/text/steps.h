/* steps.h: the steps of a pipeline made ready: copied, patterns compiled; and the memory that running them takes. Knows no pieces. */
#ifndef WEIR_TEXT_STEPS_H
#define WEIR_TEXT_STEPS_H

#include "index.h"
#include "regex.h"

enum { WEIR__TEXT_MOST = INT32_MAX }; /* bytes of a text inside the pipeline: a cut has 31 bits for its size */
enum {
    WEIR__GROWTH = 32, /* how much longer normalisers may make a text; NFKD makes one character 11 times as long */
    WEIR__GROWTH_ROOM = 64 << 10,
};

typedef struct weir__buffer {
    char *data;
    size_t size, room;
    size_t most; /* bytes; 0: WEIR__TEXT_MOST. Files make texts grow as they like */
} weir__buffer;
int weir__buffer_put(weir_system *s, weir__buffer *b, const char *data, size_t size); /* ENOMEM, ETOOBIG */

/* A part of a text, by offsets. `raw`: bytes that are no UTF-8, which no step touches. */
typedef struct weir__cut {
    uint32_t begin;
    uint32_t size : 31;
    uint32_t raw : 1;
} weir__cut;

typedef struct weir__cuts {
    weir__cut *data;
    size_t size, room;
} weir__cuts;

/* Used again from text to text. Zeroed at first, but for `system`. */
typedef struct weir__work {
    weir_system *system;
    weir__buffer text[4]; /* normalisers write to 0 and 1, pre-tokenisers to 2 and 3 */
    weir__cuts cuts[2];
    int32_t *chars; /* [chars_room] characters being normalised */
    size_t chars_room;
    weir__regex_run *run;
} weir__work;
void weir__work_fini(weir__work *w);
/* The buffer of the pair `first`, first + 1 that does not hold `text`, emptied. */
weir__buffer *weir__work_buffer(weir__work *w, size_t first, const char *text);
int weir__work_find(weir__work *w, const weir__regex *r, weir__string text, size_t from, size_t *begin, size_t *end, weir_error **error);

/* The component's name in the tokenizers library, for errors. */
const char *weir__step_name(enum weir__step_kind kind);

typedef struct weir__ops {
    weir_system *system;
    weir__step *steps;      /* [size] strings are copies */
    weir__regex **patterns; /* [size] NULL: none */
    size_t size;
    char *bytes;
} weir__ops;
/* `kinds`: a bit each of those allowed. EUNSUPPORTED names `what` (normaliser, ...), the step and the source. ENOMEM. On failure nothing is kept. */
int weir__ops_init(weir_system *s, weir__ops *o, weir__steps steps, uint64_t kinds, const char *what, const char *source,
                   weir_error **error);
void weir__ops_fini(weir__ops *o);

/* Runs normalisers; *out is `in` or in `w`. EINVAL (a pattern's limits), ETOOBIG, EFORMAT (a charsmap that is broken), ENOMEM. */
extern const uint64_t weir__normaliser_kinds, weir__pretokeniser_kinds;
int weir__normalise(const weir__ops *o, weir__work *w, weir__string in, weir__string *out, weir_error **error);
/* One step from `in` to `out`, an empty buffer: PREPEND ... NMT but those that stand below. */
int weir__normal_form(weir__work *w, weir__string in, bool compatible, bool compose, weir__buffer *out); /* ENOMEM, ETOOBIG */
int weir__charsmap(const weir__step *step, weir__work *w, weir__string in, weir__buffer *out, weir_error **error);

/* Runs pre-tokenisers: *cuts and *text, in which they lie, are in `w`, or *text is `in`. `first`: nothing stands before `in`. Errors as above. */
int weir__pretokenise(const weir__ops *o, weir__work *w, weir__string in, bool first, weir__string *text, const weir__cuts **cuts,
                      weir_error **error);

#endif
