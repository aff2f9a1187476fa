# The next tick counts from when the last was due.
# file: core/rt/timer.c
s/t->kind == WEIR_TIMER_RATE \? next : weir__after\(l->system, t->period\)/t->kind == WEIR_TIMER_RATE ? next : weir__later(t->due.at, t->period)/
