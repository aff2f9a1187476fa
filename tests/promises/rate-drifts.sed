# The next tick counts from now.
# file: core/rt/timer.c
s/next = weir__later\(t->due.at,/next = weir__later(weir_now(l->system),/
