# A table with a hole is sent as an array.
# file: lua/lib_encode.c
s/if \(s.positive && s.largest == s.count\)/if (s.positive)/
