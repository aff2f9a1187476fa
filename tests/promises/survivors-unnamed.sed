# The text has only their number.
# file: core/rt/system.c
s/were killed: %s%s", survivors, names, still/were killed%s", survivors, still/
