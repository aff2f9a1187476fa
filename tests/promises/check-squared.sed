# Each value costs a walk over all bytes.
# file: core/rt/body.c
s/^        left\[depth\]--;/&\n        for (volatile size_t i = 0; i < n; i++)\n            ;/
