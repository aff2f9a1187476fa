# Replies wait among the mail.
# file: core/rt/call.c
/^void weir__call_end/,/^}/s/weir__own_push/weir__mail_push/;
