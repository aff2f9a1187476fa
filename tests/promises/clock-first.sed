# Streams are drained when no timer is left.
# file: core/rt/driver_test.c
s/if \(s->drain && s->drain/if (!l->heap.count \&\& s->drain \&\& s->drain/
