# The envelope gets deadline 0.
# file: core/rt/message.c
s/m->deadline = e->deadline;/m->deadline = 0;/
