--- What is run before everything ends.
-- @module weir.shutdown
local core = require "weir.core"
local errors = require "weir.errors"
local guard = require "weir.guard"

local shutdown = {}

local hooks = {}

--- Runs fn once before everything ends: see weir.on_shutdown.
-- @tparam function fn
function shutdown.on(fn)
  if type(fn) ~= "function" then
    error(errors.new("ETYPE", "weir.on_shutdown takes a function, got a " .. type(fn)), 2)
  end
  hooks[#hooks + 1] = fn
end

--- Runs what there is, newest first, each once, also what is added meanwhile. Errors are told on standard error.
-- @treturn number how many failed
function shutdown.run()
  local failed = 0
  while #hooks > 0 do
    local ok, e = guard.guarded(function() return table.remove(hooks)() end)
    if not ok then
      failed = failed + 1
      io.stderr:write("weir: on_shutdown: ", errors.report(e), "\n")
    end
  end
  return failed
end

--- The end of a program: waits are possible again after SIGTERM; the hooks run; every actor is asked to stop and has some patience.
-- @tparam number patience seconds
-- @treturn boolean whether all went well
function shutdown.finish(patience)
  core.last_words()
  local failed = shutdown.run()
  local ok, e = true, nil
  if core.made() then
    ok, e = pcall(core.stop_all, patience)
  end
  if not ok then
    io.stderr:write("weir: ", errors.text(e), "\n")
  end
  return failed == 0 and ok
end

return shutdown
