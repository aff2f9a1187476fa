--- Waiting for calls that were begun with `weir.start`: for one, for all, for any.
-- A call that has ended keeps its outcome: it can be asked for again, by anybody. While it is open only the actor that began it can wait for it, and in one
-- place only (EBUSY). Dropping the pending object, or the end of its actor, cancels the call.
-- @module weir.await
local core = require "weir.core"
local errors = require "weir.errors"

local core_await, core_outcome, core_order = core.await, core.outcome, core.order

local await = {}

local function pack(...)
  return {n = select("#", ...), ...}
end

local function late(what, timeout)
  error(errors.new("ETIMEOUT", ("%s: no end within %g s"):format(what, timeout)), 0)
end

local function settle(what, timeout, ...)
  local ok = ...
  if ok then
    return select(2, ...)
  elseif ok == false then
    error((select(2, ...)), 0)
  end
  late(what, timeout)
end

--- Waits for a call.
-- @param p what weir.start returned
-- @tparam[opt] number timeout seconds; then ETIMEOUT is raised, the call goes on and can be waited for again
-- @return the values of the reply; the call's error is raised
function await.await(p, timeout)
  core_await({p}, 1, false, timeout, "weir.await")
  return settle("weir.await", timeout, core_outcome(p))
end

local function quiet(timeout, ok, ...)
  if ok == nil then
    return nil, errors.new("ETIMEOUT", ("weir.try_await: no end within %g s"):format(timeout))
  elseif ok then
    return ...
  end
  return nil, (...)
end

--- As await, but returns nil and the error, also when the timeout passes.
-- @param p what weir.start returned
-- @tparam[opt] number timeout seconds
-- @return the values, or nil and the error
function await.try_await(p, timeout)
  core_await({p}, 1, false, timeout, "weir.try_await")
  return quiet(timeout, core_outcome(p))
end

-- The list may change while its waiter sleeps.
local function copy(what, list)
  if type(list) ~= "table" then
    error(errors.new("ETYPE", what .. " takes an array of what weir.start returns, got a " .. type(list)), 3)
  end
  local own = {}
  for i, p in ipairs(list) do
    own[i] = p
  end
  return own
end

--- Waits until all of the calls have ended.
-- @tparam table list pending calls
-- @tparam[opt] number timeout seconds for all together; then ETIMEOUT is raised and the calls go on
-- @treturn table an array of the replies, in the order of the list: each an array of values with their count as n. If calls failed, the error of the first of
-- them in the list is raised, after all have ended
function await.await_all(list, timeout)
  list = copy("weir.await_all", list)
  core_await(list, #list, false, timeout, "weir.await_all")
  local results, failed = {}, nil
  for i, p in ipairs(list) do
    local result = pack(core_outcome(p))
    if result.n == 0 then
      late("weir.await_all", timeout)
    elseif result[1] then
      results[i] = pack(unpack(result, 2, result.n))
    else
      failed = failed or result
    end
  end
  if failed then
    error(failed[2], 0)
  end
  return results
end

local function first_of(list)
  local first, least
  for i, p in ipairs(list) do
    local order = core_order(p)
    if order and (not least or order < least) then
      first, least = i, order
    end
  end
  return first
end

local function numbered(i, ok, ...)
  if ok then
    return i, ...
  end
  local e = (...)
  e.index = i
  error(e, 0)
end

--- Waits until one of the calls has ended; the others go on.
-- @tparam table list pending calls, at least one
-- @tparam[opt] number timeout seconds; then ETIMEOUT is raised
-- @return the place in the list of the call that ended first, and the values of its reply; if it failed its error is raised, with the place as `index`
function await.await_any(list, timeout)
  list = copy("weir.await_any", list)
  if #list == 0 then
    error(errors.new("EINVAL", "weir.await_any of no call would wait forever"), 2)
  end
  core_await(list, #list, true, timeout, "weir.await_any")
  local first = first_of(list)
  if not first then
    late("weir.await_any", timeout)
  end
  return numbered(first, core_outcome(list[first]))
end

return await
