# Dead letters are traced with code 0.
# file: core/rt/dead.c
s/(weir__trace\(.*WEIR_TRACE_DEAD.*), why\)/\1, 0)/
