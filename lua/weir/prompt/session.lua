--- What the prompt evaluates in: one environment from line to line. Locals of the top level are the session's variables, the last value is `_`, other names
-- are Lua's globals.
-- @module weir.prompt.session
local chunk = require "weir.prompt.chunk"
local errors = require "weir.errors"
local pretty = require "weir.pretty"
local weir = require "weir"

local session = {}
session.__index = session

-- The environment finds the session's variables first. A variable that is nil hides a global all the same.
local function environment(self)
  local variables = setmetatable({}, {
    __index = function(_, name) return self.values[name] end,
    __newindex = function(_, name, value)
      self.declared[name], self.values[name] = true, value
    end,
  })
  local own = {[chunk.variables] = variables, [chunk.values] = function(...) return ... end}
  return setmetatable({}, {
    __index = function(_, name)
      if self.declared[name] then
        return self.values[name]
      end
      return own[name] or _G[name]
    end,
    __newindex = function(_, name, value)
      local into = self.declared[name] and self.values or _G
      rawset(into, name, value)
    end,
  })
end

--- Makes a session.
-- @tparam[opt] table limits as weir.pretty takes them
function session.new(limits)
  local self = setmetatable({declared = {}, values = {}, limits = limits}, session)
  self.environment = environment(self)
  self:declare("weir", weir)
  self:declare("_", nil)
  return self
end

--- Sets a variable of the session.
function session:declare(name, value)
  self.declared[name], self.values[name] = true, value
end

--- Names of the session's variables and of the globals: a table name -> value.
function session:names()
  local all = {}
  for name, value in pairs(_G) do
    all[name] = value
  end
  for name in pairs(self.declared) do
    all[name] = self.values[name]
  end
  return all
end

--- The value of a dotted name like `weir.spawn` or `m.info`, found without running anybody's code; nil if there is none.
function session:value(path)
  local value
  for i, name in ipairs(path) do
    if i == 1 then
      value = self:names()[name]
    else
      value = session.field(value, name)
    end
    if value == nil then
      return nil
    end
  end
  return value
end

--- A field of a value, also one that its metatable's tables have; nil if only a function could tell.
function session.field(value, name)
  for _ = 1, 16 do
    if type(value) == "table" and rawget(value, name) ~= nil then
      return rawget(value, name)
    end
    local meta = debug.getmetatable(value)
    value = type(meta) == "table" and rawget(meta, "__index") or nil
    if type(value) ~= "table" then
      return nil
    end
  end
  return nil
end

-- What is shown of a traceback: down to the prompt's own calls.
local function cut(traceback)
  local kept = {}
  for line in traceback:gmatch "[^\n]+" do
    if line:find("weir/prompt/session.lua", 1, true) then
      break
    end
    kept[#kept + 1] = line
  end
  kept[#kept] = kept[#kept]:gsub("in function 'fn'$", "in main chunk")
  return #kept > 1 and table.concat(kept, "\n") or nil
end

--- An error as the prompt shows it: text, causes, tracebacks.
function session.report(e)
  if not errors.is(e) then
    return "error: " .. errors.text(e)
  end
  local copy = {}
  for key, value in pairs(e) do
    copy[key] = value
  end
  copy.traceback = e.traceback and cut(e.traceback) or nil
  if e.code == "ECANCELLED" and e.text == "interrupted" then
    return "interrupted" .. (copy.traceback and "\n" .. copy.traceback or "")
  end
  return "error: " .. errors.report(setmetatable(copy, getmetatable(e)))
end

local function pack(...)
  return {n = select("#", ...), ...}
end

-- Runs a chunk and words what it returns; inside the guard.
local function run(self, fn, how)
  local results = pack(fn())
  if results.n == 0 then
    return nil
  end
  if how == "expression" and results[1] ~= nil then
    self:declare("_", results[1])
  elseif how == "expression" and results.n == 1 then
    return "nil"
  end
  local texts = {}
  for i = 1, results.n do
    texts[i] = pretty.show(results[i], self.limits)
  end
  return table.concat(texts, "\n")
end

--- Evaluates what was entered. In a main chunk; an interrupt ends it.
-- @tparam string source
-- @treturn ?string what to show of the values
-- @treturn ?string what to show of an error
function session:evaluate(source)
  local fn, how, complaint = chunk.compile(source)
  if not fn then
    return nil, "error: " .. (complaint or "unfinished"):gsub("^prompt:", "line ")
  end
  setfenv(fn, self.environment)
  local ok, result = weir.guarded(run, self, fn, how)
  if ok then
    return result, nil
  end
  return nil, session.report(result)
end

return session
