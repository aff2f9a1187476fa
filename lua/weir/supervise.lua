--- Supervisors: actors that start others, keep them running and stop them in order.
-- A child's address changes with each restart; a name that its start registers (`weir.register`) finds it always, and every function that takes an address takes
-- that name. A failed child's mailbox is gone with it; a restart waits until its work on devices has drained. Stopping the supervisor stops its children, last
-- first; killing it takes them along.
-- @module weir.supervise
local core = require "weir.core"
local errors = require "weir.errors"
local coroutines = require "weir.coroutines"

local strategies = {["one-for-one"] = 0, ["one-for-all"] = 1}
local restarts = {always = 0, ["on-error"] = 1, never = 2}
local option_keys = {
  name = "string", strategy = "string", intensity = "number", period = "number", backoff = "number", backoff_most = "number", drain = "number",
  children = "table",
}
local child_keys = {name = "string", start = true, args = "table", restart = "string", patience = "number"}

local function refuse(code, ...)
  error(errors.new(code, "weir.supervise: " .. string.format(...)), 0)
end

local function check_keys(what, t, keys)
  if type(t) ~= "table" then
    refuse("ETYPE", "%s is a %s, wanted a table", what, type(t))
  end
  for key, value in pairs(t) do
    local wanted = keys[key]
    if not wanted then
      refuse("EINVAL", "%s has no option %s", what, tostring(key))
    elseif wanted ~= true and type(value) ~= wanted then
      refuse("ETYPE", "%s: %s is a %s, wanted a %s", what, key, type(value), wanted)
    end
  end
end

local function choice(what, key, value, default, choices, text)
  local number = choices[value or default]
  if not number then
    refuse("EINVAL", "%s: %s is \"%s\", wanted %s", what, key, value, text)
  end
  return number
end

-- Seconds to ns. nil: 0, which stands for the default; 0: 1 ns.
local function duration(what, t, key)
  local seconds = t[key]
  if seconds == nil then
    return 0
  elseif not (seconds >= 0 and seconds <= 9e9) then
    refuse("EINVAL", "%s: %s is %g s, wanted 0 to 9e9", what, key, seconds)
  end
  return math.max(1, math.ceil(seconds * 1e9))
end

local function trace(value)
  return errors.wrap(value, coroutines.traceback(coroutine.running(), value))
end

-- The address object of what a start returned.
local function resolve(a)
  if a == nil then
    error(errors.new("ETYPE", "its start returned nothing, wanted the address of an actor"), 0)
  elseif type(a) ~= "string" then
    return core.address(a)
  end
  return core.whereis(a) or error(errors.new("ENOACTOR", ("its start returned \"%s\": no actor is registered as that"):format(a)), 0)
end

-- A function without arguments: true and an address, or false and an error with a traceback.
local function starter(weir, child)
  local start, args = child.start, child.args or {}
  local n = table.maxn(args)
  local function run()
    if type(start) == "string" then
      return weir.spawn_with({name = child.name}, start, unpack(args, 1, n))
    end
    return resolve(start(unpack(args, 1, n)))
  end
  return function()
    return xpcall(run, trace)
  end
end

local function checked(weir, i, child)
  local what = "child " .. i
  check_keys(what, child, child_keys)
  if not child.name or child.name == "" then
    refuse("EINVAL", "%s has no name", what)
  end
  what = what .. " (" .. child.name .. ")"
  if type(child.start) ~= "function" and type(child.start) ~= "string" then
    refuse("ETYPE", "%s: start is a %s, wanted a function or the name of a module", what, type(child.start))
  end
  local patience = duration(what, child, "patience")
  return {
    name = child.name,
    start = starter(weir, child),
    restart = choice(what, "restart", child.restart, "always", restarts, '"always", "on-error" or "never"'),
    patience = child.patience == 0 and -1 or patience,
  }
end

--- Starts a supervisor. Its children start in its own first turn; if one of them fails to start it stops those that run and ends with that error.
-- Verb `children` of the supervisor: an array of {name, address or 0, restarts, state}; state is "running", "stopping", "draining", "waiting" or "ended".
-- @function supervise
-- @tparam table options name; strategy: "one-for-one" (the default) or "one-for-all" (when one ends the others are stopped, last first, and all start anew);
-- intensity: restarts within period that are borne, one more ends the supervisor with an error (3); period: seconds (5); backoff: seconds before a restart,
-- doubled for each further one within period (at once, then from 0.01); backoff_most: seconds (10); drain: seconds to wait for work that a dead child left on
-- devices (10); children: an array of {name; start: a function that returns an address, or the name of a module that returns the actor's function; args: an array of
-- arguments for it; restart: "always" (the default), "on-error" or "never"; patience: seconds between asking a child to stop and killing it (5), 0: kills at once}.
-- A start function must not wait; an error in it, with its traceback, is a failed start
-- @return the supervisor's address
return function(options)
  local weir = require "weir"
  check_keys("the options", options, option_keys)
  local children = {}
  for i, child in ipairs(options.children or {}) do
    children[i] = checked(weir, i, child)
  end
  local intensity = options.intensity
  if intensity and not (intensity >= 1 and intensity <= 10000 and intensity % 1 == 0) then
    refuse("EINVAL", "intensity is %g, wanted 1 to 10000", intensity)
  end
  return core.supervise({
    name = options.name,
    strategy = choice("the options", "strategy", options.strategy, "one-for-one", strategies, '"one-for-one" or "one-for-all"'),
    intensity = intensity,
    period = duration("the options", options, "period"),
    backoff = duration("the options", options, "backoff"),
    backoff_most = duration("the options", options, "backoff_most"),
    drain = duration("the options", options, "drain"),
  }, children)
end
