# The default bound is twice as large.
# file: core/rt/actor.c
s/: WEIR_MAILBOX_MESSAGES;/: 2 * WEIR_MAILBOX_MESSAGES;/
