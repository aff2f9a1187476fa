# Nobody is looked for.
# file: lua/lib_yield.c
/^const char \*blame/,/^}/s/if \(!lua_checkstack\(co, LUA_MINSTACK\)\)/if (1)/
