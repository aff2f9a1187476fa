# A stream keeps its failure.
# file: core/dev/stream.c
s/^        st->failure = 0;/        ;/
