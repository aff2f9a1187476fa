# A deferred message counts as unanswered.
# file: core/rt/message.c
/^weir_reply_to weir_defer/,/^}/s/^    return \(weir_reply_to\)\{m->from/    self->answered = false;\n&/
