# What was in flight when the device was lost does not end.
# file: core/dev/cuda/stream.c
s/^    while \(st->issued\)$/    while (false)/
