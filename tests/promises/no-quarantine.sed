# Nobody is quarantined.
# file: core/rt/supervisor.c
s/^    weir__quarantine\(c->owner->system, c->address\);//
