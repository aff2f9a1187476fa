# A deferred message counts as unanswered.
# file: core/rt/message.c
/^weir_reply_to weir_defer/,/^}/s/^    return weir__reply_to\(m\);/    self->answered = false;\n&/
