# Libev is polled instead of waited for.
# file: core/rt/driver_ev.c
/^static void ev_wait/,/^}/s/EVRUN_ONCE/EVRUN_NOWAIT/
