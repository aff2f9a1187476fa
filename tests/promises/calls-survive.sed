# The end of an actor ends no calls.
# file: core/rt/call.c
/^void weir__calls_fail/,/^}/s/while \(/while (0 \&\& /
