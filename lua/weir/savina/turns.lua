--- Benchmarks in Lua: bounded buffer, dining philosophers, concurrent dictionary: actors that share something that another one keeps.
-- @module weir.savina.turns
local weir = require "weir"
local send, receive, call = weir.send, weir.receive, weir.call

-- ---- bounded buffer: the sum of the items 0 .. N - 1 = N (N - 1) / 2. The buffer answers a put when it has room and a take when it has an item ----

local function buffer(slots)
  local items, first, last = {}, 1, 0 -- items[first .. last]
  local putters, takers, put_first, take_first = {}, {}, 1, 1
  while true do
    local m = receive():defer()
    if m.verb == "put" then
      putters[#putters + 1] = m
    else
      takers[#takers + 1] = m
    end
    repeat
      local moved = false
      local putter, taker = putters[put_first], takers[take_first]
      if putter and last - first + 1 < slots then
        last, put_first, putters[put_first] = last + 1, put_first + 1, false
        items[last] = putter[1]
        putter:reply()
        moved = true
      end
      if taker and first <= last then
        taker:reply(items[first])
        items[first], first, take_first, takers[take_first] = nil, first + 1, take_first + 1, false
        moved = true
      end
    until not moved
  end
end

local function producer(to, first, n)
  for i = first, first + n - 1 do
    call(to, "put", i)
  end
end

local function consumer(run, from, n)
  for _ = 1, n do
    run:add(call(from, "take"))
  end
end

local bounded = {
  name = "buffer", counts = "sum of items",
  parameters = {{name = "slots", few = 9, full = 50}, {name = "producers", few = 5, full = 40}, {name = "items", few = 40, full = 1000}},
  start = function(run, slots, producers, items)
    local middle = weir.spawn(buffer, slots)
    for i = 0, producers - 1 do
      weir.spawn(producer, middle, i * items, items)
      weir.spawn(consumer, run, middle, items)
    end
  end,
  expected = function(_, producers, items)
    local n = producers * items
    return n * (n - 1) / 2
  end,
}

-- ---- dining philosophers: meals = philosophers x rounds ----

local function table_of(n)
  local taken = {}
  while true do
    local m = receive()
    local left, right = m[1], (m[1] + 1) % n
    if m.verb == "done" then
      assert(taken[left] and taken[right], "a philosopher ate without forks")
      taken[left], taken[right] = false, false
    else
      local free = not taken[left] and not taken[right]
      if free then
        taken[left], taken[right] = true, true
      end
      m:reply(free)
    end
  end
end

local function philosopher(run, forks, index, rounds)
  for _ = 1, rounds do
    while not call(forks, "hungry", index) do end
    send(forks, "done", index)
  end
  run:add(rounds)
end

local philosophers = {
  name = "philosophers", counts = "meals",
  parameters = {{name = "philosophers", few = 5, full = 20}, {name = "rounds", few = 40, full = 10000}},
  start = function(run, n, rounds)
    local forks = weir.spawn(table_of, n)
    for i = 0, n - 1 do
      weir.spawn(philosopher, run, forks, i, rounds)
    end
  end,
  expected = function(n, rounds) return n * rounds end,
}

-- ---- concurrent dictionary: every tenth request writes key k with the value k, the nine after it read it. All answers are values:
-- 10 x the sum of the keys = 10 x K (K - 1) / 2, K = workers x requests / 10 ----

local function dictionary()
  local values = {}
  while true do
    local m = receive()
    if m.verb == "put" then
      values[m[1]] = m[1]
    end
    m:reply(values[m[1]])
  end
end

local function reader(run, store, index, requests)
  for i = 0, requests - 1 do
    run:add(call(store, i % 10 == 0 and "put" or "get", index * (requests / 10) + math.floor(i / 10)))
  end
end

local concurrent = {
  name = "dictionary", counts = "sum of answers",
  parameters = {{name = "workers", few = 4, full = 20}, {name = "requests", few = 100, full = 10000}},
  start = function(run, workers, requests)
    local store = weir.spawn(dictionary)
    for i = 0, workers - 1 do
      weir.spawn(reader, run, store, i, requests)
    end
  end,
  expected = function(workers, requests)
    local keys = workers * requests / 10
    return 10 * keys * (keys - 1) / 2
  end,
}

return {concurrent, bounded, philosophers}
