# A held actor is not killed.
# file: core/rt/actor.c
/^int weir_kill/,/^}/s/^    if \(code != WEIR_OK/    if (code == WEIR_OK \&\& slot->actor->held) return WEIR_OK;\n&/
