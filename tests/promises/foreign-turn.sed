# A message to another loop is handled on the sender's thread.
# file: core/rt/message.c
s/if \(here != there \|\| /if (/
# file: core/rt/loop.c
/^void weir__ready_push/,/^}/s/= a->loop;/= weir__here(a->system) ? weir__here(a->system) : a->loop;/
