# Weir.try_send raises.
# file: lua/weir.lua
/^function weir.try_send/,/^end/s/core_send\(true,/core_send(false,/
