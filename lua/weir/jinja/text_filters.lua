--- The filters that make texts of texts.
-- @module weir.jinja.text_filters
local characters = require "weir.jinja.characters"
local formatting = require "weir.jinja.formatting"
local markup = require "weir.jinja.markup"
local markup_methods = require "weir.jinja.markup_methods"
local objects = require "weir.jinja.objects"
local printing = require "weir.jinja.printing"
local run = require "weir.jinja.run"
local signature = require "weir.jinja.signature"
local strings = require "weir.jinja.strings"
local text = require "weir.jinja.text"
local values = require "weir.jinja.values"

local null, str, soft, raw = values.null, printing.str, printing.soft, text.raw

local function flag(v)
  return v ~= nil and objects.truth(v)
end

local function plain(fn)
  return {"", function(v) return fn(soft(v)) end}
end

local function trim(v, set)
  v = soft(v)
  run.spend_scan(#raw(v))
  return text.sub(v, characters.strip(raw(v), set ~= nil and set ~= null and raw(signature.text(set, "trim")) or nil, true, true))
end

-- Words between white space, hyphens and opening brackets begin with a capital.
local function title(v)
  v = str(v)
  local s = raw(v)
  run.spend(#s)
  local done = s:gsub("[^%s%-({%[<]+", function(word)
    local first = word:match "^[^\128-\191][\128-\191]*" or ""
    return characters.upper(first) .. characters.lower(word:sub(#first + 1))
  end)
  return text.like(v, done)
end

-- Lines go on to be lines: any line end becomes "\n", as jinja2 has it.
local function indent(v, width, first, blank)
  signature.text(v, "indent")
  local pad = width ~= nil and text.is(width) and width or text.spaces(signature.int(width, "indent", 4))
  local s, newline, pieces = raw(v), text.literal "\n", {}
  local lines = characters.lines(s)
  local last = lines[#lines]
  if not last or last[3] > last[2] then
    lines[#lines + 1] = {#s + 1, #s}
  end
  run.spend(#s / 16 + #lines)
  for i, line in ipairs(lines) do
    if i > 1 then
      pieces[#pieces + 1] = newline
    end
    if i == 1 and flag(first) or i > 1 and (flag(blank) or line[2] >= line[1]) then
      pieces[#pieces + 1] = pad
    end
    pieces[#pieces + 1] = text.sub(v, line[1], line[2])
  end
  local indented = text.concat(pieces)
  return text.is_safe(v) and text.safe(indented) or indented
end

local function replace(v, old, new, count)
  return strings.replace(str(v), str(old), str(new), count)
end

local function truncate(v, length, killwords, finish, leeway)
  length, finish = signature.int(length, "truncate", 255), finish == nil and text.literal "..." or soft(finish)
  leeway = signature.int(leeway, "truncate", 5)
  local keep = length - characters.length(raw(finish))
  if keep < 0 or leeway < 0 then
    run.fail "truncate: the length is less than that of the end, or the leeway is below zero"
  elseif objects.length(v) <= length + leeway then
    return v
  end
  local s = raw(signature.text(v, "truncate"))
  local _, last = characters.bytes(s, 0, keep)
  if not flag(killwords) then
    local space = s:sub(1, last):match "^.*() "
    last = space and space - 1 or last
  end
  return markup.add({text.sub(v, 1, last), finish}, 2)
end

local function percent_encode(v, safe)
  local s = raw(str(v))
  run.spend_text(3 * #s)
  return (s:gsub("[^%w_.~%-" .. safe .. "]", function(c) return ("%%%02X"):format(c:byte()) end))
end

local function urlencode(v)
  if text.is(v) or not objects.is_iterable(v) then
    return percent_encode(v, "/")
  end
  local pieces = {}
  local function add(key, value)
    pieces[#pieces + 1] = (percent_encode(key, "") .. "=" .. percent_encode(value, "")):gsub("%%20", "+")
  end
  if values.class(v) == values.Dict then
    values.each(v, add)
  else
    for pair in objects.iterate(v) do
      local two = objects.collect(pair)
      add(two[1], two[2])
    end
  end
  return text.concat({table.concat(pieces, "&")}, 1)
end

local function wordcount(v)
  local n = 0
  v = raw(str(v))
  run.spend(#v)
  for word in v:gmatch "[%w_\128-\255]+" do
    n = n + (word and 1 or 0)
  end
  return n
end

local function format(v, args, kwargs)
  if kwargs and kwargs[1] then
    local dict = values.dict()
    for _, name in ipairs(kwargs) do
      values.put(dict, name, kwargs[name])
    end
    return formatting.percent(soft(v), dict)
  end
  return formatting.percent(soft(v), values.tuple({unpack(args, 1, args.n)}, args.n))
end

local function center(v, width)
  v = soft(v)
  return (text.is_safe(v) and markup_methods or strings.methods).center(v, {width == nil and 80 or width, n = 1})
end

local filters = signature.table {
  string = plain(function(v) return v end), safe = plain(text.safe), upper = plain(strings.upper), lower = plain(strings.lower),
  capitalize = plain(strings.capitalize), title = {"", title}, trim = {"chars?", trim}, indent = {"width? first? blank?", indent},
  replace = {"old new count?", replace}, truncate = {"length? killwords? end? leeway?", truncate},
  wordcount = {"", wordcount}, center = {"width?", center},
  escape = {"", markup.escape}, e = {"", markup.escape}, forceescape = {"", function(v) return markup.escape(str(v)) end}, urlencode = {"", urlencode}, format = format,
}

return filters
