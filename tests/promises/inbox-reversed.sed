# What came from other loops is taken newest first.
# file: core/rt/inbox.c
/^void weir__inbox_take/,/^}/s/        e->next = oldest;/        arrive(l, e);/;s/^        oldest = e;$/        (void)oldest;/
