# Bins are buffers from 16 MiB on.
# file: lua/lib_decode.c
s/#define INLINE_BIN 4096/#define INLINE_BIN (1 << 24)/
