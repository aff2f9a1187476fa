# A count that does not fit is not refused at its head.
# file: core/rt/body.c
s/^    if \(bytes > left \|\| \*values > left - bytes\)$/    if (*values > 1000) free(calloc(*values, 16));\n    if (bytes > left)/
