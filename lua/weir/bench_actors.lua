--- What actors in Lua cost: messages, calls, switches, spawning.
local weir = require "weir"

local bench_actors = {}

local function sink()
  while true do
    weir.receive()
  end
end

local function echo()
  while true do
    local m = weir.receive()
    m:reply(m:args())
  end
end

local function protected_call(n)
  local sum = 0
  for i = 1, n do
    local _, v = pcall(math.abs, i)
    sum = sum + v
  end
end

local function switch(n)
  local co = coroutine.wrap(function() while true do coroutine.yield() end end)
  for _ = 1, n do
    co()
  end
end

local function message(n)
  local to = weir.spawn_with({messages = 2000}, sink)
  for i = 1, n do
    weir.send(to, "x", i)
    if i % 1000 == 0 then
      weir.run()
    end
  end
  weir.run()
end

local function call_from_main(n)
  local to = weir.spawn(echo)
  for i = 1, n do
    weir.call(to, "x", i)
  end
end

local function call_between(n)
  weir.spawn(call_from_main, n)
  weir.run()
end

local function spawn_and_end(n)
  for i = 1, n do
    weir.spawn(function() end)
    if i % 1000 == 0 then
      weir.run()
    end
  end
  weir.run()
end

-- Prints what one of `n` of fn's costs in processor time.
local function rate(name, n, fn)
  collectgarbage()
  local start = os.clock()
  fn(n)
  local time = os.clock() - start
  io.stdout:write(("  %-44s %10.0f ns %14.0f /s\n"):format(name, time / n * 1e9, n / time))
end

--- Prints all figures.
function bench_actors.run()
  rate("bare function call through pcall", 1e7, protected_call)
  rate("coroutine switch there and back", 1e6, switch)
  rate("message to an actor (send, receive)", 3e5, message)
  rate("call between actors (call, receive, reply)", 2e5, call_between)
  rate("call from a main chunk", 1e5, call_from_main)
  rate("spawn and end of an actor", 1e5, spawn_and_end)
  return 0
end

return bench_actors
