--- Actors in Lua on other loops: each loop has a Lua state of its own, so modules and messages go there, functions do not.
-- @module weir.loops
local core = require "weir.core"
local coroutines = require "weir.coroutines"
local errors = require "weir.errors"
local guard = require "weir.guard"

local loops = {}

-- The upvalues of a function, as "logger (table), self (userdata)".
local function upvalues(fn)
  local list = {}
  for i = 1, 60 do
    local name, value = debug.getupvalue(fn, i)
    if not name then
      break
    end
    list[i] = ("%s (%s)"):format(name, type(value))
  end
  return #list > 0 and "its upvalues " .. table.concat(list, ", ") .. " stay here" or "it stays here"
end

local function number_of(loop)
  if loop == "any" then
    return core.next_loop()
  elseif loop == "main" then
    return 0
  elseif type(loop) ~= "number" then
    error(errors.new("ETYPE", "loop is a " .. type(loop) .. "; wanted a number (0: the main loop), \"main\" or \"any\""), 0)
  end
  return loop
end

--- Starts an actor that runs require(module)(...) on another loop, in that loop's Lua state. Waits until it has been started.
-- @tparam table options loop (a number from 0, the main loop; "main"; "any": the workers in turn), name, mailbox_messages, mailbox_bytes, full
-- @tparam string module
-- @param ... arguments: values that can travel in a message; copied
-- @return its address. The errors of loading the module are raised here, with their traceback
function loops.spawn(options, module, ...)
  local loop = number_of(options.loop)
  if type(module) == "function" then
    error(errors.new("ETYPE", ("a function cannot move to the Lua state of loop %d: %s; put it into a module"):format(loop, upvalues(module))), 0)
  elseif type(module) ~= "string" then
    error(errors.new("ETYPE", "weir.spawn_with{loop = ...} takes the name of a module, got a " .. type(module)), 0)
  end
  core.check_arguments(...)
  local host = core.host(loop)
  core.call("weir.spawn_with", nil, host, "spawn", package.path, package.cpath, {
    name = options.name or module, mailbox_messages = options.mailbox_messages, mailbox_bytes = options.mailbox_bytes, full = options.full,
    guard = guard.mode(),
  }, module, ...)
  return core.address((core.result(false)))
end

--- The address of an actor that loads a model; it lives on the main loop, whoever asks.
-- @return address
function loops.model()
  if not core.attached then
    return core.model_spawn()
  end
  core.call("weir.load", nil, core.host(0), "model")
  return core.address((core.result(false)))
end

-- What the host of this state's loop runs for loops.spawn.
local function start(path, cpath, options, module, ...)
  package.path, package.cpath = path, cpath
  if core.attached and options.guard then
    guard.guard(options.guard)
  end
  local fn = require(module)
  if type(fn) ~= "function" then
    error(errors.new("ETYPE", ("module %s returned a %s, wanted a function"):format(module, type(fn))), 0)
  end
  options.name = options.name:sub(1, 63)
  return core.spawn(options, fn, ...)
end

local function trace(e)
  return errors.wrap(e, coroutines.traceback(nil, e))
end

core.register("spawn_here", function(...)
  local arguments, n = {...}, select("#", ...)
  local ok, result = xpcall(function() return start(unpack(arguments, 1, n)) end, trace)
  if ok then
    return result
  end
  return nil, result
end)

-- os.exit on another loop's thread would pull the process away from under the others.
if core.attached then
  rawset(os, "exit", function(code)
    core.exit_program((code == nil or code == true) and 0 or code == false and 1 or tonumber(code) or 1)
    if core.inside() then
      return core.exit()
    end
    error(errors.new("ECANCELLED", "os.exit"), 0)
  end)
end

return loops
