--- Savina's benchmarks of actors, in Lua (weir/savina/*.lua) and in C (bench/ of the binding): what there is, and one run of one, checked.
--
-- One in Lua is a table: name, counts (what the result is), parameters (array of {name, few, full}), start(run, ...), which spawns actors that say
-- run:add(n), and expected(...), the closed form. Mailboxes are bounded: who would send more than a receiver can take waits for its answer.
-- @module weir.savina
local core = require "weir.core"
local weir = require "weir"

local savina = {}

local files = {"sends", "spawns", "meetings", "turns", "calls"}

--- The benchmarks of a language, "c" or "lua": an array of {name, counts, parameters}.
function savina.kinds(lang)
  if lang == "c" then
    return core.bench_kinds()
  end
  local kinds = {}
  for _, file in ipairs(files) do
    for _, kind in ipairs(require("weir.savina." .. file)) do
      kinds[#kinds + 1] = kind
    end
  end
  return kinds
end

--- The values of a benchmark's parameters: small ones, or the suite's.
function savina.parameters(kind, few)
  local values = {}
  for i, parameter in ipairs(kind.parameters) do
    values[i] = few and parameter.few or parameter.full
  end
  return values
end

local Run = {}
Run.__index = Run

function Run:add(n)
  self.value = self.value + n
end

-- Runs fn and gives the first error that an actor died of meanwhile.
local function watched(fn)
  local before, first = weir.uncaught, nil
  weir.uncaught = function(_, e)
    first = first or e
  end
  local ok, e = pcall(fn)
  weir.uncaught = before
  return not ok and e or first
end

-- What is wrong with a run's end; nil: nothing.
local function fault(result, stats)
  if stats.sent ~= stats.handled then
    return ("%d messages sent, %d handled"):format(stats.sent, stats.handled)
  elseif result.value ~= result.expected then
    return ("%.17g, wanted %.17g"):format(result.value, result.expected)
  end
end

local function run_lua(kind, few, seed)
  local p = savina.parameters(kind, few)
  local run = setmetatable({value = 0}, Run)
  weir.shutdown()
  weir.system(seed and {driver = "test", seed = seed} or {})
  collectgarbage()
  local start = weir.now()
  local e = watched(function()
    kind.start(run, unpack(p))
    weir.run()
  end)
  local result = {value = run.value, expected = kind.expected(unpack(p)), seconds = weir.now() - start}
  local stats = weir.stats()
  weir.shutdown()
  result.messages, result.refused = stats.sent + stats.calls_ended, stats.refused
  result.failure = e and weir.report(e) or fault(result, stats)
  return result
end

--- Runs one benchmark. Closes the system of this Lua state before and after one in Lua; one in C has a system of its own.
-- @tparam table kind of savina.kinds
-- @tparam table options few (small parameters), workers (loops beside the main loop, only in C), seed (under the test driver)
-- @treturn table value, expected, messages, refused, seconds, failure (nil: the value is right and every message was handled)
function savina.run(kind, options)
  if kind.start then
    return run_lua(kind, options.few, options.seed)
  end
  return core.bench_run(kind.name, options.few, options.workers, options.seed)
end

return savina
