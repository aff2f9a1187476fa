--- What one rendering may use, and where it is: steps, output, depth of calls, the template's line. Raises the failures that a rendering ends with. A rendering
-- never waits, so there is one at a time in a Lua state; starting one forgets what another left behind.
-- @module weir.jinja.run
local run = {}

-- Defaults of the limits. A step is about one node evaluated, 16 bytes of text made or one element of a list.
run.defaults = {
  steps = 5e6, -- about half a second
  output = 16 * 2 ^ 20, -- bytes that are printed, those of blocks and macros included; also of any one text
  depth = 100, -- macros and loops that call each other
}

local Failure = {}
Failure.__tostring = function(e) return e.message end

run.line = 0

--- Begins a rendering.
-- @tparam[opt] table limits steps, output, depth
-- @tparam number|nil now seconds since 1970 for strftime_now
function run.start(limits, now)
  limits = limits or {}
  run.left = limits.steps or run.defaults.steps
  run.room = limits.output or run.defaults.output
  run.limit = run.room
  run.calls = limits.depth or run.defaults.depth
  run.now = now
  run.line = 0
  run.out = {n = 0}
end

--- Ends the rendering (or the parsing) with a message.
function run.fail(text, ...)
  error(setmetatable({message = select("#", ...) > 0 and text:format(...) or text}, Failure), 0)
end

--- Ends the rendering with a text that the template gives.
function run.raise(text)
  error(setmetatable({message = text, raised = true}, Failure), 0)
end

function run.is_failure(e)
  return getmetatable(e) == Failure
end

--- Pays for n steps.
function run.spend(n)
  local left = run.left - n
  run.left = left
  if left < 0 or left ~= left then
    run.fail "too many steps: the template does not end, or is meant for less"
  end
end

--- Pays for a text of n bytes before it is made.
function run.spend_text(n)
  if n > run.limit or n ~= n then
    run.fail("a text of %.0f bytes is longer than the limit of %.0f", n, run.limit)
  end
  run.spend(n / 16 + 1)
end

--- Pays for looking through n bytes.
function run.spend_scan(n)
  run.spend(n / 128)
end

--- Prints a value of text.
-- @param value as weir.jinja.text has it
-- @tparam number size in bytes
function run.emit(value, size)
  local out = run.out
  local n = out.n + 1
  out[n], out.n = value, n
  run.room = run.room - size
  if run.room < 0 then
    run.fail("the output is longer than the limit of %.0f bytes", run.limit)
  end
end

--- Enters a call of a macro or of a loop; leave with run.leave.
function run.enter()
  run.calls = run.calls - 1
  if run.calls < 0 then
    run.fail "macros or loops call each other too deeply"
  end
end

function run.leave()
  run.calls = run.calls + 1
end

return run
