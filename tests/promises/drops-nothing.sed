# A full mailbox that drops its oldest keeps it.
# file: core/rt/mailbox.c
/^void weir__mailbox_trim/,/^}/s/while \(weir__slot_over\(a->slot\)\)/while (0)/
