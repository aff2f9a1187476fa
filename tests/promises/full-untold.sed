# A refused sender gets WEIR_OK.
# file: core/rt/message.c
s/return refuse\(s, slot, e, code\);/return refuse(s, slot, e, code == WEIR_EFULL ? WEIR_OK : code);/
