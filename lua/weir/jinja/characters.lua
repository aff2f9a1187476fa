--- Strings as Python has them: sequences of characters. Lengths, places, white space, cases; on UTF-8 bytes. Knows no marks.
-- @module weir.jinja.characters
local core = require "weir.core"
local run = require "weir.jinja.run"

local characters = {}

--- How many characters.
function characters.length(s)
  return core.unicode_length(s)
end

local function is_ascii(s)
  return core.unicode_length(s) == #s
end

--- The bytes of characters first to last (from 0, last is not included; both inside the string).
-- @treturn number first byte
-- @treturn number last byte
function characters.bytes(s, first, last)
  local from = core.unicode_forward(s, 1, first)
  return from, core.unicode_forward(s, from, last - first) - 1
end

--- The number of the character that begins at a byte.
function characters.at(s, byte)
  return characters.length(s:sub(1, byte - 1))
end

--- Where each character begins, and #s + 1.
function characters.starts(s)
  run.spend(#s)
  local starts = {}
  for at in s:gmatch "()[^\128-\191]" do
    starts[#starts + 1] = at
  end
  starts[#starts + 1] = #s + 1
  return starts
end

--- A character's number; 0xFFFD for what is none.
function characters.code(c)
  local a, b, d, e = c:byte(1, 4)
  if not a or a < 128 then
    return a or 0xFFFD
  elseif a >= 240 and e then
    return (a - 240) * 262144 + (b - 128) * 4096 + (d - 128) * 64 + e - 128
  elseif a >= 224 and d then
    return (a - 224) * 4096 + (b - 128) * 64 + d - 128
  elseif a >= 192 and b then
    return (a - 192) * 64 + b - 128
  end
  return 0xFFFD
end

--- A character of its number.
function characters.encode(n)
  if n < 0x80 then
    return string.char(n)
  elseif n < 0x800 then
    return string.char(0xC0 + math.floor(n / 64), 0x80 + n % 64)
  elseif n < 0x10000 then
    return string.char(0xE0 + math.floor(n / 4096), 0x80 + math.floor(n / 64) % 64, 0x80 + n % 64)
  end
  return string.char(0xF0 + math.floor(n / 262144), 0x80 + math.floor(n / 4096) % 64, 0x80 + math.floor(n / 64) % 64, 0x80 + n % 64)
end

-- What str.isspace says of characters beyond ASCII.
local wide_spaces = {}
for _, code in ipairs {0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000} do
  wide_spaces[characters.encode(code)] = true
end
for code = 0x2000, 0x200A do
  wide_spaces[characters.encode(code)] = true
end

--- Whether a character is white space, as str.isspace has it.
function characters.is_space(c)
  if #c == 1 then
    return c:find "[\t-\r\28-\31 ]" ~= nil
  end
  return wide_spaces[c] or false
end

local function every_space(c)
  return characters.is_space(c)
end

local function in_set(set)
  local wanted = {}
  for c in set:gmatch "[^\128-\191][\128-\191]*" do
    wanted[c] = true
  end
  return function(c) return wanted[c] end
end

local function character_before(s, last)
  local first = last
  while first > 1 and s:find("^[\128-\191]", first) do
    first = first - 1
  end
  return s:sub(first, last)
end

--- What is left between the characters stripped from the ends.
-- @tparam string s
-- @tparam string|nil set characters to strip; nil: white space
-- @tparam boolean left
-- @tparam boolean right
-- @treturn number first byte
-- @treturn number last byte
function characters.strip(s, set, left, right)
  local gone = set and in_set(set) or every_space
  local first, last = 1, #s
  while left and first <= last do
    local c = s:match("^[^\128-\191][\128-\191]*", first)
    run.spend(2)
    if not c or not gone(c) then
      break
    end
    first = first + #c
  end
  while right and last >= first do
    local c = character_before(s, last)
    run.spend(2)
    if not gone(c) then
      break
    end
    last = last - #c
  end
  return first, last
end

--- Bytes of the words between white space.
-- @treturn table array of {first, last}
function characters.words(s)
  run.spend(2 * #s)
  local words, from, at = {}, nil, 1
  while at <= #s do
    local c = s:match("^[^\128-\191][\128-\191]*", at) or s:sub(at, at)
    if characters.is_space(c) then
      words[#words + 1] = from and {from, at - 1}
      from = nil
    else
      from = from or at
    end
    at = at + #c
  end
  words[#words + 1] = from and {from, #s}
  return words
end

local line_ends = {["\n"] = true, ["\v"] = true, ["\f"] = true, ["\28"] = true, ["\29"] = true, ["\30"] = true, ["\r"] = true}
for _, code in ipairs {0x85, 0x2028, 0x2029} do
  line_ends[characters.encode(code)] = true
end

--- Bytes of the lines as str.splitlines has them.
-- @treturn table array of {first, last, last with its end}
function characters.lines(s)
  run.spend(#s / 16)
  local lines, from, at = {}, 1, 1
  while at <= #s do
    at = s:find("[\n-\r\28-\30\194\226]", at)
    if not at then
      break
    end
    local c = s:sub(at, at + 1) == "\r\n" and "\r\n" or s:match("^[^\128-\191][\128-\191]*", at)
    if c == "\r\n" or line_ends[c] then
      lines[#lines + 1] = {from, at - 1, at + #c - 1}
      from = at + #c
    end
    at = at + #c
  end
  if from <= #s then
    lines[#lines + 1] = {from, #s, #s}
  end
  return lines
end

--- Capital letters, small letters, or the first letter's title form.
characters.upper = function(s) return is_ascii(s) and s:upper() or core.unicode_case(s, "upper") end
characters.lower = function(s) return is_ascii(s) and s:lower() or core.unicode_case(s, "lower") end
characters.title = function(s) return is_ascii(s) and s:upper() or core.unicode_case(s, "title") end

--- The general category of a character: "Lu", "Zs"...
function characters.category(c)
  return core.unicode_category(characters.code(c))
end

return characters
