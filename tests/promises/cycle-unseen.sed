# Nobody is seen to wait for anybody.
# file: core/rt/cycle.c
/^static weir_actor \*search/,/^}/s/if \(at->address == q->initiator\)/if (0)/
