--- The loop under load and at rest: lateness of a 5 ms timer while a long prefill runs, and what an idle loop costs.
local weir = require "weir"

local bench_loop = {}

local PERIOD, TOKENS = 0.005, 1177

-- Lateness of each tick of an actor that sleeps PERIOD at a time, until `done()`.
local function ticker(done)
  local late = {}
  weir.spawn(function()
    while not done() do
      local due = weir.now() + PERIOD
      weir.sleep(PERIOD)
      late[#late + 1] = weir.now() - due
    end
  end)
  return late
end

local function percentile(sorted, share)
  return sorted[math.max(1, math.ceil(#sorted * share))] * 1e3
end

local function prefill(model)
  local tokens, finished = {}, false
  for i = 1, math.min(TOKENS, model.info.context - 1) do
    tokens[i] = (i * 7919) % model.info.vocab
  end
  local late = ticker(function() return finished end)
  local finish
  weir.spawn(function()
    finish = select(2, model:complete {tokens = tokens, max_tokens = 1, ignore_end = true})
    finished = true
  end)
  weir.run()
  table.sort(late)
  io.stdout:write(("prefill of %d tokens in %.3f s, a timer every 5 ms on the same loop: %d ticks, late by p50 %.3f ms, p99 %.3f ms, most %.3f ms\n"):format(
    #tokens, finish.prefill, #late, percentile(late, 0.5), percentile(late, 0.99), late[#late] * 1e3))
end

-- Processor ticks (10 ms) and voluntary context switches of all threads of this process.
local function spent()
  local ticks, switches = 0, 0
  for _, name in ipairs {"stat", "status"} do
    local pipe = assert(io.popen("cat /proc/" .. require "weir.core".pid() .. "/task/*/" .. name))
    for line in pipe:lines() do
      local user, system = line:match "^%d+ %(.*%) %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ (%d+) (%d+)"
      ticks = ticks + (tonumber(user) or 0) + (tonumber(system) or 0)
      switches = switches + (tonumber(line:match "^voluntary_ctxt_switches:%s+(%d+)") or 0)
    end
    pipe:close()
  end
  return ticks, switches
end

local function idle(seconds)
  weir.sleep(0.2)
  local ticks, switches = spent()
  weir.sleep(seconds)
  local ticks_after, switches_after = spent()
  io.stdout:write(("idle for %g s with the model loaded: %.2f s of processor time, %d context switches of all threads (the measuring itself makes a few)\n"):format(
    seconds, (ticks_after - ticks) / 100, switches_after - switches))
end

--- Loads a model and prints both figures.
-- @param path of the model
-- @tparam[opt] table options device, threads
-- @tparam[opt=10] number seconds to be idle
function bench_loop.run(path, options, seconds)
  options = options or {}
  local model = weir.load(path, {device = options.device, threads = options.threads})
  io.stdout:write(("%s, %s\n"):format(path, model.info.device))
  model:complete {tokens = {1, 2, 3}, max_tokens = 2, ignore_end = true}
  prefill(model)
  idle(seconds or 10)
  model:close()
  return 0
end

return bench_loop
