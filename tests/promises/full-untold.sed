# A refused sender gets WEIR_OK.
# file: core/rt/message.c
s/return refuse\(s, WEIR_EFULL, body\);/return refuse(s, WEIR_OK, body);/
