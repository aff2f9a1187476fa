# A loop does not wait for its futex to change.
# file: core/rt/wait.c
/^void weir__wait_futex/,/^}/s/while \(atomic_load\(&l->asleep\) == how\)/while (0)/
