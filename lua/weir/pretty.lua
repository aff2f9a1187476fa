--- Values as text for people: strings quoted, tables nested within limits, weir's own objects by what they are.
-- @module weir.pretty
local ffi = require "ffi"
local core = require "weir.core"
local errors = require "weir.errors"
local width = require "weir.editor.width"

local pretty = {}

local defaults = {width = 100, depth = 4, items = 60, bytes = 2000, total = 20000}

local function thousands(n)
  local text = ("%d"):format(n)
  return (text:reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", ""))
end

-- ---- strings and numbers ----

local escapes = {["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\\"] = "\\\\", ['"'] = '\\"', ["\27"] = "\\27", ["\0"] = "\\0"}

local function escaped_bytes(text)
  return (text:gsub('[%c\\"]', function(c) return escapes[c] or ("\\%03d"):format(c:byte()) end))
end

-- Escapes what is no UTF-8 and what a terminal would obey.
local function escape(text)
  if not text:find "[\128-\255]" then
    return escaped_bytes(text)
  end
  local parts, at = {}, 1
  while at <= #text do
    local n = width.sequence(text, at)
    local part = text:sub(at, at + math.max(n or 1, 1) - 1)
    if n and n > 0 and not (n == 2 and part:find "^\194[\128-\159]") then
      parts[#parts + 1] = n == 1 and escaped_bytes(part) or part
    else
      parts[#parts + 1] = (part:gsub(".", function(c) return ("\\%03d"):format(c:byte()) end))
    end
    at = at + #part
  end
  return table.concat(parts)
end

local function show_string(text, limits)
  if #text <= limits.bytes then
    return '"' .. escape(text) .. '"'
  end
  local cut = limits.bytes
  while cut > limits.bytes - 4 and width.sequence(text, cut) == nil do
    cut = cut - 1
  end
  if (width.sequence(text:sub(1, cut), cut) or 0) == 0 then
    cut = cut - 1
  end
  return ('"%s"... (%s bytes)'):format(escape(text:sub(1, cut)), thousands(#text))
end

local function show_number(n)
  if n ~= n then
    return "nan"
  elseif n == math.huge or n == -math.huge then
    return n > 0 and "inf" or "-inf"
  elseif n % 1 == 0 and math.abs(n) < 2 ^ 53 then
    return ("%.0f"):format(n)
  end
  return ("%.14g"):format(n)
end

-- ---- weir's objects ----

--- An address with its actor's name, or "dead".
function pretty.address(address)
  local ok, stats = pcall(core.actor_stats, address)
  return ok and ("actor %d (%s)"):format(address:id(), stats.name) or ("actor %d (dead)"):format(address:id())
end

local function significant(x)
  return ("%.4g"):format(x)
end

--- A tensor: type, shape, what its elements are like, the first of them.
function pretty.tensor(t)
  local n = 1
  for _, size in ipairs(t.shape) do
    n = n * size
  end
  local head = ("tensor %s [%s]"):format(t.dtype, table.concat(t.shape, ", "))
  if n == 0 then
    return head
  end
  local s = core.statistics(ffi.cast("void *", t.data), t.dtype, n)
  local parts = {head}
  if s.finite > 0 then
    parts[2] = (" min %s max %s mean %s std %s"):format(significant(s.min), significant(s.max), significant(s.mean), significant(s.std))
  end
  for _, name in ipairs {"nan", "inf"} do
    parts[#parts + 1] = s[name] > 0 and (" %s %s"):format(thousands(s[name]), name) or nil
  end
  local shown = {}
  for i = 1, math.min(n, 4) do
    shown[i] = significant(tonumber(t.data[i - 1]))
  end
  return ("%s {%s%s}"):format(table.concat(parts), table.concat(shown, ", "), n > 4 and (", ... %s more"):format(thousands(n - 4)) or "")
end

local function show_buffer(b)
  local ok, size = pcall(b.size, b)
  if not ok then
    return "buffer (closed)"
  end
  local hex = b:string(0, math.min(size, 16)):gsub(".", function(c) return ("%02x "):format(c:byte()) end):gsub(" $", "")
  return ("buffer of %s bytes {%s%s}"):format(thousands(size), hex, size > 16 and " ..." or "")
end

local function show_model(model)
  local info = model.info or {}
  return ("model %s: %s, %s layers, width %s, vocabulary %s%s"):format(
    tostring(info.name or info.file or "?"), tostring(info.family or info.architecture or "?"), tostring(info.layers), tostring(info.width),
    tostring(info.vocab), model.closed and " (closed)" or "")
end

local function show_generation(it)
  local ended = it.finish and ("ended: " .. tostring(it.finish.reason)) or it.state and not it.state.open and "closed" or "open"
  return ("generation, %d tokens, %s"):format(#it.tokens, ended)
end

-- What a metatable of weir's stands for: a function that shows its values, or nil. Modules that nobody loaded have no values either.
local function special(value, meta)
  local model = package.loaded["weir.model"]
  local name = rawget(meta, "__name")
  if name == "weir.address" then
    return pretty.address
  elseif name == "weir.buffer" then
    return show_buffer
  elseif model and meta == model then
    return show_model
  elseif type(value) == "table" and rawget(value, "dtype") and rawget(value, "shape") and type(rawget(value, "data")) == "cdata" then
    return pretty.tensor
  elseif type(value) == "table" and rawget(value, "tokens") and rawget(value, "state") and rawget(value, "guard") then
    return show_generation
  end
  return nil
end

-- ---- functions and other opaque values ----

local function show_function(fn)
  local info = debug.getinfo(fn, "S")
  if info.what == "C" then
    return tostring(fn)
  end
  return ("function: %s:%d"):format(info.short_src:match "[^/]*$", info.linedefined)
end

local function with_tostring(value)
  local ok, text = pcall(tostring, value)
  return ok and type(text) == "string" and text or ("%s whose __tostring fails"):format(type(value))
end

local function show_cdata(value)
  local text = with_tostring(value)
  local ok, number = pcall(function() return ffi.istype("int64_t", value) or ffi.istype("uint64_t", value) end)
  return ok and number and text or text:gsub("^cdata", "cdata", 1)
end

-- ---- tables ----

local show

local ranks = {number = 1, string = 2}

-- Keys that are not of the array 1..n: numbers, strings, others.
local function sorted_keys(t, n)
  local keys = {}
  for key in next, t do
    if not (type(key) == "number" and key >= 1 and key <= n and key % 1 == 0) then
      keys[#keys + 1] = key
    end
  end
  table.sort(keys, function(a, b)
    local x, y = ranks[type(a)] or 3, ranks[type(b)] or 3
    if x ~= y then
      return x < y
    elseif x < 3 then
      return a < b
    end
    return tostring(a) < tostring(b)
  end)
  return keys
end

local function show_key(key, state)
  if type(key) == "string" and key:find "^[%a_][%w_]*$" and not require "weir.lexer".keywords[key] then
    return key
  end
  return "[" .. show(key, state, state.limits.depth) .. "]"
end

-- The parts of a table, as many as the limits allow.
local function items_of(t, state, depth)
  local items, limit = {}, state.limits.items
  local n = 0
  while rawget(t, n + 1) ~= nil do
    n = n + 1
  end
  for i = 1, math.min(n, limit) do
    items[i] = show(rawget(t, i), state, depth + 1)
  end
  local keys = sorted_keys(t, n)
  for _, key in ipairs(keys) do
    if #items >= limit then
      break
    end
    items[#items + 1] = show_key(key, state) .. " = " .. show(rawget(t, key), state, depth + 1)
  end
  if n + #keys > #items then
    items[#items + 1] = ("... %s more"):format(thousands(n + #keys - #items))
  end
  return items
end

-- Items on one line if they fit, filled lines if they are short, else one a line.
local function lay_out(items, state, depth)
  local line, longest = "{" .. table.concat(items, ", ") .. "}", 0
  for _, item in ipairs(items) do
    longest = math.max(longest, item:find("\n", 1, true) and math.huge or #item)
  end
  local room = state.limits.width - 2 * depth
  if longest < math.huge and #line <= room then
    return line
  end
  local indent, rows, row = ("  "):rep(depth + 1), {}, nil
  for i, item in ipairs(items) do
    local text = item .. (i < #items and "," or "")
    if row and longest <= 12 and #row + #text + 1 <= room - 2 then
      row = row .. " " .. text
    else
      rows[#rows + 1] = row
      row = text
    end
  end
  rows[#rows + 1] = row
  return "{\n" .. indent .. table.concat(rows, "\n" .. indent) .. "\n" .. ("  "):rep(depth) .. "}"
end

local function show_table(t, state, depth)
  if state.open[t] then
    return "<cycle>"
  elseif next(t) == nil then
    return "{}"
  elseif depth >= state.limits.depth or state.budget <= 0 then
    local n = 0
    for _ in next, t do
      n = n + 1
    end
    return ("{... %s}"):format(thousands(n))
  end
  state.open[t] = true
  local text = lay_out(items_of(t, state, depth), state, depth)
  state.open[t] = nil
  state.budget = state.budget - #text
  return text
end

function show(value, state, depth)
  local kind = type(value)
  local meta = (kind == "table" or kind == "userdata") and debug.getmetatable(value)
  if kind == "string" then
    return show_string(value, depth == 0 and state.limits or {bytes = math.min(state.limits.bytes, 200)})
  elseif kind == "number" then
    return show_number(value)
  elseif value == core.null then
    return "null"
  elseif kind == "function" then
    return show_function(value)
  elseif kind == "cdata" then
    return show_cdata(value)
  elseif type(meta) == "table" then
    local as = special(value, meta)
    if as then
      local ok, text = pcall(as, value)
      return ok and text or ("%s (cannot be shown: %s)"):format(kind, errors.text(text))
    elseif errors.is(value) then
      return depth == 0 and errors.report(value) or with_tostring(value)
    elseif rawget(meta, "__tostring") then
      return (rawget(meta, "__name") and tostring(rawget(meta, "__name")) .. " " or "") .. with_tostring(value)
    end
  end
  if kind == "table" then
    return show_table(value, state, depth)
  end
  return with_tostring(value)
end

--- A value as text.
-- @param value anything
-- @tparam[opt] table limits width (columns, 100), depth (nested tables, 4), items (of one table, 60), bytes (of a string, 2,000), total (bytes of the whole,
-- 20,000); what is cut says how much more there is
function pretty.show(value, limits)
  limits = setmetatable(limits or {}, {__index = defaults})
  local text = show(value, {limits = limits, open = {}, budget = limits.total}, 0)
  if #text <= 2 * limits.total then
    return text
  end
  return ("%s\n... (%s bytes)"):format(text:sub(1, 2 * limits.total), thousands(#text))
end

return pretty
