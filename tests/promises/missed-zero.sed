# Ticks say 0.
# file: core/rt/timer.c
s/t->fn\(self, t->data, missed\);/t->fn(self, t->data, 0);/
