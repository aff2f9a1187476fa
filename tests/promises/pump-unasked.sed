# A pump does not look whether the loop runs.
# file: lua/lib_system.c
/^int pump/,/^}/s/if \(b->attached \|\| weir__running\(b->system\)\)/if (0)/
# file: core/rt/system.c
/^static int may_run/,/^}/s/return weir_fail\(error, WEIR_EBUSY,/return weir_fail(error, WEIR_EINVAL,/
