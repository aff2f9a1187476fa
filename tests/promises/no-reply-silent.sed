# Nothing happens when a handler ends.
# file: core/rt/message.c
s/if \(!self->answered && !self->ending\)/if (0)/
