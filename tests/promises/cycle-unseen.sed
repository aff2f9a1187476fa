# Nobody is seen to wait for anybody.
# file: core/rt/call.c
/^static bool waits_for/,/^}/s/^        if \(at == target\)/        if (0)/
