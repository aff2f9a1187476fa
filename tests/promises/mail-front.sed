# A mailbox takes messages at its front.
# file: core/rt/mailbox.c
/^void weir__queue_push/,/^}/s/e->next = NULL;/e->next = q->first; q->first = e; if (!q->last) q->last = e; return;/
