# The verb is not told.
# file: core/rt/watchdog.c
s/verb_of\(s, what\)/"?"/
