# Deadlines under a second are not set.
# file: core/rt/call.c
/^int weir_call\(/,/^}/s/if \(timeout >= 0\)$/if (timeout > 1000000000)/
