# A wait does not look whether the loop runs.
# file: lua/lib_actor.c
/^void wait_check/,/^}/s/if \(b->attached \|\| weir__running\(b->system\)\)/if (0)/
