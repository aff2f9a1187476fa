--- Benchmarks in Lua: ping-pong, counting, fork-join throughput, thread ring: what plain messages cost.
-- @module weir.savina.sends
local weir = require "weir"
local send, receive, call = weir.send, weir.receive, weir.call

local WINDOW, GRANT = 512, 256 -- messages on their way to one receiver; those after which it gives credit

-- ---- ping-pong: pongs = N ----

local function ponger()
  while true do
    send(receive().from, "pong")
  end
end

local function pinger(run, other, n)
  for _ = 1, n do
    send(other, "ping")
    receive()
    run:add(1)
  end
end

local pingpong = {
  name = "pingpong", counts = "pongs", parameters = {{name = "messages", few = 100, full = 40000}},
  start = function(run, n)
    weir.spawn(pinger, run, weir.spawn(ponger), n)
  end,
  expected = function(n) return n end,
}

-- ---- counting: the count, asked for every WINDOW messages = N ----

local function counter()
  local count = 0
  while true do
    local m = receive()
    if m.verb == "get" then
      m:reply(count)
    else
      count = count + 1
    end
  end
end

local function producer(run, to, n)
  local count
  for i = 1, n do
    send(to, "put")
    if i % WINDOW == 0 or i == n then
      count = call(to, "get")
    end
  end
  run:add(count)
end

local counting = {
  name = "counting", counts = "messages counted", parameters = {{name = "messages", few = 2000, full = 1000000}},
  start = function(run, n)
    weir.spawn(producer, run, weir.spawn(counter), n)
  end,
  expected = function(n) return n end,
}

-- ---- fork-join throughput: messages handled by all = messages x actors ----

local function worker(run, n)
  local value = 0
  for i = 1, n do
    local m = receive()
    value = value + 37.2 / (1 + value * value)
    if i % GRANT == 0 then
      send(m.from, "more", m[1])
    end
  end
  run:add(n)
end

local function source(run, n, actors)
  local lanes, total = {}, n * actors
  for i = 1, actors do
    lanes[i] = {to = weir.spawn(worker, run, n), left = n, credit = WINDOW}
  end
  while total > 0 do
    local sent = 0
    for i, lane in ipairs(lanes) do
      if lane.left > 0 and lane.credit > 0 then
        send(lane.to, "put", i)
        lane.left, lane.credit, sent = lane.left - 1, lane.credit - 1, sent + 1
      end
    end
    total = total - sent
    if sent == 0 then
      local lane = lanes[receive()[1]]
      lane.credit = lane.credit + GRANT
    end
  end
  while true do
    receive() -- credit that is not used any more
  end
end

local throughput = {
  name = "throughput", counts = "messages handled", parameters = {{name = "messages", few = 2000, full = 10000}, {name = "actors", few = 5, full = 60}},
  start = function(run, n, actors)
    weir.spawn(source, run, n, actors)
  end,
  expected = function(n, actors) return n * actors end,
}

-- ---- thread ring: hops; the token must end at actor hops mod actors ----

local function node(run, index, actors, hops)
  local next_node = receive()[1]
  while true do
    local left = receive()[1]
    if left == 0 then
      assert(index == hops % actors, "the token ended at another actor")
    else
      run:add(1)
      send(next_node, "token", left - 1)
    end
  end
end

local ring = {
  name = "ring", counts = "hops", parameters = {{name = "actors", few = 7, full = 100}, {name = "hops", few = 100, full = 100000}},
  start = function(run, actors, hops)
    local nodes = {}
    for i = 1, actors do
      nodes[i] = weir.spawn(node, run, i - 1, actors, hops)
    end
    for i = 1, actors do
      send(nodes[i], "next", nodes[i % actors + 1])
    end
    send(nodes[1], "token", hops)
  end,
  expected = function(_, hops) return hops end,
}

return {pingpong, counting, throughput, ring}
