# The text has only their number.
# file: core/rt/system.c
s/were killed: %s", survivors, names/were killed", survivors/
