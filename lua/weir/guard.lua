--- Guard mode: Lua code that does not pause is noticed, and ended if so wished.
-- @module weir.guard
local core = require "weir.core"
local coroutines = require "weir.coroutines"
local errors = require "weir.errors"

local guard = {}

local compiling -- whether the compiler was on before guard mode
local mode -- what guard mode was turned on with; nil: it is off

local function compiler(on)
  if on then
    jit.on()
  else
    jit.off()
    jit.flush()
  end
end

--- Turns guard mode on or off in this Lua state. In guard mode everything is interpreted, and a stretch of Lua code (of an actor, or of a main chunk between two
-- waits) that runs longer than the limit is told to `weir.slow` once, and ended with EKILLED if kill is set. pcall does not hold that up.
-- @tparam table|boolean options limit (seconds; default 1; 0: none, only interrupts), kill (default false); false: off
function guard.guard(options)
  if options == false then
    core.guard(nil)
    if compiling then
      compiler(true)
    end
    compiling, mode = nil, nil
    return
  end
  options = options or {}
  if type(options) ~= "table" then
    error(errors.new("ETYPE", "weir.guard takes a table of options or false, got a " .. type(options)), 2)
  end
  for name in pairs(options) do
    if name ~= "limit" and name ~= "kill" then
      error(errors.new("EINVAL", "weir.guard has no option '" .. tostring(name) .. "'"), 2)
    end
  end
  core.guard(options.limit or 1, options.kill or false)
  mode = {limit = options.limit, kill = options.kill}
  if compiling == nil then
    compiling = jit.status()
  end
  compiler(false)
end

--- What guard mode was turned on with.
-- @treturn table|nil options as guard takes them; nil: it is off
function guard.mode()
  return mode
end

--- Turns the runtime's watchdog on or off. It looks at all loops from a thread of its own, costs nothing that is compiled, and says which actor has been handling
-- which message for how long; it sees no Lua and stops nothing. Only in the main loop's state.
-- @tparam number|boolean limit seconds; false: off
-- @tparam[opt] boolean quiet nothing is written to standard error
function guard.watchdog(limit, quiet)
  core.watchdog(limit or 0, quiet)
end

--- What the watchdog has reported since this was asked last (the latest 64).
-- @treturn table an array of {address, name, verb, elapsed}
function guard.slow_handlers()
  return core.watchdog_reports()
end

local function outcome(ok, ...)
  if ok then
    return true, ...
  end
  local value, co = ...
  return false, errors.wrap(value, co and coroutines.traceback(co, value) or nil)
end

--- Runs fn(...) as an evaluation of its own, in a main chunk: like pcall, but an interrupt or the guard ends it here for good, whatever it catches itself.
-- @tparam function fn
-- @param ... its arguments
-- @return true and its results, or false and an error object with a traceback
function guard.guarded(fn, ...)
  return outcome(core.guarded(fn, ...))
end

return guard
