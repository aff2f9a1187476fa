# Wishes are dropped when there is room.
# file: core/rt/space.c
/^void weir__wants_serve/,/^}/s/fulfil\(a->system, w\);/drop(a->system, w);/
