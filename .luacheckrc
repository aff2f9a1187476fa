-- Settings of luacheck: LuaJIT's and busted's globals, lines as long as in the C files.
std = "luajit+busted"
max_line_length = 170
files["lua/weir/coroutines.lua"] = {globals = {"coroutine", "debug"}} -- it replaces two functions of one and one of the other
