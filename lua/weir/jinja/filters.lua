--- The filters of sequences and of any value; those of texts are in weir.jinja.text_filters. A filter is fn(value, args, kwargs).
-- @module weir.jinja.filters
local attributes = require "weir.jinja.attributes"
local json = require "weir.jinja.json"
local objects = require "weir.jinja.objects"
local operators = require "weir.jinja.operators"
local printing = require "weir.jinja.printing"
local run = require "weir.jinja.run"
local signature = require "weir.jinja.signature"
local strings = require "weir.jinja.strings"
local tests = require "weir.jinja.tests"
local text = require "weir.jinja.text"
local text_filters = require "weir.jinja.text_filters"
local values = require "weir.jinja.values"

local filters

local null = values.null

local function given(v)
  return v ~= nil and v ~= null
end

local function flag(v)
  return v ~= nil and objects.truth(v)
end

-- A value as sorting and comparing without case see it.
local function folded(v)
  return text.is(v) and strings.lower(v) or v
end

-- A function that gives what an element is looked at by: an attribute's path, without case unless asked.
local function getter(attribute, with_case)
  return function(v)
    if given(attribute) then
      v = attributes.path(v, attribute)
    end
    return with_case and v or folded(v)
  end
end

-- ---- ends and sizes ----

local function default(v, other, boolean)
  if values.is_undefined(v) or flag(boolean) and not objects.truth(v) then
    return other == nil and "" or other
  end
  return v
end

local function first(v)
  local element = objects.iterate(v)()
  return element == nil and values.undefined "no first item, sequence was empty" or element
end

local function last(v)
  if values.class(v) == values.Generator then
    run.fail "'generator' object is not reversible"
  end
  local array, n = objects.collect(v)
  if n == 0 then
    return values.undefined "no last item, sequence was empty"
  end
  return text.is_safe(v) and text.safe(array[n]) or array[n]
end

local function reverse(v)
  if text.is(v) then
    return operators.slice(v, nil, nil, -1)
  end
  local array, n = objects.collect(v)
  local turned = {}
  for i = 1, n do
    turned[i] = array[n + 1 - i]
  end
  return values.generator(turned, n)
end

local function sum(v, attribute, start)
  local total = start == nil and 0 or start
  for element in objects.iterate(v) do
    total = operators.add(total, given(attribute) and attributes.path(element, attribute) or element)
  end
  return total
end

-- min and max.
local function extreme(name, better)
  return {"case_sensitive? attribute?", function(v, with_case, attribute)
    local key, best, best_key = getter(attribute, flag(with_case)), nil, nil
    for element in objects.iterate(v) do
      local own = key(element)
      if best == nil or better(own, best_key) then
        best, best_key = element, own
      end
    end
    return best == nil and values.undefined("no aggregated item for " .. name .. ", sequence was empty") or best
  end}
end

-- ---- order ----

local function keyed(v, key)
  local rows = {}
  for element in objects.iterate(v) do
    rows[#rows + 1] = {key(element), element}
  end
  return rows
end

local function elements(rows, n)
  local array = {}
  for i = 1, n do
    array[i] = rows[i][2]
  end
  return array
end

-- What an element is sorted by: attributes with commas between them, as a tuple (so that equal keys need no order).
local function sort_key(attribute, with_case)
  local raw, getters = given(attribute) and text.raw(attribute), {}
  for path in (raw or ""):gmatch "[^,]+" do
    getters[#getters + 1] = getter(path, with_case)
  end
  getters[1] = getters[1] or getter(attribute, with_case)
  return function(v)
    local parts = {}
    for i = 1, #getters do
      parts[i] = getters[i](v)
    end
    return values.tuple(parts, #getters)
  end
end

local function sort(v, backwards, with_case, attribute)
  local rows = keyed(v, sort_key(attribute, flag(with_case)))
  return values.list(elements(objects.sort(rows, #rows, flag(backwards)), #rows))
end

local function unique(v, with_case, attribute)
  local key, seen, array = getter(attribute, flag(with_case)), values.dict(), {}
  for element in objects.iterate(v) do
    local own = key(element)
    if values.get(seen, own) == nil then
      values.put(seen, own, true)
      array[#array + 1] = element
    end
  end
  return values.generator(array)
end

local function dictsort(v, with_case, by, backwards)
  local place = by == nil and 1 or ({key = 1, value = 2})[text.raw(by)]
  if not place then
    run.fail "You can only sort by either \"key\" or \"value\""
  elseif values.class(v) ~= values.Dict then
    run.fail("dictsort: wanted a mapping, got '%s'", values.type(v))
  end
  local rows = keyed(attributes.items(v), function(pair) return flag(with_case) and pair[place] or folded(pair[place]) end)
  return values.list(elements(objects.sort(rows, #rows, flag(backwards)), #rows))
end

local group_fields = {grouper = 1, list = 2}

local function groupby(v, attribute, other, with_case)
  local function key(element)
    local own = attributes.path(element, attribute)
    return values.is_undefined(own) and other ~= nil and other or own
  end
  local function compared(element)
    return flag(with_case) and key(element) or folded(key(element))
  end
  local rows = keyed(v, compared)
  local groups, n = {}, #rows
  for i, row in ipairs(objects.sort(rows, n)) do
    local group = groups[#groups]
    if i <= n and not (group and objects.equal(group.key, row[1])) then
      group = values.tuple({key(row[2]), values.list {}}, 2)
      group.key, group.fields = row[1], group_fields
      groups[#groups + 1] = group
    end
    if i <= n then
      group[2].n = group[2].n + 1
      group[2][group[2].n] = row[2]
    end
  end
  return values.list(groups)
end

-- ---- pieces ----

local function batch(v, size, fill)
  local groups, group = {}, nil
  size = signature.int(size, "batch")
  for element in objects.iterate(v) do
    if not group or group.n >= size then
      group = values.list {}
      groups[#groups + 1] = group
    end
    group.n = group.n + 1
    group[group.n] = element
  end
  while group and given(fill) and group.n < size do
    run.spend(1)
    group.n = group.n + 1
    group[group.n] = fill
  end
  return values.generator(groups)
end

local function slice(v, count, fill)
  local array, n = objects.collect(v)
  count = signature.int(count, "slice")
  if count < 1 then
    run.fail "slice: wanted a number of slices from 1 on"
  end
  local per, extra, at, slices = math.floor(n / count), n % count, 1, {}
  for i = 1, count do
    local own = per + (i <= extra and 1 or 0)
    run.spend(own + 1)
    local list = values.list({}, own)
    for k = 1, own do
      list[k] = array[at + k - 1]
    end
    if given(fill) and i > extra then
      list.n = list.n + 1
      list[list.n] = fill
    end
    at, slices[i] = at + own, list
  end
  return values.generator(slices)
end

local function join(v, separator, attribute)
  local pieces = {}
  separator = separator == nil and "" or printing.str(separator)
  for element in objects.iterate(v) do
    if #pieces > 0 then
      pieces[#pieces + 1] = separator
    end
    pieces[#pieces + 1] = printing.str(given(attribute) and attributes.path(element, attribute) or element)
  end
  return text.concat(pieces)
end

-- ---- by filters and tests: what counts as false is an empty sequence to them, whatever it is ----

local function rest(args, from)
  local others = {n = math.max(args.n - from + 1, 0)}
  for i = from, args.n do
    others[i - from + 1] = args[i]
  end
  return others
end

local function named(registry, what, name)
  local raw = text.raw(name)
  return raw and registry[raw] or run.fail("no %s named '%s'", what, raw or values.type(name))
end

local function map_attribute(attribute, other)
  return function(element)
    local found = attributes.path(element, attribute)
    return values.is_undefined(found) and other ~= nil and other or found
  end
end

local function map(v, args, kwargs)
  if not objects.truth(v) then
    return values.generator {}
  end
  local change
  if args.n == 0 and kwargs and kwargs.attribute ~= nil then
    change = map_attribute(kwargs.attribute, kwargs.default)
  elseif args.n == 0 then
    run.fail "map requires a filter argument"
  else
    local filter, others = named(filters, "filter", args[1]), rest(args, 2)
    change = function(element) return filter(element, others, kwargs) end
  end
  local array, n = {}, 0
  for element in objects.iterate(v) do
    n = n + 1
    array[n] = change(element)
  end
  return values.generator(array, n)
end

-- select, reject, selectattr, rejectattr.
local function chooser(wanted, by_attribute)
  return function(v, args, kwargs)
    if not objects.truth(v) then
      return values.generator {}
    end
    local at = by_attribute and 2 or 1
    if args.n < at - 1 then
      run.fail "Missing parameter for attribute name"
    end
    local test = args.n >= at and named(tests, "test", args[at])
    local others, array = rest(args, at + 1), {}
    for element in objects.iterate(v) do
      local looked = by_attribute and attributes.path(element, args[1]) or element
      local found
      if test then
        found = test(looked, others, kwargs)
      else
        found = objects.truth(looked)
      end
      if found == wanted then
        array[#array + 1] = element
      end
    end
    return values.generator(array)
  end
end

-- ---- numbers ----

local function parse_int(s, base)
  s = s:match "^[%s_]*(.-)$":gsub("_", "")
  local sign, digits = s:match "^([+-]?)(%w+)%s*$"
  if digits and base == 16 then
    digits = digits:gsub("^0[xX]", "")
  end
  local n = digits and not digits:find "[^%w]" and (base ~= 10 or digits:find "^%d+$") and tonumber(digits, base)
  return n and (sign == "-" and -n or n)
end

local function to_int(v, other, base)
  other = other == nil and 0 or other
  base = signature.int(base, "int", 10)
  if values.is_undefined(v) then
    objects.fail_undefined(v)
  end
  local raw = text.raw(v)
  local n = values.number(v)
  if raw then
    run.spend_scan(#raw)
    n = #raw < 400 and base >= 2 and base <= 36 and (parse_int(raw, base) or raw:find "^%s*[+-]?[%d._]+[eE%d._+-]*%s*$" and tonumber(raw)) or nil
  end
  if not n or n - n ~= 0 then
    return other
  end
  return type(v) == "cdata" and v or (n < 0 and math.ceil(n) or math.floor(n)) + 0 -- -0 is no int
end

local function to_float(v, other)
  local raw = text.raw(v)
  local n = values.number(v)
  if values.is_undefined(v) then
    objects.fail_undefined(v)
  elseif raw then
    run.spend_scan(#raw)
    local word = #raw < 400 and raw:match "^%s*([+-]?%w[%w.+-]*)%s*$" or raw:match "^%s*([+-]?%.%d[%w+-]*)%s*$" or ""
    n = not word:find "[xX]" and tonumber(word) or ({inf = math.huge, ["-inf"] = -math.huge, nan = 0 / 0})[word:lower()]
  end
  return n and values.float(n) or other == nil and values.float(0) or other
end

local sizes = {[false] = {"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"}, [true] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}}

local function filesizeformat(v, binary)
  local raw = text.raw(v)
  local n = values.number(v) or raw and #raw < 400 and raw:find "^%s*[+-]?[%d.]+[eE%d+-]*%s*$" and tonumber(raw)
  if not n or n - n ~= 0 then
    run.fail("filesizeformat: wanted a number, got '%s'", values.type(v))
  end
  local base, names = flag(binary) and 1024 or 1000, sizes[flag(binary)]
  if n == 1 then
    return text.literal "1 Byte"
  elseif n < base then
    return text.literal(("%.0f Bytes"):format((n < 0 and math.ceil(n) or math.floor(n)) + 0))
  end
  local i = 1
  while i < #names and n >= base ^ (i + 1) do
    i = i + 1
  end
  return text.literal(printing.rounded(base * n / base ^ (i + 1), 1, "f") .. " " .. names[i])
end

-- To the nearest, halves to even; exact for what is written with few digits.
local function nearest(n, digits)
  if n - n ~= 0 then
    return n
  end
  if digits >= 0 and digits <= 15 then
    return tonumber((printing.rounded(n, digits, "f")))
  end
  local scale = 10 ^ digits
  local scaled = n * scale
  local low = math.floor(scaled)
  local up = scaled - low > 0.5 or scaled - low == 0.5 and low % 2 == 1
  return (up and low + 1 or low) / scale
end

local function round(v, precision, method)
  local n = values.number(v)
  local digits = signature.int(precision, "round", 0)
  local how = method == nil and "common" or text.raw(method)
  if not n then
    run.fail("round: wanted a number, got '%s'", values.type(v))
  elseif how ~= "common" and how ~= "ceil" and how ~= "floor" then
    run.fail "method must be common, ceil or floor"
  elseif math.abs(digits) > 300 then
    run.fail "round: a precision of more than 300 digits"
  elseif how == "common" then
    local _, is_float = values.number(v)
    return is_float and values.float(nearest(n, digits)) or values.int(digits < 0 and nearest(n, digits) or n)
  end
  return values.float(math[how](n * 10 ^ digits) / 10 ^ digits)
end

local function abs(v)
  local n, is_float = values.number(v)
  if not n then
    run.fail("bad operand type for abs(): '%s'", values.type(v))
  end
  return is_float and values.float(math.abs(n)) or math.abs(n)
end

-- ---- the table ----

local function to_list(v)
  return values.list(objects.collect(v))
end

local function items(v)
  if values.is_undefined(v) then
    return values.generator {}
  elseif values.class(v) ~= values.Dict then
    run.fail "Can only get item pairs from a mapping."
  end
  return values.generator(objects.collect(attributes.items(v)))
end

local function attr(v, name)
  if values.class(v) == values.Dict then
    local method = attributes.method(v, text.raw(printing.str(name)))
    return method and attributes.attribute(v, text.raw(name)) or values.undefined(("'dict object' has no attribute '%s'"):format(text.raw(printing.str(name))))
  end
  return attributes.attribute(v, text.raw(printing.str(name)))
end

local function tojson(v, ensure_ascii, indent, separators, sort_keys)
  return json.filter(v, ensure_ascii, indent, separators, sort_keys)
end

filters = signature.table {
  default = {"default_value? boolean?", default}, d = {"default_value? boolean?", default},
  length = {"", objects.length}, count = {"", objects.length}, first = {"", first}, last = {"", last}, reverse = {"", reverse},
  sum = {"attribute? start?", sum}, min = extreme("min", objects.less), max = extreme("max", function(a, b) return objects.less(b, a) end),
  sort = {"reverse? case_sensitive? attribute?", sort}, unique = {"case_sensitive? attribute?", unique},
  dictsort = {"case_sensitive? by? reverse?", dictsort}, groupby = {"attribute default? case_sensitive?", groupby},
  batch = {"linecount fill_with?", batch}, slice = {"slices fill_with?", slice}, join = {"d? attribute?", join}, list = {"", to_list}, items = {"", items},
  map = map, select = chooser(true, false), reject = chooser(false, false), selectattr = chooser(true, true), rejectattr = chooser(false, true),
  int = {"default? base?", to_int}, float = {"default?", to_float}, round = {"precision? method?", round}, abs = {"", abs},
  filesizeformat = {"binary?", filesizeformat},
  attr = {"name", attr}, tojson = {"ensure_ascii? indent? separators? sort_keys?", tojson},
  pprint = {"", printing.repr},
}

for name, filter in pairs(text_filters) do
  filters[name] = filter
end

return filters
