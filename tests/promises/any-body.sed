# Any value is taken from outside.
# file: core/rt/body.c
s/size && !begins_array\(\*\(const uint8_t \*\)bytes\)/0/
