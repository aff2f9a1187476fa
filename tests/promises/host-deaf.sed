# The host's loop wakes weir, which does nothing.
# file: core/rt/driver_ev.c
/^static void host_woken/,/^}/s/weir__loop_step\(l, WEIR_TURN_NS\);//
