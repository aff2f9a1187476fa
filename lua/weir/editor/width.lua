--- How many columns of a terminal characters take, and text as a list of characters. Widths by blocks of Unicode 15 (EastAsianWidth.txt W and F, and the
-- blocks of combining marks); no locale is asked.
-- @module weir.editor.width
local width = {}

-- Pairs: first and last code point.
local none = {
  0x0300, 0x036f, 0x0483, 0x0489, 0x0591, 0x05bd, 0x0610, 0x061a, 0x064b, 0x065f, 0x06d6, 0x06dc, 0x0900, 0x0902, 0x093c, 0x093c, 0x0941, 0x0948,
  0x0e31, 0x0e31, 0x0e34, 0x0e3a, 0x0e47, 0x0e4e, 0x1ab0, 0x1aff, 0x1dc0, 0x1dff, 0x200b, 0x200f, 0x202a, 0x202e, 0x2060, 0x2064, 0x20d0, 0x20ff,
  0x302a, 0x302d, 0x3099, 0x309a, 0xfe00, 0xfe0f, 0xfe20, 0xfe2f, 0xfeff, 0xfeff, 0x1f3fb, 0x1f3ff, 0xe0000, 0xe01ef,
}
local two = {
  0x1100, 0x115f, 0x231a, 0x231b, 0x23e9, 0x23ec, 0x2614, 0x2615, 0x2648, 0x2653, 0x26aa, 0x26ab, 0x26bd, 0x26be, 0x26d4, 0x26d4, 0x2705, 0x2705,
  0x270a, 0x270b, 0x2728, 0x2728, 0x274c, 0x274c, 0x2753, 0x2755, 0x2795, 0x2797, 0x2b1b, 0x2b1c, 0x2b50, 0x2b50, 0x2e80, 0x303e, 0x3041, 0x33ff,
  0x3400, 0x4dbf, 0x4e00, 0x9fff, 0xa000, 0xa4cf, 0xa960, 0xa97f, 0xac00, 0xd7a3, 0xf900, 0xfaff, 0xfe30, 0xfe6f, 0xff01, 0xff60, 0xffe0, 0xffe6,
  0x16fe0, 0x18aff, 0x1b000, 0x1b2ff, 0x1f004, 0x1f004, 0x1f0cf, 0x1f0cf, 0x1f18e, 0x1f18e, 0x1f191, 0x1f19a, 0x1f200, 0x1f320, 0x1f32d, 0x1f335,
  0x1f337, 0x1f37c, 0x1f37e, 0x1f393, 0x1f3a0, 0x1f3ca, 0x1f3e0, 0x1f3f0, 0x1f400, 0x1f43e, 0x1f440, 0x1f4fc, 0x1f4ff, 0x1f53d, 0x1f54b, 0x1f567,
  0x1f5fb, 0x1f64f, 0x1f680, 0x1f6c5, 0x1f6d0, 0x1f6ff, 0x1f7e0, 0x1f7eb, 0x1f90c, 0x1f9ff, 0x1fa70, 0x1faff, 0x20000, 0x3fffd,
}

local function within(ranges, code)
  for i = 1, #ranges, 2 do
    if code < ranges[i] then
      return false
    elseif code <= ranges[i + 1] then
      return true
    end
  end
  return false
end

-- The code point of one character.
local function code_of(character)
  local a, b, c, d = character:byte(1, 4)
  if a < 0x80 then
    return a
  elseif a < 0xe0 then
    return (a - 0xc0) * 64 + b - 0x80
  elseif a < 0xf0 then
    return ((a - 0xe0) * 64 + b - 0x80) * 64 + c - 0x80
  end
  return (((a - 0xf0) * 64 + b - 0x80) * 64 + c - 0x80) * 64 + d - 0x80
end

local cache = {}

--- Columns of one character: 0, 1 or 2; for control characters of what `shown` makes of them.
function width.of(character)
  local known = cache[character]
  if known then
    return known
  end
  local code = code_of(character)
  local n = 1
  if code == 9 then
    n = 4
  elseif code < 32 or code == 127 then
    n = 2
  elseif code >= 0x300 and within(none, code) then
    n = 0
  elseif code >= 0x1100 and within(two, code) then
    n = 2
  end
  cache[character] = n
  return n
end

--- A character as it is drawn.
function width.shown(character)
  if character == "\t" then
    return "    "
  elseif character:find "^[%z\1-\31]$" then
    return "^" .. string.char(character:byte() + 64)
  end
  return character == "\127" and "^?" or character
end

--- Length of the well-formed UTF-8 sequence at `at`; nil if there is none; 0 if the text ends within one.
function width.sequence(text, at)
  local a = text:byte(at)
  local n = a < 0x80 and 1 or a >= 0xc2 and a < 0xe0 and 2 or a >= 0xe0 and a < 0xf0 and 3 or a >= 0xf0 and a < 0xf5 and 4
  if not n then
    return nil
  end
  for i = 1, n - 1 do
    local b = text:byte(at + i)
    if not b then
      return 0
    elseif b < 0x80 or b > 0xbf or i == 1 and (a == 0xe0 and b < 0xa0 or a == 0xed and b > 0x9f or a == 0xf0 and b < 0x90 or a == 0xf4 and b > 0x8f) then
      return nil
    end
  end
  return n
end

--- Splits text into characters; bytes that are no UTF-8 become U+FFFD.
function width.characters(text)
  local all, at = {}, 1
  while at <= #text do
    local n = width.sequence(text, at)
    if n and n > 0 then
      all[#all + 1] = text:sub(at, at + n - 1)
      at = at + n
    else
      all[#all + 1] = "\239\191\189"
      at = at + 1
    end
  end
  return all
end

--- Columns of a text without control sequences.
function width.text(text)
  local n = 0
  for _, character in ipairs(width.characters(text)) do
    n = n + width.of(character)
  end
  return n
end

return width
