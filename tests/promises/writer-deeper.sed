# The writer goes one level deeper.
# file: core/rt/write.c
s/WEIR_MAX_DEPTH/(WEIR_MAX_DEPTH + 1)/g
