--- How values are printed: Python's str and repr.
-- @module weir.jinja.printing
local characters = require "weir.jinja.characters"
local run = require "weir.jinja.run"
local text = require "weir.jinja.text"
local values = require "weir.jinja.values"

local printing = {}

local null = values.null

-- The fewest digits that are read back as x, and the power of ten of the first.
local function digits_of(x)
  for precision = 0, 16 do
    local s = ("%." .. precision .. "e"):format(x)
    if precision == 16 or tonumber(s) == x then
      local first, rest, exponent = s:match "^(%d)%.?(%d*)e([+-]%d+)$"
      return first .. rest, tonumber(exponent)
    end
  end
end

--- repr of a float.
function printing.float(x)
  if x ~= x then
    return "nan"
  elseif x == math.huge or x == -math.huge then
    return x > 0 and "inf" or "-inf"
  end
  local sign = (x < 0 or 1 / x < 0) and "-" or ""
  local digits, exponent = digits_of(math.abs(x))
  if exponent < -4 or exponent >= 16 then
    local rest = digits:sub(2)
    return ("%s%s%se%s%02d"):format(sign, digits:sub(1, 1), rest ~= "" and "." .. rest or "", exponent < 0 and "-" or "+", math.abs(exponent))
  elseif exponent < 0 then
    return sign .. "0." .. ("0"):rep(-exponent - 1) .. digits
  end
  digits = digits .. ("0"):rep(exponent + 2 - #digits)
  return sign .. digits:sub(1, exponent + 1) .. "." .. digits:sub(exponent + 2)
end

--- A number with so many digits behind the point, halves to even (LuaJIT's string.format rounds them up).
-- @tparam number x
-- @tparam number digits up to 98
-- @tparam string kind "f", "F", "e" or "E"
function printing.rounded(x, digits, kind)
  local rounded = ("%." .. digits .. kind):format(x)
  local exact = ("%." .. math.min(digits + 40, 99) .. kind):format(x)
  local head, last, tail, exponent = exact:match("^(%-?%d+%.?" .. ("%d"):rep(digits) .. ")%.?(%d)(%d*)(.*)$")
  if last == "5" and not tail:find "[1-9]" and head:find "[02468]%.?$" then
    return (digits == 0 and head:gsub("%.$", "") or head) .. exponent
  end
  return rounded
end

--- A number as text; nil for what is none (booleans too).
function printing.number(v)
  if type(v) == "boolean" then
    return nil
  elseif type(v) == "cdata" then
    return (tostring(v):gsub("U?LL$", ""))
  end
  local n, is_float = values.number(v)
  if n and is_float then
    return printing.float(n)
  end
  return n and ("%.0f"):format(n)
end

local escapes = {["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t"}
local unprintable = {Cc = true, Cf = true, Cs = true, Co = true, Cn = true, Zl = true, Zp = true, Zs = true}

--- Whether str.isprintable counts a character as such.
function printing.is_printable(c)
  return c == " " or not unprintable[characters.category(c)]
end

local function escape_wide(c)
  if not unprintable[characters.category(c)] then
    return nil
  end
  local code = characters.code(c)
  return (code < 0x100 and "\\x%02x" or code < 0x10000 and "\\u%04x" or "\\U%08x"):format(code)
end

--- repr of a string.
function printing.quoted(s)
  local quote = s:find("'", 1, true) and not s:find('"', 1, true) and '"' or "'"
  run.spend_text(#s)
  s = s:gsub("[%c\\\127]", function(c) return escapes[c] or ("\\x%02x"):format(c:byte()) end)
  if quote == "'" then
    s = s:gsub("'", "\\'")
  end
  if s:find "[\128-\255]" then
    run.spend(#s)
    s = s:gsub("[\192-\255][\128-\191]*", escape_wide)
  end
  return quote .. s .. quote
end

local write

local function write_array(out, v, open, close)
  out[#out + 1] = open
  for i = 1, v.n do
    if i > 1 then
      out[#out + 1] = ", "
    end
    write(out, v[i])
  end
  out[#out + 1] = close
end

local function write_dict(out, v)
  out[#out + 1] = "{"
  for i, key in ipairs(v.keys) do
    if i > 1 then
      out[#out + 1] = ", "
    end
    write(out, key)
    out[#out + 1] = ": "
    write(out, values.get(v, key))
  end
  out[#out + 1] = "}"
end

local function write_undefined(out)
  out[#out + 1] = "Undefined"
end

local writers = {
  [values.List] = function(out, v) write_array(out, v, "[", "]") end,
  [values.Tuple] = function(out, v) write_array(out, v, "(", v.n == 1 and ",)" or ")") end,
  [values.View] = function(out, v) write_array(out, v, v.name .. "([", "])") end,
  [values.Dict] = write_dict,
  [values.Undefined] = write_undefined,
  [values.Range] = function(out, v)
    local stop = v.stop
    out[#out + 1] = v.step == 1 and ("range(%d, %d)"):format(v.start, stop) or ("range(%d, %d, %d)"):format(v.start, stop, v.step)
  end,
  [values.Namespace] = function(out, v)
    out[#out + 1] = "<Namespace "
    write_dict(out, v.dict)
    out[#out + 1] = ">"
  end,
  [values.Generator] = function(out) out[#out + 1] = "<generator object>" end,
  [values.Loop] = function(out, v) out[#out + 1] = ("<LoopContext %d/%d>"):format(v.index, v:length()) end,
  [values.Function] = function(out, v) out[#out + 1] = ("<%s %s>"):format(v.fields.name and "Macro" or "function", printing.quoted(v.name)) end,
}

function write(out, v)
  run.spend(3)
  local raw = text.raw(v)
  if raw then
    out[#out + 1] = text.is_safe(v) and "Markup(" .. printing.quoted(raw) .. ")" or printing.quoted(raw)
  elseif v == null then
    out[#out + 1] = "None"
  elseif type(v) == "boolean" then
    out[#out + 1] = v and "True" or "False"
  else
    local number = printing.number(v)
    if number then
      out[#out + 1] = number
    else
      writers[values.class(v)](out, v)
    end
  end
end

--- repr of any value. What texts are in it count as data.
function printing.repr(v)
  local out = {}
  write(out, v)
  return text.concat(out)
end

--- str of any value: a text as it is, but not safe; numbers, True, False and None count as the template's.
function printing.str(v)
  if text.is(v) then
    return text.plain(v)
  elseif v == null then
    return text.literal "None"
  elseif type(v) == "boolean" then
    return text.literal(v and "True" or "False")
  elseif values.is_undefined(v) then
    return ""
  end
  local number = printing.number(v)
  return number and text.literal(number) or printing.repr(v)
end

--- str of any value, but a safe text stays safe.
function printing.soft(v)
  return text.is(v) and v or printing.str(v)
end

return printing
