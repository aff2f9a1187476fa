--- Error objects: tables with code, text, actor, cause, traceback and a readable tostring.
-- Knows the codes of core/errors.def; raises nothing itself.
-- @module weir.errors
local core = require "weir.core"

local errors = {}

local meta = {__name = "weir.error"}

local function line(e)
  local text = tostring(e.code) .. ": " .. tostring(e.text)
  return e.actor and text .. " (in " .. tostring(e.actor) .. ")" or text
end

function meta.__tostring(e)
  local parts, depth = {line(e)}, 0
  while type(e.cause) == "table" and depth < 16 do
    e, depth = e.cause, depth + 1
    parts[#parts + 1] = "caused by " .. line(e)
  end
  return table.concat(parts, "\n  ")
end

--- Makes an error object; raise it with `error(e)`.
-- @tparam string code a name from core/errors.def ("EINVAL")
-- @tparam string text names the culprit
-- @tparam[opt] table fields further fields: actor, cause, traceback
-- @treturn table the error
function errors.new(code, text, fields)
  local e = {code = code, text = text}
  for k, v in pairs(fields or {}) do
    e[k] = v
  end
  return setmetatable(e, meta)
end

--- Whether a value is an error object of weir.
-- @param value anything
-- @tparam[opt] string code only with this code
-- @treturn boolean
function errors.is(value, code)
  return type(value) == "table" and getmetatable(value) == meta and (code == nil or value.code == code)
end

--- Text for any error value: strings as they are, tables with a __tostring by it, others by their type.
-- @param value anything
-- @treturn string
function errors.text(value)
  if type(value) == "string" then
    return value
  end
  local own = type(value) == "table" and getmetatable(value)
  if own and type(own) == "table" and own.__tostring then
    local ok, text = pcall(tostring, value)
    if ok and type(text) == "string" then
      return text
    end
  end
  return "error value of type " .. type(value)
end

--- An error object of any error value, with a traceback if it has none (and does not refuse one: traceback = false).
-- @param value anything
-- @tparam[opt] string traceback
-- @treturn table the error
function errors.wrap(value, traceback)
  if errors.is(value) then
    local copy = {}
    for k, v in pairs(value) do
      copy[k] = v
    end
    if copy.traceback == nil then
      copy.traceback = traceback
    end
    return setmetatable(copy, meta)
  end
  return errors.new("ELUA", errors.text(value), {traceback = traceback, value = value})
end

--- The whole story of an error: text, causes, tracebacks.
-- @param e an error of any kind
-- @treturn string
function errors.report(e)
  if not errors.is(e) then
    return errors.text(e)
  end
  local parts = {}
  local what = ""
  while e and #parts < 32 do
    parts[#parts + 1] = what .. (e.code == "ELUA" and tostring(e.text) or line(e))
    parts[#parts + 1] = e.traceback or nil
    e, what = e.cause, "caused by "
  end
  return table.concat(parts, "\n")
end

core.register("error", meta)

return errors
