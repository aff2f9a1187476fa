--- Lets a wait inside a coroutine that a script made reach the actor's scheduler: coroutine.resume and coroutine.wrap are replaced by versions that hand
-- the suspension on to whoever resumed them, and resume inward again. Also keeps what tracebacks need, and names the calls that nothing can yield across.
-- @module weir.coroutines
local core = require "weir.core"

local raw_resume, raw_yield, raw_create = coroutine.resume, coroutine.yield, coroutine.create
local running, status, raw_traceback = coroutine.running, coroutine.status, debug.traceback
local token, rawequal, error = core.token, rawequal, error

local coroutines = {
  raw_resume = raw_resume, raw_yield = raw_yield, -- LuaJIT's own: a wait inside does not pass through them
}

-- The coroutine that resumed each one that runs or waits.
local parents = setmetatable({}, {__mode = "k"})
core.register("parents", parents)

-- The last error that left an inner coroutine, and where it came from.
local trail = {}

local function pass(co, ...)
  local ok, first = ...
  if ok then
    if rawequal(first, token) then
      return pass(co, raw_resume(co, raw_yield(token)))
    end
  else
    local inner = rawequal(trail.error, first) and trail.text
    trail.error, trail.text = first, (inner and inner .. "\n" or "") .. raw_traceback(co)
  end
  parents[co] = nil
  return ...
end

local function resume(co, ...)
  local parent = type(co) == "thread" and parents[co]
  if parent and status(co) == "suspended" then
    return false, "cannot resume a coroutine that waits in weir"
  elseif parent or type(co) ~= "thread" then
    return raw_resume(co, ...)
  end
  parents[co] = running() or true
  return pass(co, raw_resume(co, ...))
end

local function unwrap(ok, ...)
  if ok then
    return ...
  end
  error((...), 0)
end

function coroutine.resume(co, ...)
  return resume(co, ...)
end

function coroutine.wrap(fn)
  local co = raw_create(fn)
  return function(...)
    return unwrap(resume(co, ...))
  end
end

-- A negative level would make LuaJIT walk for hours.
function debug.traceback(...)
  local thread = type((...)) == "thread"
  local message, level = select(thread and 2 or 1, ...)
  if type(level) == "number" and level < 0 then
    if thread then
      return raw_traceback((...), message, 0)
    end
    return raw_traceback(message, 0)
  end
  return raw_traceback(...)
end

--- The traceback of a coroutine that failed with `value`: of the innermost one that the error came through first, then outward.
function coroutines.traceback(co, value)
  local inner = value ~= nil and rawequal(trail.error, value) and trail.text
  trail.error, trail.text = nil, nil
  local outer = type(co) == "thread" and raw_traceback(co) or raw_traceback("", 3):gsub("^\n", "")
  return inner and inner .. "\n" .. outer or outer
end

-- Names of the C functions of the standard library; false for those that let a yield pass.
local names = {}
for _, library in ipairs {"string", "table", "math", "io", "os", "debug", "package", "bit", "jit"} do
  for name, value in pairs(_G[library] or {}) do
    if type(value) == "function" then
      names[value] = library .. "." .. name
    end
  end
end
for name, value in pairs(_G) do
  if type(value) == "function" then
    names[value] = name
  end
end
for _, value in ipairs {pcall, tostring, raw_resume, raw_yield, status, running} do
  names[value] = false
end
for _, value in pairs(core) do
  if type(value) == "function" then
    names[value] = false
  end
end
core.register("names", names)

return coroutines
