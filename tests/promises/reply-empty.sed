# Replies lose their body.
# file: core/rt/message.c
s/return weir__answer\(self, weir__reply_to\(m\), body, NULL\);/return weir__answer(self, weir__reply_to(m), NULL, NULL);/
