# Verbs are not freed.
# file: core/rt/system.c
s/^    weir__verbs_fini\(s\);//
