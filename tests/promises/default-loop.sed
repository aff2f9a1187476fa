# The loop is made by ev_default_loop.
# file: core/rt/driver_ev.c
s/ev_loop_new\(/ev_default_loop(/
