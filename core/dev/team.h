/* team.h: a fixed set of threads that run one list together. Knows lists; knows no stream and no queue: whoever calls weir__team_run is one of the
 * team for that time. */
#ifndef WEIR_DEV_TEAM_H
#define WEIR_DEV_TEAM_H

#include "private.h"

typedef struct weir__team weir__team;

/* threads - 1 workers; they sleep until there is a list. ENOMEM, EIO (no thread). */
int weir__team_new(weir_system *s, unsigned threads, weir__team **out, weir_error **error);
void weir__team_free(weir__team *t); /* joins the workers; NULL does nothing */

/* Runs all items of a list in order, with the calling thread as worker 0; one caller at a time. Returns when every worker is out of the list. 0, or
 * ECANCELLED if item `number` of `st` was skipped meanwhile: the list then ended at a joined item. */
int weir__team_run(weir__team *t, weir__list *l, const weir__stream *st, const weir__item *item);
/* The same without a team: worker 0 of 1. */
int weir__list_run_alone(weir__list *l, const weir__stream *st, const weir__item *item);

#endif
