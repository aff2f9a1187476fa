--- weir bench actors: runs Savina's benchmarks, each checked, and prints what single messages cost.
-- @module weir.bench_actors
local args = require "weir.args"
local bench_rates = require "weir.bench_rates"
local savina = require "weir.savina"

local bench_actors = {}

local ROUNDS, FEW_ROUNDS = 9, 1

local function wanted(names, name)
  return next(names) == nil or names[name]
end

-- "messages=40000 actors=60"
local function describe(kind, few)
  local words = {}
  for i, value in ipairs(savina.parameters(kind, few)) do
    words[i] = ("%s=%d"):format(kind.parameters[i].name:gsub(" ", "-"), value)
  end
  return table.concat(words, " ")
end

local function run_one(kind, options)
  local r = savina.run(kind, options)
  io.stdout:write(("%-13s %-44s %14.0f %-24s %9.1f ms %9.2f M messages/s%s\n"):format(kind.name, describe(kind, options.few), r.value, kind.counts,
    r.seconds * 1e3, r.messages / r.seconds / 1e6, r.failure and "  WRONG: " .. r.failure or ""))
  io.stdout:flush()
  return r.failure == nil
end

-- How many were run, how many came to something else than they must.
local function run_all(lang, names, options)
  local count, wrong = 0, 0
  for _, kind in ipairs(savina.kinds(lang)) do
    if wanted(names, kind.name) then
      if count == 0 then
        io.stdout:write(lang == "c" and ("\nin C, main loop and %d workers\n"):format(options.workers) or "\nin Lua, main loop\n")
      end
      count = count + 1
      wrong = wrong + (run_one(kind, options) and 0 or 1)
    end
  end
  return count, wrong
end

local function check_names(list)
  local known, names = {rates = true}, {}
  for _, lang in ipairs {"c", "lua"} do
    for _, kind in ipairs(savina.kinds(lang)) do
      known[kind.name] = true
    end
  end
  for _, name in ipairs(list) do
    if not known[name] then
      args.fail("no benchmark is called '%s'; without a name all are run", name)
    end
    names[name] = true
  end
  return names
end

--- Runs the named benchmarks, or all, and the rates.
-- @tparam table list names; "rates" are the costs of single messages
-- @tparam table options small, lang ("c" or "lua"; nil: both), workers
-- @treturn number exit code: 1 if a result is wrong
function bench_actors.run(list, options)
  local names = check_names(list)
  local few = options.small or false
  local count, wrong = 0, 0
  for _, lang in ipairs {"c", "lua"} do
    if options.lang == nil or options.lang == lang then
      local n, bad = run_all(lang, names, {few = few, workers = options.workers or 0})
      count, wrong = count + n, wrong + bad
    end
  end
  if count > 0 then
    io.stdout:write(("%d of %d results are the expected ones\n"):format(count - wrong, count))
  end
  if wanted(names, "rates") then
    bench_rates.run(options.lang, few and FEW_ROUNDS or ROUNDS)
  end
  return wrong == 0 and 0 or 1
end

return bench_actors
