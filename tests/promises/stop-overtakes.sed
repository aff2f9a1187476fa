# A stop kills.
# file: core/rt/actor.c
/^void weir__actor_stop/,/^}/s/weir__mail_push\(a, &a->stop\);/weir_kill(a->system, a->address);/
