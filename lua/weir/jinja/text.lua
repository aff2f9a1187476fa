--- Texts that know where they come from. A plain Lua string is data: it came from the conversation. A marked text also has bytes that came from the template:
-- control tokens may be recognised there. Every operation here keeps each byte's mark. A text may also be safe, as jinja2's Markup is (see weir.jinja.markup).
-- Knows no characters, only bytes.
-- @module weir.jinja.text
local run = require "weir.jinja.run"

local text = {}

-- s: the bytes; marks: true (all from the template), false (all data) or a string as long as s, "t" for each byte from the template and "d" for data; safe: true or nil.
-- What is all data and not safe, or empty and not safe, is a plain string instead.
local Marked = {}

local function is_marked(v)
  return getmetatable(v) == Marked
end

--- Text of the template itself.
function text.literal(s)
  return s == "" and s or setmetatable({s = s, marks = true}, Marked)
end

local function make(s, marks, safe)
  if type(marks) == "string" and not marks:find("d", 1, true) then
    marks = true
  elseif type(marks) == "string" and not marks:find("t", 1, true) then
    marks = false
  end
  if not safe and (s == "" or not marks) then
    return s
  end
  return setmetatable({s = s, marks = marks or false, safe = safe or nil}, Marked)
end

function text.is(v)
  return type(v) == "string" or is_marked(v)
end

--- Whether all of a text comes from the template.
function text.is_literal(v)
  return text.raw(v) == "" or is_marked(v) and v.marks == true
end

--- Whether a text is safe.
function text.is_safe(v)
  return is_marked(v) and v.safe or false
end

--- A text as a safe one.
function text.safe(v)
  return text.is_safe(v) and v or make(text.raw(v), is_marked(v) and v.marks, true)
end

--- A text as one that is not safe.
function text.plain(v)
  return text.is_safe(v) and make(v.s, v.marks) or v
end

--- The bytes of a text; nil if v is none.
function text.raw(v)
  if type(v) == "string" then
    return v
  end
  return is_marked(v) and v.s or nil
end

--- Another text in the place of v that was made of v as a whole: from the template if all of v is.
function text.like(v, s)
  if type(v) == "string" then
    return s
  end
  return make(s, v.marks == true or #s == #v.s and v.marks, v.safe)
end

--- Bytes i to j.
function text.sub(v, i, j)
  if type(v) == "string" then
    v = v:sub(i, j)
    run.spend(#v / 16 + 1)
    return v
  end
  local s, marks = v.s:sub(i, j), v.marks
  run.spend(#s / 16 + 1)
  return make(s, type(marks) == "string" and marks:sub(i, j) or marks, v.safe)
end

local function marks_of(v, size)
  if type(v) == "string" or not v.marks then
    return ("d"):rep(size)
  end
  return v.marks == true and ("t"):rep(size) or v.marks
end

-- Whether all pieces are data ("d"), all from the template ("t"), or "mixed"; and their bytes.
local function survey(pieces, n)
  local kind, size = nil, 0
  for i = 1, n do
    local v = pieces[i]
    local raw = type(v) == "string" and v or v.s
    if raw ~= "" then
      local own = (type(v) == "string" or not v.marks) and "d" or v.marks == true and "t" or "mixed"
      kind = (kind == nil or kind == own) and own or "mixed"
      size = size + #raw
    end
  end
  return kind or "d", size
end

--- Texts one behind the other; not safe, whatever they are.
-- @tparam table pieces array of texts
-- @tparam[opt] number n how many
function text.concat(pieces, n)
  n = n or #pieces
  local kind, size = survey(pieces, n)
  run.spend(n)
  run.spend_text(size)
  local raws = {}
  for i = 1, n do
    raws[i] = type(pieces[i]) == "string" and pieces[i] or pieces[i].s
  end
  local s = table.concat(raws)
  if kind == "d" then
    return s
  elseif kind == "t" then
    return text.literal(s)
  end
  local marks = {}
  for i = 1, n do
    marks[i] = marks_of(pieces[i], #raws[i])
  end
  return make(s, table.concat(marks))
end

--- n times the same text.
function text.rep(v, n)
  local s = text.raw(v)
  if n < 1 or s == "" then
    return make("", false, text.is_safe(v))
  end
  run.spend_text(#s * n)
  if type(v) == "string" then
    return s:rep(n)
  end
  return make(s:rep(n), type(v.marks) == "string" and v.marks:rep(n) or v.marks, v.safe)
end

--- n spaces that the template asked for.
function text.spaces(n)
  return text.rep(text.literal " ", n)
end

-- Calls fn(first, last, special) for each stretch of equal marks.
local function each_stretch(marks, fn)
  local at = 1
  while at <= #marks do
    local own = marks:sub(at, at)
    local stop = marks:find(own == "t" and "d" or "t", at, true) or #marks + 1
    fn(at, stop - 1, own == "t")
    at = stop
  end
end

--- A text whose stretches of equal marks went through fn, each with its mark.
-- @param v a text
-- @tparam function fn what it makes of a string is the same for the whole as for pieces
function text.map(v, fn)
  if type(v) == "string" or type(v.marks) ~= "string" then
    return text.like(v, fn(text.raw(v)))
  end
  local pieces = {}
  each_stretch(v.marks, function(first, last, special)
    local s = fn(v.s:sub(first, last))
    pieces[#pieces + 1] = special and text.literal(s) or s
  end)
  return text.concat(pieces)
end

--- Texts as parts {bytes, special}, neighbours of one kind joined.
-- @tparam table pieces array of texts
-- @tparam number n how many
function text.parts(pieces, n)
  local parts, buffer, kind = {}, {}, nil
  local function flush()
    if #buffer > 0 then
      parts[#parts + 1] = {table.concat(buffer), kind}
      buffer = {}
    end
  end
  local function add(s, special)
    if special ~= kind then
      flush()
      kind = special
    end
    buffer[#buffer + 1] = s
  end
  for i = 1, n do
    local v = pieces[i]
    local s = text.raw(v)
    local marks = type(v) ~= "string" and v.marks
    if s ~= "" and type(marks) == "boolean" then
      add(s, marks)
    elseif s ~= "" then
      each_stretch(v.marks, function(first, last, special) add(v.s:sub(first, last), special) end)
    end
  end
  flush()
  return parts
end

return text
