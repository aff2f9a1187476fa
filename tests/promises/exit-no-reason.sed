# The reason of an exit is not the cause of the error.
# file: core/rt/actor.c
/^static weir_error \*end_error/,/^}/s/weir_error_ref\(a->why\)/NULL/
