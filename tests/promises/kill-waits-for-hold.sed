# A held actor is not killed.
# file: core/rt/actor.c
/^int weir_kill/,/^}/s/^    if \(code != WEIR_OK\)/    if (code == WEIR_OK \&\& a->held) return WEIR_OK;\n&/
