# A kill waits behind the mail.
# file: core/rt/actor.c
/^int weir_kill/,/^}/s/^    if \(code != WEIR_OK/    if (code == WEIR_OK) return weir_stop(s, address);\n&/
