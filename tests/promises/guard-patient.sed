# The limit is a thousand times as long.
# file: lua/lib_guard.c
s/if \(elapsed > g->limit\)/if (elapsed > g->limit * 1000)/
