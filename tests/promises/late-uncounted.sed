# Late answers are not counted.
# file: core/rt/message.c
s/^.*&l->late, code == WEIR_OK.*$//
