# Weir_system_stop has no patience.
# file: core/rt/system.c
/^int weir_system_stop/,/^}/s/if \(ns > 0\)/if (0)/
