# A stop kills.
# file: core/rt/actor.c
/^int weir_stop/,/^}/s/weir__mail_push\(a, &a->stop\);/weir_kill(s, address);/
