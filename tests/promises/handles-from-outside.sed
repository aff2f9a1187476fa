# Ext type 1 is taken from outside.
# file: core/rt/body.c
s/^    if \(handles < 0\)/    if (0)/;s/if \(\*first != 0xd6 \|\| .*\)$/if (0)/
