# Weir.sleep holds its thread for 300 ms.
# file: lua/lib_actor.c
/^static int actor_sleep/,/^}/s/^    wait_check\(L, b, t, "weir.sleep"\);/    for (int64_t until = weir_now(b->system) + 300000000; weir_now(b->system) < until;)\n        ;\n&/
