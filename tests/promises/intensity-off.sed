# The count of restarts begins anew when it is full.
# file: core/rt/supervisor.c
s/^    if \(v->kept == n\)/    if (v->kept == n) v->kept = 0;\n    if (0)/
