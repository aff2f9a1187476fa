--- The methods of safe strings: those of strings, whose results are safe; what they put into the text is escaped.
-- @module weir.jinja.markup_methods
local markup = require "weir.jinja.markup"
local objects = require "weir.jinja.objects"
local strings = require "weir.jinja.strings"
local text = require "weir.jinja.text"
local values = require "weir.jinja.values"

-- A result as it is of a safe string: texts are safe, also those of lists and tuples.
local function safe(v)
  if text.is(v) then
    return text.safe(v)
  end
  local c = values.class(v)
  if c == values.List or c == values.Tuple then
    for i = 1, v.n do
      v[i] = text.is(v[i]) and text.safe(v[i]) or v[i]
    end
  end
  return v
end

local function escape_elements(iterable)
  local escaped, n = {}, 0
  for element in objects.iterate(iterable) do
    n = n + 1
    escaped[n] = text.plain(markup.escape(element))
  end
  return values.list(escaped, n)
end

local function escape_argument(v)
  return text.plain(markup.escape(v))
end

-- Arguments that go into the text: their place, and what becomes of them first.
local put_in = {
  join = {1, escape_elements}, replace = {2, escape_argument},
  center = {2, escape_argument}, ljust = {2, escape_argument}, rjust = {2, escape_argument},
}

local keeps_format = {format = true, format_map = true} -- these look themselves whether their text is safe

local methods = {}

for name, method in pairs(strings.methods) do
  local argument = put_in[name]
  methods[name] = function(self, args, kwargs)
    local place = argument and argument[1]
    if place and args[place] ~= nil then
      local changed = {unpack(args, 1, args.n)}
      changed.n, changed[place] = args.n, argument[2](args[place])
      args = changed
    end
    return safe(method(keeps_format[name] and self or text.plain(self), args, kwargs))
  end
end

return methods
