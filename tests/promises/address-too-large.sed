# Addresses have a bit that a Lua number does not hold.
# file: core/rt/parts.h
/^static inline uint64_t weir__ids_of/,/^}/s/return /return UINT64_C(1) << 53 | /
