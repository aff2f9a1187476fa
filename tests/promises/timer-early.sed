# What is due in half a millisecond counts as due.
# file: core/rt/timer.c
/^void weir__due_fire/,/^}/s/->at <= now/->at <= now + 500000/
