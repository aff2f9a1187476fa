# A dropped call is not answered.
# file: core/rt/message.c
/^void weir__message_drop/,/^}/s/if \(m->session\)/if (0)/
