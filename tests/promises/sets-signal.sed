# Weir_system_new ignores SIGPIPE.
# file: core/rt/system.c
s/^int weir_system_new\(.*\{/&\n    signal(13, (void (*)(int))1);/;s/^#include "internal.h"/&\n#include <signal.h>/
