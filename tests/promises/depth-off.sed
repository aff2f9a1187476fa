# The limit is 199,999.
# file: core/rt/body.c
s/uint64_t left\[WEIR_MAX_DEPTH \+ 1\];/uint64_t left[200000];/;s/container && depth == WEIR_MAX_DEPTH/container \&\& depth == 199999/
