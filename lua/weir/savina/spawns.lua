--- Benchmarks in Lua: fork-join creation, spawn tree, Fibonacci: what actors cost that live for one message or two.
-- @module weir.savina.spawns
local weir = require "weir"

-- ---- creation: actors that ran = N ----

local function once(run)
  weir.receive()
  run:add(1)
end

local create = {
  name = "create", counts = "actors", parameters = {{name = "actors", few = 200, full = 40000}},
  start = function(run, n)
    for _ = 1, n do
      weir.send(weir.spawn(once, run), "go")
    end
  end,
  expected = function(n) return n end,
}

-- ---- spawn tree: the sum of the leaves' ordinals = leaves (leaves - 1) / 2. Children are asked one after another, so few live at a time ----

local function tree(ordinal, leaves, children)
  local asked, sum = weir.receive(), ordinal
  if leaves > 1 then
    sum = 0
    for i = 0, children - 1 do
      sum = sum + weir.call(weir.spawn(tree, ordinal + i * leaves / children, leaves / children, children), "go")
    end
  end
  asked:reply(sum)
end

local spawntree = {
  name = "spawntree", counts = "sum of ordinals",
  parameters = {{name = "leaves", few = 1000, full = 1000000}, {name = "children", few = 10, full = 10}},
  start = function(run, leaves, children)
    weir.spawn(function()
      run:add(weir.call_with({to = weir.spawn(tree, 0, leaves, children), timeout = false}, "go"))
    end)
  end,
  expected = function(leaves) return leaves * (leaves - 1) / 2 end,
}

-- ---- Fibonacci: F(n), by actors for F(n - 1) and F(n - 2) that run side by side ----

local function fibonacci(parent, n)
  local sum = n <= 2 and 1 or 0
  if n > 2 then
    weir.spawn(fibonacci, weir.self(), n - 1)
    weir.spawn(fibonacci, weir.self(), n - 2)
    sum = weir.receive()[1] + weir.receive()[1]
  end
  weir.send(parent, "done", sum)
end

local function fibonacci_expected(n)
  local a, f = 0, 1
  for _ = 2, n do
    a, f = f, a + f
  end
  return f
end

local fib = {
  name = "fibonacci", counts = "F(n)", parameters = {{name = "n", few = 12, full = 25}},
  start = function(run, n)
    weir.spawn(function()
      weir.spawn(fibonacci, weir.self(), n)
      run:add(weir.receive()[1])
    end)
  end,
  expected = fibonacci_expected,
}

return {create, spawntree, fib}
