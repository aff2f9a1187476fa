# A held actor gets mail.
# file: core/rt/mailbox.c
s/\*mail = a->held \? NULL : a->mail.first/*mail = a->mail.first/;s/return a->own.first \|\| \(a->mail.first && !a->held\);/return a->own.first || a->mail.first;/
