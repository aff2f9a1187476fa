# Nothing is taken to linger.
# file: core/rt/supervisor.c
s/if \(!c->address \|\| !weir__lingering\(v->system, c->address\)\)/if (1)/
