--- `text % arguments` and `text.format(...)`. If the format is the template's own, its pieces and the arguments that
-- are put in as they are keep their marks; else all is data. A safe format makes a safe text: what is put in is escaped.
-- @module weir.jinja.formatting
local characters = require "weir.jinja.characters"
local markup = require "weir.jinja.markup"
local printing = require "weir.jinja.printing"
local run = require "weir.jinja.run"
local text = require "weir.jinja.text"
local values = require "weir.jinja.values"

local formatting = {}

local MOST_DIGITS = 90 -- behind the point

-- What a format makes: numbers and fillings count as the template's only if the whole format does.
local function made_by(format, pieces)
  local made = text.concat(pieces)
  made = text.is_literal(format) and made or text.raw(made)
  return text.is_safe(format) and text.safe(made) or made
end

-- A text as it goes into a format.
local function put_in(format, v)
  return text.plain(text.is_safe(format) and markup.escape(v) or v)
end

-- A text filled up to a width of characters.
local function fill(v, width, align, with)
  local missing = width - characters.length(text.raw(v))
  if missing <= 0 then
    return v
  end
  local left = align == "<" and 0 or align == "^" and math.floor(missing / 2) or missing
  local pad = with and text.literal(with) or text.literal " "
  return text.concat({text.rep(pad, left), v, text.rep(pad, missing - left)}, 3)
end

local function cut(v, count)
  local raw = text.raw(v)
  if count and characters.length(raw) > count then
    return text.sub(v, characters.bytes(raw, 0, count))
  end
  return v
end

local function number_of(v, kind)
  local n, is_float = values.number(v)
  if not n then
    run.fail("%%%s format: a real number is required, not %s", kind, values.type(v))
  end
  return n, is_float
end

local function grouped(digits, separator)
  local whole, rest = digits:match "^(%-?%d+)(.*)$"
  if not whole then
    return digits
  end
  local sign = whole:sub(1, 1) == "-" and "-" or ""
  local reversed = whole:sub(#sign + 1):reverse():gsub("%d%d%d", "%0" .. separator):reverse()
  return sign .. (reversed:gsub("^" .. separator, "")) .. rest
end

local function radix(n, base)
  local digits, negative = "", n < 0
  n = math.abs(n)
  repeat
    local d = n % base
    digits = ("0123456789abcdef"):sub(d + 1, d + 1) .. digits
    n = math.floor(n / base)
  until n == 0
  return (negative and "-" or "") .. digits
end

local bases = {x = {16, "0x"}, X = {16, "0X"}, o = {8, "0o"}, b = {2, "0b"}}

local function precision_of(spec)
  local precision = spec.precision or 6
  if precision > MOST_DIGITS then
    run.fail("a precision of %d digits is more than %d", precision, MOST_DIGITS)
  end
  return precision
end

-- A number's digits by conversion; nil: no such conversion.
local function digits_of(v, spec)
  local kind = spec.kind
  local n, is_float = number_of(v, kind)
  if kind == "d" or kind == "i" or kind == "u" then
    return type(v) == "cdata" and printing.number(v) or ("%.0f"):format(n < 0 and math.ceil(n) or math.floor(n))
  elseif kind == "n" then
    return printing.number(v)
  elseif bases[kind] then
    if is_float then
      run.fail("%%%s format: an integer is required, not float", kind)
    end
    local digits = radix(n, bases[kind][1])
    digits = kind == "X" and digits:upper() or digits
    return spec.alternate and (digits:gsub("^%-?", "%0" .. bases[kind][2])) or digits
  elseif kind == "%" then
    return printing.rounded(n * 100, precision_of(spec), "f") .. "%"
  elseif kind:find "[eEfFgG]" then
    local precision = precision_of(spec)
    return kind:find "[gG]" and ("%" .. (spec.alternate and "#" or "") .. "." .. precision .. kind):format(n) or printing.rounded(n, precision, kind)
  end
  return nil
end

local function signed(digits, sign)
  return (sign == "+" or sign == " ") and digits:sub(1, 1) ~= "-" and sign .. digits or digits
end

-- Digits filled with zeros between the sign and themselves.
local function zeros(digits, width)
  local sign, rest = digits:match "^([+%- ]?)(.*)$"
  return text.concat({text.literal(sign), text.rep(text.literal "0", width - #digits), text.literal(rest)}, 3)
end

local function number_text(v, spec)
  local digits = digits_of(v, spec)
  if not digits then
    return nil
  end
  digits = signed(spec.group and grouped(digits, spec.group) or digits, spec.sign)
  if spec.zero and spec.width and #digits < spec.width then
    return zeros(digits, spec.width)
  end
  return text.literal(digits)
end

-- ---- % ----

local percent_pattern = "^%%(%b())([#0%- +]*)(%*?%d*)%.?(%*?%d*)[hlL]?(.)"
local percent_plain = "^%%([#0%- +]*)(%*?%d*)%.?(%*?%d*)[hlL]?(.)"

-- One conversion at byte `at`: its spec, and the byte behind it.
local function read_percent(format, at)
  local first, last, key, flags, width, precision, kind = format:find(percent_pattern, at)
  if not first then
    first, last, flags, width, precision, kind = format:find(percent_plain, at)
  end
  if not first then
    run.fail "incomplete format"
  end
  local dotted = format:sub(at, last):find("%.") ~= nil
  return {
    key = key and key:sub(2, -2), width = tonumber(width), precision = tonumber(precision) or dotted and 0 or nil, kind = kind, star = width == "*",
    left = flags:find("-", 1, true) and true, zero = flags:find("0", 1, true) and not flags:find("-", 1, true), alternate = flags:find("#", 1, true) and true,
    sign = flags:find("+", 1, true) and "+" or flags:find(" ", 1, true) and " " or nil,
  }, last + 1
end

local function character(v)
  local code = values.integer(v)
  if not code or code < 0 or code > 0x10FFFF then
    run.fail "%c requires an int in range(0x110000) or a char"
  end
  return characters.encode(code)
end

local function convert_percent(format, spec, v)
  local done
  if spec.kind == "s" then
    done = cut(put_in(format, printing.soft(v)), spec.precision)
  elseif spec.kind == "r" or spec.kind == "a" then
    done = cut(put_in(format, printing.repr(v)), spec.precision)
  elseif text.is_safe(format) and spec.kind:find "[cxXo]" then
    run.fail("%%%s format: a safe format has no such conversion", spec.kind)
  elseif spec.kind == "c" then
    done = text.is(v) and v or character(v)
  else
    if spec.kind == "b" or spec.kind == "n" then
      run.fail("unsupported format character '%s'", spec.kind)
    end
    done = number_text(v, spec)
  end
  if not done then
    run.fail("unsupported format character '%s'", spec.kind)
  end
  return fill(done, spec.width or 0, spec.left and "<" or ">")
end

-- What Python takes for a mapping here: nothing of it needs to be used.
local mappings = {[values.Dict] = true, [values.List] = true, [values.Range] = true, [values.Undefined] = true}

-- A function that hands out the arguments, and one that says that all were used.
local function arguments(v)
  local is_tuple, at = values.class(v) == values.Tuple, 0
  local count = is_tuple and v.n or 1
  local function next_one()
    at = at + 1
    if at > count then
      run.fail "not enough arguments for format string"
    end
    if is_tuple then
      return v[at]
    end
    return v
  end
  local function finish(keyed)
    if at < count and not keyed and not mappings[values.class(v)] then
      run.fail "not all arguments converted during string formatting"
    end
  end
  return next_one, finish
end

--- format % v.
function formatting.percent(format, v)
  local raw, pieces, at, keyed = text.raw(format), {}, 1, false
  local next_one, finish = arguments(v)
  while true do
    local mark = raw:find("%", at, true)
    pieces[#pieces + 1] = text.sub(format, at, (mark or #raw + 1) - 1)
    if not mark then
      break
    end
    local spec, after = read_percent(raw, mark)
    if spec.kind == "%" then
      pieces[#pieces + 1] = text.sub(format, mark, mark)
    elseif spec.key then
      keyed = true
      if values.class(v) ~= values.Dict then
        run.fail "format requires a mapping"
      end
      local found = values.get(v, spec.key)
      if found == nil then
        run.fail("no key '%s' for the format", spec.key)
      end
      pieces[#pieces + 1] = convert_percent(format, spec, found)
    else
      spec.width = spec.star and values.integer(next_one()) or spec.width
      pieces[#pieces + 1] = convert_percent(format, spec, next_one())
    end
    at = after
  end
  finish(keyed)
  return made_by(format, pieces)
end

-- ---- format ----

local function read_spec(s)
  local spec, rest = {}, s
  local with, align = rest:match "^([^\128-\191][\128-\191]*)([<>=^])"
  if with then
    spec.fill, spec.align, rest = with, align, rest:sub(#with + 2)
  else
    spec.align = rest:match "^[<>=^]"
    rest = spec.align and rest:sub(2) or rest
  end
  local sign, alternate, zero, width, group, precision, kind = rest:match "^([+%- ]?)(#?)(0?)(%d*)([,_]?)%.?(%d*)(%a?%%?)$"
  if not sign then
    run.fail("invalid format specifier '%s'", s)
  end
  spec.sign, spec.alternate, spec.zero = sign, alternate ~= "", zero ~= "" and not spec.align
  spec.width, spec.group, spec.precision, spec.kind = tonumber(width), group ~= "" and group or nil, tonumber(precision), kind
  return spec
end

local function format_number(v, spec)
  local _, is_float = values.number(v)
  if spec.kind == "" then
    if is_float and spec.precision then
      spec.kind = "g"
    else
      spec.kind = is_float and "n" or "d"
    end
  elseif spec.kind == "d" and is_float or spec.kind == "s" then
    run.fail("Unknown format code '%s' for object of type '%s'", spec.kind, values.type(v))
  end
  local done = number_text(v, spec)
  if not done then
    run.fail("Unknown format code '%s' for object of type '%s'", spec.kind, values.type(v))
  end
  if spec.align == "=" then
    return zeros(text.raw(done), spec.width or 0)
  end
  return fill(done, spec.width or 0, spec.align or ">", spec.fill)
end

--- format(v, spec).
function formatting.value(v, s)
  if s == "" then
    return printing.str(v)
  end
  local spec = read_spec(s)
  if values.number(v) and type(v) ~= "boolean" then
    return format_number(v, spec)
  elseif not text.is(v) then
    run.fail("unsupported format string passed to %s.__format__", values.type(v))
  elseif spec.kind ~= "" and spec.kind ~= "s" then
    run.fail("Unknown format code '%s' for object of type 'str'", spec.kind)
  end
  return fill(cut(v, spec.precision), spec.width or 0, spec.align or "<", spec.fill or spec.zero and "0")
end

-- The value that a field names: "", "0", "name", with .attribute and [item] behind it.
local function field_value(field, args, kwargs, counter, lookup)
  local first, rest = field:match "^([^%.%[]*)(.*)$"
  local v
  if first == "" then
    counter.n = counter.n + 1
    v = args[counter.n]
  elseif first:find "^%d+$" then
    v = args[tonumber(first) + 1]
  else
    v = kwargs and kwargs[first]
  end
  if v == nil then
    run.fail("format: no argument for '{%s}'", field)
  end
  for dot, name in rest:gmatch "([%.%[])([^%.%[%]]*)%]?" do
    v = lookup(v, dot == "[" and tonumber(name) or name)
  end
  return v
end

local conversions = {r = printing.repr, a = printing.repr, s = printing.str}

local function convert_field(format, inner, args, kwargs, counter, lookup)
  local name, conversion, spec = inner:match "^([^!:]*)!?([^:]*):?(.*)$"
  local v = field_value(name, args, kwargs, counter, lookup)
  if conversion ~= "" then
    local convert = conversions[conversion] or run.fail("unknown conversion '%s' in a format", conversion)
    v = convert(v)
  end
  spec = spec:gsub("{([^{}]*)}", function(field) return text.raw(printing.str(field_value(field, args, kwargs, counter, lookup))) end)
  if text.is_safe(format) and text.is_safe(v) then
    return spec == "" and text.plain(v) or run.fail "Unsupported format specification for Markup."
  end
  return put_in(format, formatting.value(v, spec))
end

-- The byte of the } that ends the field beginning at `at`.
local function field_end(raw, at)
  local depth, i = 0, at
  while true do
    i = raw:find("[{}]", i)
    if not i then
      run.fail "expected '}' before end of string"
    end
    depth = depth + (raw:sub(i, i) == "{" and 1 or -1)
    if depth == 0 then
      return i
    end
    i = i + 1
  end
end

--- format.format(args, kwargs).
-- @tparam function lookup fn(v, name): an attribute or item of v
function formatting.braces(format, args, kwargs, lookup)
  local raw, pieces, at, counter = text.raw(format), {}, 1, {n = 0}
  while true do
    local mark = raw:find("[{}]", at)
    pieces[#pieces + 1] = text.sub(format, at, (mark or #raw + 1) - 1)
    if not mark then
      return made_by(format, pieces)
    elseif raw:sub(mark, mark) == raw:sub(mark + 1, mark + 1) then
      pieces[#pieces + 1] = text.sub(format, mark, mark)
      at = mark + 2
    elseif raw:sub(mark, mark) == "}" then
      run.fail "Single '}' encountered in format string"
    else
      local stop = field_end(raw, mark)
      pieces[#pieces + 1] = convert_field(format, raw:sub(mark + 1, stop - 1), args, kwargs, counter, lookup)
      at = stop + 1
    end
  end
end

return formatting
