# The byte behind the last one is looked at.
# file: core/rt/body.c
s/^    if \(!left\)$/    if (!left \&\& c->p[start] == 0xc1)/
