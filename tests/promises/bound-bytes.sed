# Bytes are not added up.
# file: core/rt/mailbox.c
s/ \|\| \(load >> LOAD_MESSAGE_BITS\) \+ bytes > max_bytes/ \&\& bytes <= max_bytes/
