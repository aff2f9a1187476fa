# Replies lose their body.
# file: core/rt/message.c
s/return answer\(self, m->session, body, NULL\);/return answer(self, m->session, NULL, NULL);/
