--- The methods of strings.
-- @module weir.jinja.strings
local characters = require "weir.jinja.characters"
local formatting = require "weir.jinja.formatting"
local objects = require "weir.jinja.objects"
local printing = require "weir.jinja.printing"
local run = require "weir.jinja.run"
local signature = require "weir.jinja.signature"
local text = require "weir.jinja.text"
local values = require "weir.jinja.values"

local strings = {}

local null, raw = values.null, text.raw
local text_of, int_of = signature.text, signature.int

local function none(v)
  return v == nil or v == null
end

-- ---- searching ----

-- The characters start to stop of s as bytes.
local function stretch(s, start, stop, name)
  if none(start) and none(stop) then
    return 1, #s
  end
  local n = characters.length(s)
  local function bound(v, default)
    local i = none(v) and default or int_of(v, name)
    return math.max(0, math.min(n, i < 0 and i + n or i))
  end
  local from, to = bound(start, 0), bound(stop, n)
  if to < from then
    return nil
  end
  return characters.bytes(s, from, to)
end

-- The last place of a needle in s within bytes first to last.
local function last_place(s, needle, first, last)
  local found, at = nil, first
  while true do
    local place = s:find(needle, at, true)
    if not place or place + #needle - 1 > last then
      return found
    end
    run.spend(1)
    found, at = place, place + 1
  end
end

-- The byte where a needle is; nil if it is not there.
local function place_of(self, needle, start, stop, from_right, name)
  local s, wanted = raw(self), raw(text_of(needle, name))
  objects.spend_search(#s, #wanted)
  local first, last = stretch(s, start, stop, name)
  if not first then
    return nil
  elseif from_right then
    return wanted == "" and last + 1 or last_place(s, wanted, first, last)
  end
  local place = s:find(wanted, first, true)
  return place and place + #wanted - 1 <= last and place or nil
end

local function finder(name, from_right, must)
  return {"sub start? stop?", function(self, needle, start, stop)
    local place = place_of(self, needle, start, stop, from_right, name)
    if not place and must then
      run.fail "substring not found"
    end
    return place and characters.at(raw(self), place) or -1
  end}
end

local function count(self, needle, start, stop)
  local s, wanted = raw(self), raw(text_of(needle, "count"))
  objects.spend_search(#s, #wanted)
  local first, last = stretch(s, start, stop, "count")
  if not first then
    return 0
  elseif wanted == "" then
    return characters.length(s:sub(first, last)) + 1
  end
  local n, at = 0, first
  while true do
    local place = s:find(wanted, at, true)
    if not place or place + #wanted - 1 > last then
      return n
    end
    run.spend(1)
    n, at = n + 1, place + #wanted
  end
end

-- Whether s has one of the affixes (a text or a tuple of them) at its beginning or end.
local function affix(name, at_end)
  return {"prefix start? stop?", function(self, affixes, start, stop)
    local s = raw(self)
    local first, last = stretch(s, start, stop, name)
    s = first and s:sub(first, last) or nil
    local list = values.class(affixes) == values.Tuple and affixes or {text_of(affixes, name), n = 1}
    for i = 1, s and list.n or 0 do
      local wanted = raw(text_of(list[i], name))
      if (at_end and s:sub(math.max(#s - #wanted, 0) + 1) or s:sub(1, #wanted)) == wanted then
        return true
      end
    end
    return false
  end}
end

-- ---- splitting ----

local function split_words(self, most)
  local words, list = characters.words(raw(self)), {}
  for i, word in ipairs(words) do
    if i > most then
      list[i] = text.sub(self, word[1], #raw(self))
      break
    end
    list[i] = text.sub(self, word[1], word[2])
  end
  return values.list(list)
end

local function rsplit_words(self, most)
  local words, list = characters.words(raw(self)), {}
  local joined = #words - most
  if joined >= 1 then
    list[1] = text.sub(self, 1, words[joined][2])
  end
  for i = math.max(joined, 0) + 1, #words do
    list[#list + 1] = text.sub(self, words[i][1], words[i][2])
  end
  return values.list(list)
end

-- Bytes where each separator begins.
local function separators(s, separator)
  if separator == "" then
    run.fail "empty separator"
  end
  objects.spend_search(#s, #separator)
  local places, at = {}, 1
  while true do
    local place = s:find(separator, at, true)
    if not place then
      return places
    end
    run.spend(1)
    places[#places + 1], at = place, place + #separator
  end
end

-- Separators from the right may lie elsewhere if they overlap.
local function separators_from_right(s, separator)
  local places = separators(s:reverse(), separator:reverse())
  local turned = {}
  for i, place in ipairs(places) do
    turned[#places + 1 - i] = #s - place - #separator + 2
  end
  return turned
end

local function cut_at(self, places, first, last, width)
  local list, at = {}, 1
  for i = first, last do
    list[#list + 1] = text.sub(self, at, places[i] - 1)
    at = places[i] + width
  end
  list[#list + 1] = text.sub(self, at, #raw(self))
  return values.list(list)
end

local function split(self, separator, most)
  most = int_of(most, "split", -1)
  most = most < 0 and math.huge or most
  if none(separator) then
    return split_words(self, most)
  end
  local wanted = raw(text_of(separator, "split"))
  local places = separators(raw(self), wanted)
  return cut_at(self, places, 1, math.min(#places, most), #wanted)
end

local function rsplit(self, separator, most)
  most = int_of(most, "rsplit", -1)
  most = most < 0 and math.huge or most
  if none(separator) then
    return rsplit_words(self, most)
  end
  local wanted = raw(text_of(separator, "rsplit"))
  local places = separators_from_right(raw(self), wanted)
  return cut_at(self, places, math.max(#places - most, 0) + 1, #places, #wanted)
end

local function splitlines(self, keep)
  local list = {}
  for i, line in ipairs(characters.lines(raw(self))) do
    list[i] = text.sub(self, line[1], keep ~= nil and objects.truth(keep) and line[3] or line[2])
  end
  return values.list(list)
end

local function partition(name, from_right)
  return {"sep", function(self, separator)
    local wanted = raw(text_of(separator, name))
    if wanted == "" then
      run.fail "empty separator"
    end
    local place = place_of(self, separator, nil, nil, from_right, name)
    if not place then
      return values.tuple(from_right and {"", "", self} or {self, "", ""}, 3)
    end
    return values.tuple({text.sub(self, 1, place - 1), text.sub(self, place, place + #wanted - 1), text.sub(self, place + #wanted, #raw(self))}, 3)
  end}
end

-- ---- making others ----

local function stripper(name, left, right)
  return {"chars?", function(self, set)
    run.spend_scan(#raw(self))
    return text.sub(self, characters.strip(raw(self), not none(set) and raw(text_of(set, name)) or nil, left, right))
  end}
end

--- Joins the texts that iterable gives, with self between them.
local function join(self, iterable)
  local pieces = {}
  for element in objects.iterate(iterable) do
    if not text.is(element) then
      run.fail("sequence item %d: expected str instance, %s found", math.floor(#pieces / 2), values.type(element))
    end
    if #pieces > 0 then
      pieces[#pieces + 1] = self
    end
    pieces[#pieces + 1] = element
  end
  return text.concat(pieces)
end

-- Between any two characters, and at the ends.
local function replace_nothing(self, new, most)
  local starts, pieces = characters.starts(raw(self)), {}
  for i, at in ipairs(starts) do
    if i <= most then
      pieces[#pieces + 1] = new
    end
    pieces[#pieces + 1] = text.sub(self, at, (starts[i + 1] or at) - 1)
  end
  return text.concat(pieces)
end

--- All places of old in self replaced, or the first `most`.
function strings.replace(self, old, new, most)
  text_of(old, "replace")
  text_of(new, "replace")
  most = int_of(most, "replace", -1)
  most = most < 0 and math.huge or most
  local wanted = raw(old)
  if wanted == "" then
    return replace_nothing(self, new, most)
  end
  local places, pieces, at = separators(raw(self), wanted), {}, 1
  for i = 1, math.min(#places, most) do
    pieces[#pieces + 1] = text.sub(self, at, places[i] - 1)
    pieces[#pieces + 1] = new
    at = places[i] + #wanted
  end
  pieces[#pieces + 1] = text.sub(self, at, #raw(self))
  return text.concat(pieces)
end

local function mapped(map)
  return function(self)
    run.spend_text(#raw(self))
    return text.like(self, map(raw(self)))
  end
end

strings.upper, strings.lower = mapped(characters.upper), mapped(characters.lower)

local function capitalized(s)
  local first = s:match "^[^\128-\191][\128-\191]*" or ""
  return characters.title(first) .. characters.lower(s:sub(#first + 1))
end

strings.capitalize = mapped(capitalized)

local function is_letter(c)
  return characters.category(c):find "^L[ult]" ~= nil
end

-- The first letter of each run of letters in title form, the others small.
local function titled(s)
  local after_letter = false
  run.spend(#s)
  return (s:gsub("[^\128-\191][\128-\191]*", function(c)
    local letter = is_letter(c)
    local new = letter and (after_letter and characters.lower(c) or characters.title(c)) or nil
    after_letter = letter
    return new
  end))
end

local function swapped(s)
  run.spend(#s)
  return (s:gsub("[^\128-\191][\128-\191]*", function(c)
    local upper = characters.upper(c)
    return upper ~= c and upper or characters.lower(c)
  end))
end

local function padding(name, left, right)
  return {"width fillchar?", function(self, width, with)
    local missing = int_of(width, name) - characters.length(raw(self))
    with = none(with) and text.literal " " or text_of(with, name)
    if characters.length(raw(with)) ~= 1 then
      run.fail "The fill character must be exactly one character long"
    elseif missing <= 0 then
      return self
    end
    local before = right and (left and math.floor(missing / 2) + (missing % 2) * (int_of(width, name) % 2) or missing) or 0
    return text.concat({text.rep(with, before), self, text.rep(with, missing - before)}, 3)
  end}
end

local function zfill(self, width)
  local s = raw(self)
  local sign = s:match "^[+-]" or ""
  local zeros = text.rep(text.literal "0", int_of(width, "zfill") - characters.length(s))
  return text.concat({text.sub(self, 1, #sign), zeros, text.sub(self, #sign + 1, #s)}, 3)
end

local function expandtabs(self, size)
  size = int_of(size, "expandtabs", 8)
  local s, pieces, column, at = raw(self), {}, 0, 1
  run.spend(#s)
  for from, c in s:gmatch "()([\t\n\r])" do
    local piece = text.sub(self, at, from - 1)
    column = column + characters.length(raw(piece))
    local spaces = c == "\t" and (size > 0 and size - column % size or 0)
    pieces[#pieces + 1] = piece
    pieces[#pieces + 1] = spaces and text.spaces(spaces) or text.sub(self, from, from)
    column = spaces and column + spaces or 0
    at = from + 1
  end
  pieces[#pieces + 1] = text.sub(self, at, #s)
  return text.concat(pieces)
end

-- ---- questions ----

-- Whether all characters (at least one) are of a category that matches a pattern.
local function all_of(pattern)
  return function(self)
    local s = raw(self)
    run.spend(#s)
    for c in s:gmatch "[^\128-\191][\128-\191]*" do
      if not characters.category(c):find(pattern) then
        return false
      end
    end
    return s ~= ""
  end
end

--- Whether there are letters with a case, and all of them are so.
local function cased(map)
  return function(self)
    local s = raw(self)
    run.spend_scan(#s)
    return map(s) == s and characters.upper(s) ~= characters.lower(s)
  end
end

strings.isupper, strings.islower = cased(characters.upper), cased(characters.lower)

local function isspace(self)
  local s = raw(self)
  run.spend_scan(#s)
  return s ~= "" and characters.strip(s, nil, true, false) > #s
end

local function isprintable(self)
  local s = raw(self)
  run.spend(#s)
  for c in s:gmatch "[^\128-\191][\128-\191]*" do
    if not printing.is_printable(c) then
      return false
    end
  end
  return true
end

local function istitle(self)
  local s = raw(self)
  return titled(s) == s and characters.upper(s) ~= characters.lower(s)
end

--- What `{}` fields look up: set by weir.jinja.attributes, which knows all kinds of values.
strings.lookup = nil

strings.methods = signature.table {
  find = finder("find", false, false), rfind = finder("rfind", true, false), index = finder("index", false, true), rindex = finder("rindex", true, true),
  count = {"sub start? stop?", count}, startswith = affix("startswith", false), endswith = affix("endswith", true),
  split = {"sep? maxsplit?", split}, rsplit = {"sep? maxsplit?", rsplit}, splitlines = {"keepends?", splitlines},
  partition = partition("partition", false), rpartition = partition("rpartition", true),
  strip = stripper("strip", true, true), lstrip = stripper("lstrip", true, false), rstrip = stripper("rstrip", false, true),
  join = {"iterable", join}, replace = {"old new count?", strings.replace},
  upper = {"", strings.upper}, lower = {"", strings.lower}, casefold = {"", strings.lower}, capitalize = {"", strings.capitalize},
  title = {"", mapped(titled)}, swapcase = {"", mapped(swapped)},
  center = padding("center", true, true), ljust = padding("ljust", true, false), rjust = padding("rjust", false, true),
  zfill = {"width", zfill}, expandtabs = {"tabsize?", expandtabs},
  isalpha = {"", all_of "^L"}, isdigit = {"", all_of "^Nd"}, isdecimal = {"", all_of "^Nd"}, isnumeric = {"", all_of "^N"}, isalnum = {"", all_of "^[LN]"},
  isspace = {"", isspace}, isupper = {"", strings.isupper}, islower = {"", strings.islower}, istitle = {"", istitle},
  isprintable = {"", isprintable},
  removeprefix = {"prefix", function(self, prefix)
    local wanted = raw(text_of(prefix, "removeprefix"))
    return raw(self):sub(1, #wanted) == wanted and text.sub(self, #wanted + 1, #raw(self)) or self
  end},
  removesuffix = {"suffix", function(self, suffix)
    local wanted, s = raw(text_of(suffix, "removesuffix")), raw(self)
    return wanted ~= "" and s:sub(-#wanted) == wanted and text.sub(self, 1, #s - #wanted) or self
  end},
  isascii = {"", function(self) return not raw(self):find "[\128-\255]" end},
  encode = {"encoding? errors?", function(self) return self end},
  format = function(self, args, kwargs) return formatting.braces(self, args, kwargs, strings.lookup) end,
  format_map = {"mapping", function(self, map)
    local kwargs = {}
    for element in objects.iterate(map) do
      kwargs[raw(printing.str(element))] = values.get(map, element)
    end
    return formatting.braces(self, {n = 0}, kwargs, strings.lookup)
  end},
}

return strings
