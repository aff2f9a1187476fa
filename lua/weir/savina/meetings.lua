--- Benchmarks in Lua: chameneos and big: many actors that meet others, through one place or at random.
-- @module weir.savina.meetings
local weir = require "weir"
local send, receive = weir.send, weir.receive

-- ---- chameneos: meetings seen by all creatures = 2 x meetings ----

local function mall(meetings)
  local waiting
  while true do
    local m = receive()
    if meetings == 0 then
      send(m.from, "closed")
    elseif not waiting then
      waiting = m
    else
      send(waiting.from, "met", m[1])
      send(m.from, "met", waiting[1])
      waiting, meetings = nil, meetings - 1
    end
  end
end

-- Two of one colour keep it, two of different ones take the third.
local function creature(run, place, colour)
  local met = 0
  while true do
    send(place, "visit", colour)
    local m = receive()
    if m.verb == "closed" then
      break
    end
    local other = m[1]
    colour = other == colour and colour or 3 - other - colour
    met = met + 1
  end
  run:add(met)
end

local chameneos = {
  name = "chameneos", counts = "meetings seen", parameters = {{name = "creatures", few = 10, full = 100}, {name = "meetings", few = 100, full = 200000}},
  start = function(run, creatures, meetings)
    local place = weir.spawn(mall, meetings)
    for i = 1, creatures do
      weir.spawn(creature, run, place, i % 3)
    end
  end,
  expected = function(_, meetings) return 2 * meetings end,
}

-- ---- big: pongs of all = pings x actors ----

-- Answers others' pings also while it waits for its own, and after that.
local function peer(run, peers, pings, random)
  local left, waits = pings, false
  while true do
    if left > 0 and not waits then
      random = random * 16807 % 2147483647 -- Lehmer's generator
      send(peers[random % #peers + 1], "ping")
      waits = true
    end
    local m = receive()
    if m.verb == "ping" then
      send(m.from, "pong")
    else
      left, waits = left - 1, false
      run:add(left == 0 and pings or 0)
    end
  end
end

local big = {
  name = "big", counts = "pongs", parameters = {{name = "pings", few = 50, full = 20000}, {name = "actors", few = 10, full = 120}},
  start = function(run, pings, actors)
    local peers = {}
    for i = 1, actors do
      peers[i] = weir.spawn(peer, run, peers, pings, i)
    end
  end,
  expected = function(pings, actors) return pings * actors end,
}

return {chameneos, big}
