# The next actor does not depend on the seed.
# file: core/rt/driver_test.c
s/return weir__seeded\(l->system\) % /static size_t turns; return ++turns % /
