--- What single things cost in Lua and in C, measured in turns, so that what disturbs the machine disturbs all: messages, calls, switches.
-- @module weir.bench_rates
local core = require "weir.core"
local coroutines = require "weir.coroutines"
local weir = require "weir"

local bench_rates = {}

local body = ("sixty-four bytes"):rep(4)

-- LuaJIT's own coroutines, without what weir adds so that waits pass through them.
local function switch(n)
  local resume, yield = coroutines.raw_resume, coroutines.raw_yield
  local co = coroutine.create(function() while true do yield() end end)
  for _ = 1, n do
    resume(co)
  end
end

-- What an actor, or a main chunk, does to a sink: sends as it gets credit, or calls.
local function send_to(to, n)
  local credit = 512
  for _ = 1, n do
    if credit == 0 then
      weir.receive()
      credit = 256
    end
    credit = credit - 1
    weir.send(to, "put", body)
  end
end

local function call_to(to, n)
  for _ = 1, n do
    weir.call(to, "get", body)
  end
end

-- fn(to, n) in an actor, to a sink of a kind that is on the loop that options say.
local function between(fn, how, options)
  return function(n)
    weir.spawn(fn, weir.spawn_with(options or {}, "weir.savina.sink", how), n)
    weir.run()
  end
end

local function from_main(fn, how)
  return function(n)
    fn(weir.spawn("weir.savina.sink", how), n)
    weir.run()
  end
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
  {name = "lua_switch", text = "coroutine switch, there and back", n = 3e5, fn = switch},
  {name = "lua_send", text = "send and receive, same loop", n = 1e5, fn = between(send_to, "count")},
  {name = "lua_read", text = "send, receive and read, same loop", n = 1e5, fn = between(send_to, "read")},
  {name = "lua_send_main", text = "send from a main chunk, receive", n = 1e5, fn = from_main(send_to, "count")},
  {name = "lua_call", text = "call, receive, reply, same loop", n = 5e4, fn = between(call_to, "echo")},
  {name = "lua_call_main", text = "call from a main chunk", n = 3e4, fn = from_main(call_to, "echo")},
  {name = "lua_across", text = "send and receive across loops", n = 1e5, fn = between(send_to, "count", {loop = 1}), workers = 1},
  {name = "lua_trip", text = "call, receive, reply across loops", n = 1e4, fn = between(call_to, "echo", {loop = 1}), workers = 1},
  {name = "lua_spawn", text = "spawn and end of an actor", n = 2e4, fn = spawn_and_end},
}

-- Each has a system of its own, so that no round is left with the actors of another; a tenth is done before for warmth.
local function measure_lua(row)
  weir.shutdown()
  weir.system {workers = row.workers}
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
  {"trip", "eventfd", "a call and reply in C across loops to an eventfd ping-pong"},
  {"lua_trip", "eventfd", "a call and reply in Lua across loops to an eventfd ping-pong"},
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
