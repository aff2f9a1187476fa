# Who owns a stream is not told that its device is lost.
# file: core/dev/stream.c
s/^    weir__notice \*n = take_lost\(st\);$/    weir__notice *n = NULL;/
