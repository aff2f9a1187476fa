--- An actor to send to and to call, on any loop: `weir.spawn("weir.savina.sink", how)`.
-- @module weir.savina.sink
local weir = require "weir"
local receive, try_send = weir.receive, weir.try_send

local GRANT = 256 -- messages after which it gives credit for as many

local sinks = {}

function sinks.count()
  for i = 1, math.huge do
    local m = receive()
    if i % GRANT == 0 then
      try_send(m.from, "more") -- the sender may have ended
    end
  end
end

function sinks.read()
  for i = 1, math.huge do
    local m = receive()
    assert(#m[1] == 64)
    if i % GRANT == 0 then
      try_send(m.from, "more")
    end
  end
end

function sinks.echo()
  while true do
    local m = receive()
    m:reply(m[1])
  end
end

return function(how)
  return sinks[how]()
end
