# Messages are not counted against the bound.
# file: core/rt/mailbox.c
s/\(load & MESSAGE_MASK\) >= max_messages/0/
