# Weir_loops counts one more.
# file: core/rt/worker.c
/^unsigned weir_loops/,/^}/s/return s->n_loops;/return s->n_loops + 1;/
