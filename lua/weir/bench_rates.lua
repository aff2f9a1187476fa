--- What single things cost in Lua and in C, measured in turns, so that what disturbs the machine disturbs all: messages, calls, switches.
-- @module weir.bench_rates
local core = require "weir.core"
local coroutines = require "weir.coroutines"
local weir = require "weir"

local bench_rates = {}

local body = ("sixty-four bytes"):rep(4)

local function sink()
  while true do
    weir.receive()
  end
end

local function echo()
  while true do
    local m = weir.receive()
    m:reply(m[1])
  end
end

-- LuaJIT's own coroutines, without what weir adds so that waits pass through them.
local function switch(n)
  local resume, yield = coroutines.raw_resume, coroutines.raw_yield
  local co = coroutine.create(function() while true do yield() end end)
  for _ = 1, n do
    resume(co)
  end
end

local function protected(n)
  local sum = 0
  for i = 1, n do
    local _, v = pcall(math.abs, i)
    sum = sum + v
  end
end

-- An actor sends, and waits for an answer every 512.
local function send(n)
  local to = weir.spawn(function()
    while true do
      local m = weir.receive()
      if m:is_call() then
        m:reply()
      end
    end
  end)
  weir.spawn(function()
    for i = 1, n do
      weir.send(to, "put", body)
      if i % 512 == 0 then
        weir.call(to, "get")
      end
    end
  end)
  weir.run()
end

local function send_from_main(n)
  local to = weir.spawn(sink)
  for i = 1, n do
    weir.send(to, "put", body)
    if i % 512 == 0 then
      weir.run()
    end
  end
  weir.run()
end

local function call_from_main(n)
  local to = weir.spawn(echo)
  for _ = 1, n do
    weir.call(to, "get", body)
  end
end

local function call_between(n)
  weir.spawn(call_from_main, n)
  weir.run()
end

local function spawn_and_end(n)
  for i = 1, n do
    weir.spawn(function() end)
    if i % 512 == 0 then
      weir.run()
    end
  end
  weir.run()
end

local in_lua = {
  {name = "lua_pcall", text = "pcall of a function", n = 1e6, fn = protected},
  {name = "lua_switch", text = "coroutine switch, there and back", n = 3e5, fn = switch},
  {name = "lua_send", text = "send and receive between actors", n = 1e5, fn = send},
  {name = "lua_send_main", text = "send from a main chunk, receive", n = 1e5, fn = send_from_main},
  {name = "lua_call", text = "call between actors, receive, reply", n = 5e4, fn = call_between},
  {name = "lua_call_main", text = "call from a main chunk", n = 3e4, fn = call_from_main},
  {name = "lua_spawn", text = "spawn and end of an actor", n = 2e4, fn = spawn_and_end},
}

-- Each has a system of its own, so that no round is left with the actors of another; a tenth is done before for warmth.
local function measure_lua(row)
  weir.shutdown()
  weir.system {}
  row.fn(row.n / 10)
  collectgarbage()
  local start = weir.now()
  row.fn(row.n)
  local ns = (weir.now() - start) / row.n * 1e9
  weir.shutdown()
  return ns
end

local function rows_of(lang)
  local rows = {}
  for i, rate in ipairs(lang ~= "lua" and core.bench_rates() or {}) do
    rows[#rows + 1] = {name = rate.name, text = rate.text, lang = "C", measure = function() return core.bench_rate(i) end}
  end
  for _, row in ipairs(lang ~= "c" and in_lua or {}) do
    rows[#rows + 1] = {name = row.name, text = row.text, lang = "Lua", measure = function() return measure_lua(row) end}
  end
  return rows
end

--- Measures all, round by round.
-- @tparam string|nil lang "c" or "lua"; nil: both
-- @tparam number rounds
-- @treturn table array of {name, text, lang, minimum, median} in ns
function bench_rates.measure(lang, rounds)
  local rows = rows_of(lang)
  for _ = 1, rounds do
    for _, row in ipairs(rows) do
      table.insert(row, row.measure())
    end
  end
  for _, row in ipairs(rows) do
    table.sort(row)
    row.minimum, row.median = row[1], row[math.ceil(rounds / 2)]
  end
  return rows
end

-- Ratios of one run: what is compared, with what.
local ratios = {
  {"send", "bare", "a send in C to a bare function call"},
  {"call", "bare", "a call and reply in C to a bare function call"},
  {"lua_send", "lua_switch", "a send in Lua to a coroutine switch"},
  {"lua_call", "lua_switch", "a call and reply in Lua to a coroutine switch"},
  {"trip", "eventfd", "a call and reply across loops to an eventfd ping-pong"},
}

--- Prints the figures and their ratios.
function bench_rates.run(lang, rounds)
  local rows, by_name = bench_rates.measure(lang, rounds), {}
  io.stdout:write(("\n%-4s %-38s %12s %12s %14s\n"):format("", "64-byte bodies, " .. rounds .. " rounds in turns", "minimum ns", "median ns", "median /s"))
  for _, row in ipairs(rows) do
    by_name[row.name] = row
    io.stdout:write(("%-4s %-38s %12.1f %12.1f %14.0f\n"):format(row.lang, row.text, row.minimum, row.median, 1e9 / row.median))
  end
  for _, ratio in ipairs(ratios) do
    local a, b = by_name[ratio[1]], by_name[ratio[2]]
    if a and b then
      io.stdout:write(("%-60s x %.2f (minima x %.2f)\n"):format(ratio[3], a.median / b.median, a.minimum / b.minimum))
    end
  end
end

return bench_rates
