# A supervisor that gives up ends without its reason.
# file: core/rt/supervisor.c
s/^    v->why = why;/    weir_error_free(why);/
