# A queued list is not counted (and freed lists are overwritten, to see it).
# file: core/dev/stream.c
s/item->run.list = weir__list_ref\(l\);/item->run.list = l;/
# file: core/dev/list.c
/^void weir__list_unref/,/^}/s/^(    weir__free\(.*, l\);)/    memset(l, 0xdd, sizeof *l);\n\1/
