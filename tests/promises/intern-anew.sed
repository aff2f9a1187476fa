# A name is interned each time.
# file: core/rt/verb.c
/^weir_verb weir_intern/,/^}/s/if \(!verb\)/if (1)/
