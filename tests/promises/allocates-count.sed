# As much is allocated as a header promises.
# file: core/rt/body.c
s/^    int code = size && !begins_array/    if (size > 5 \&\& *(const uint8_t *)bytes == 0xdd) weir__free(s, weir__alloc(s, weir__big_endian((const uint8_t *)bytes + 1, 4)));\n&/
