# The next tick counts from now.
# file: core/rt/timer.c
s/next = weir__later\(t->due.at, \(int64_t\)\(missed \+ 1\) \* t->period\);/next = weir__later(t->due.at, (int64_t)(missed + 1) * t->period + 1);/
