--- Templates as tokens, with jinja2's rules of white space (trim_blocks and lstrip_blocks are on, the template's last newline is dropped). Reads on demand: what
-- stands behind a fault is never looked at.
-- @module weir.jinja.lexer
local characters = require "weir.jinja.characters"
local run = require "weir.jinja.run"

local Lexer = {}
Lexer.__index = Lexer

local lexer = {}

--- A lexer of a template's text. Its fields kind, value and line are the current token: kind is "data", "begin" and "end" of "{%", "print" and "finish" of "{{",
-- "name", "string", "integer", "float", an operator's text, or "eof".
function lexer.new(source)
  source = source:gsub("\r\n", "\n"):gsub("\r", "\n"):gsub("\n$", "")
  return setmetatable({
    source = source, at = 1, line = 1, queue = {},
    now = 1, newline = source:find("\n", 1, true) or math.huge, -- the line reached, and where it ends
    starting = true, -- at the beginning of a line
    inside = nil, brackets = {}, -- "%" or "{" in a tag, and the brackets that are open there
  }, Lexer)
end

-- The line of a byte; bytes come in ascending order.
function Lexer:line_at(byte)
  while self.newline < byte do
    self.now = self.now + 1
    self.newline = self.source:find("\n", self.newline + 1, true) or math.huge
  end
  return self.now
end

function Lexer:fail(...)
  run.line = self.line
  run.fail(...)
end

-- ---- outside of tags ----

-- Where the next tag begins: the byte, and what it is ("{", "%", "#"); nil at the end.
function Lexer:next_tag(from)
  local at = from
  while true do
    at = self.source:find("{", at, true)
    if not at then
      return nil
    end
    local mark = self.source:sub(at + 1, at + 1)
    if mark == "{" or mark == "%" or mark == "#" then
      return at, mark
    end
    at = at + 1
  end
end

local function right_stripped(s)
  local _, last = characters.strip(s, nil, false, true)
  return s:sub(1, last)
end

-- Text before a tag, without what the tag's sign or lstrip_blocks takes away.
function Lexer:before(data, sign, is_print)
  if sign == "-" then
    return right_stripped(data)
  elseif sign == "+" or is_print then
    return data
  end
  local tail = data:match "^.*\n()"
  if not tail then
    tail = self.starting and 1 or nil
  end
  if tail and characters.strip(data:sub(tail), nil, true, false) > #data - tail + 1 then
    return data:sub(1, tail - 1)
  end
  return data
end

-- Goes on behind the tag's end at byte `at` (the first one behind it): "-" takes white space away, a tag that is no print takes one newline.
function Lexer:behind(at, sign, trims)
  if sign == "-" then
    local first = characters.strip(self.source:sub(at, at + 255), nil, true, false)
    while first == 257 do -- the whole stretch
      at = at + 256
      first = characters.strip(self.source:sub(at, at + 255), nil, true, false)
    end
    at = at + first - 1
  elseif trims and sign ~= "+" and self.source:sub(at, at) == "\n" then
    at = at + 1
  end
  self.at = at
  self.starting = self.source:sub(at - 1, at - 1) == "\n"
end

local function push(self, kind, value, line)
  local queue = self.queue
  queue[#queue + 1] = {kind, value, line}
end

function Lexer:push_data(data, byte)
  if data ~= "" then
    push(self, "data", data, self:line_at(byte))
  end
end

function Lexer:comment(at)
  local stop = self.source:find("#}", at, true)
  if not stop then
    self.line = self:line_at(at)
    self:fail "missing end of comment tag"
  end
  local sign = self.source:sub(stop - 1, stop - 1)
  sign = stop > at and (sign == "-" or sign == "+") and sign or ""
  self:behind(stop + 2, sign, true)
end

-- The text of a raw block whose tag ends before byte `at`.
function Lexer:raw(at)
  local from = at
  while true do
    local mark = self.source:find("{%", from, true)
    if not mark then
      self.line = self:line_at(at)
      self:fail "missing end of raw directive"
    end
    local sign, end_sign, after = self.source:match("^{%%([-+]?)%s*endraw%s*([-+]?)%%}()", mark)
    if sign then
      self:push_data(self:before(self.source:sub(at, mark - 1), sign, false), at)
      self:behind(after, end_sign, true)
      return
    end
    from = mark + 2
  end
end

-- Reads text up to the next tag and the tag's beginning.
function Lexer:outside()
  local from = self.at
  local at, mark = self:next_tag(from)
  if not at then
    self:push_data(self.source:sub(from), from)
    self.at = #self.source + 1
    push(self, "eof", nil, self:line_at(#self.source))
    return
  end
  local sign = self.source:match("^[-+]", at + 2) or ""
  self:push_data(self:before(self.source:sub(from, at - 1), sign, mark == "{"), from)
  local after = at + 2 + #sign
  if mark == "#" then
    return self:comment(after)
  end
  local raw_sign, raw_at = self.source:match("^%s*raw%s*(%-?)%%}()", after)
  if mark == "%" and raw_at then
    self:behind(raw_at, raw_sign, false)
    return self:raw(self.at)
  end
  self.inside, self.at, self.brackets = mark, after, {}
  push(self, mark == "{" and "print" or "begin", nil, self:line_at(at))
end

-- ---- inside of tags ----

local simple_escapes = {n = "\n", t = "\t", r = "\r", a = "\a", b = "\b", f = "\f", v = "\v", ["\\"] = "\\", ["'"] = "'", ['"'] = '"', ["\n"] = ""}
local hex_escapes = {x = 2, u = 4, U = 8}

function Lexer:unescape(s)
  if not s:find("\\", 1, true) then
    return s
  end
  local pieces, at = {}, 1
  while true do
    local mark = s:find("\\", at, true)
    pieces[#pieces + 1] = s:sub(at, (mark or #s + 1) - 1)
    if not mark then
      return table.concat(pieces)
    end
    local c = s:sub(mark + 1, mark + 1)
    local octal = s:match("^[0-7][0-7]?[0-7]?", mark + 1)
    if simple_escapes[c] then
      pieces[#pieces + 1], at = simple_escapes[c], mark + 2
    elseif octal then
      pieces[#pieces + 1], at = characters.encode(tonumber(octal, 8)), mark + 1 + #octal
    elseif hex_escapes[c] then
      local digits = s:match("^%x+", mark + 2)
      local n = digits and #digits >= hex_escapes[c] and tonumber(digits:sub(1, hex_escapes[c]), 16)
      if not n or n > 0x10FFFF then
        self:fail("truncated or wrong \\%s escape in a string", c)
      end
      pieces[#pieces + 1], at = characters.encode(n), mark + 2 + hex_escapes[c]
    else
      pieces[#pieces + 1], at = "\\" .. c, mark + 2
    end
  end
end

function Lexer:string(at)
  local quote = self.source:sub(at, at)
  local from = at + 1
  while true do
    local mark = self.source:find("[\\" .. quote .. "]", from)
    if not mark then
      self:fail("unexpected char '%s': the string does not end", quote)
    elseif self.source:sub(mark, mark) == quote then
      self.at = mark + 1
      return "string", self:unescape(self.source:sub(at + 1, mark - 1))
    end
    from = mark + 2
  end
end

local number_patterns = {{"^0[bB]([01_]+)()", 2}, {"^0[oO]([0-7_]+)()", 8}, {"^0[xX]([%x_]+)()", 16}}

function Lexer:number(at)
  local source = self.source
  for _, row in ipairs(number_patterns) do
    local digits, after = source:match(row[1], at)
    if digits then
      self.at = after
      local n = tonumber((digits:gsub("_", "")), row[2])
      if not n or n > 2 ^ 53 then
        self:fail("'%s' is no integer below 2^53", source:sub(at, after - 1))
      end
      return "integer", n
    end
  end
  local whole = source:match("^[%d_]+", at)
  local after = at + #whole
  local rest = source:match("^%.%d[%d_]*", after) or ""
  rest = rest .. (source:match("^[eE][+-]?%d[%d_]*", after + #rest) or "")
  if source:sub(at - 1, at - 1) == "." then
    rest = ""
  end
  self.at = after + #rest
  local n = tonumber(((whole .. rest):gsub("_", "")))
  if not n or rest == "" and n > 2 ^ 53 then
    self:fail("the number %s is too large", #whole > 40 and whole:sub(1, 40) .. "..." or whole .. rest)
  end
  return rest == "" and "integer" or "float", n
end

local operators = {}
for word in ("// ** == != >= <= + - / * % ~ [ ] ( ) { } > < = . : | , ;"):gmatch "%S+" do
  operators[word] = true
end
local closing = {["("] = ")", ["["] = "]", ["{"] = "}"}

function Lexer:operator(at)
  local word = self.source:sub(at, at + 1)
  word = operators[word] and #word == 2 and word or self.source:sub(at, at)
  if not operators[word] then
    local c = self.source:match("^[^\128-\191][\128-\191]*", at) or word
    self:fail("unexpected char '%s'", c)
  end
  local stack = self.brackets
  if closing[word] then
    stack[#stack + 1] = closing[word]
  elseif word == ")" or word == "]" or word == "}" then
    if stack[#stack] ~= word then
      self:fail("unexpected '%s'%s", word, stack[#stack] and ", expected '" .. stack[#stack] .. "'" or "")
    end
    stack[#stack] = nil
  end
  self.at = at + #word
  return word, word
end

-- The end of the tag at a byte; false if it is not there.
function Lexer:tag_end(at)
  if #self.brackets > 0 then
    return false
  end
  local is_print = self.inside == "{"
  local sign, after = self.source:match(is_print and "^(%-?)}}()" or "^([-+]?)%%}()", at)
  if not sign then
    return false
  end
  push(self, is_print and "finish" or "end", nil, self:line_at(at))
  self.inside = nil
  self:behind(after, sign, not is_print)
  return true
end

local name_pattern = "^[%a_\128-\255][%w_\128-\255]*"

function Lexer:within()
  local at = self.source:match("^%s*()", self.at)
  if self:tag_end(at) then
    return
  end
  local line = self:line_at(at)
  self.line = line
  local c = self.source:sub(at, at)
  local kind, value
  if c == "" then
    kind = "eof"
  elseif c == "'" or c == '"' then
    kind, value = self:string(at)
  elseif c:find "%d" then
    kind, value = self:number(at)
  elseif c:find "[%a_\128-\255]" then
    kind, value = "name", self.source:match(name_pattern, at)
    self.at = at + #value
  else
    kind, value = self:operator(at)
  end
  push(self, kind, value, line)
end

-- Fills the queue up to n tokens.
function Lexer:fill(n)
  local queue = self.queue
  while #queue < n and not (queue[#queue] and queue[#queue][1] == "eof") do
    if self.inside then
      self:within()
    else
      self:outside()
    end
  end
end

--- Goes on to the next token.
function Lexer:advance()
  local queue = self.queue
  self:fill(1)
  local token = queue[1]
  if token[1] ~= "eof" then
    table.remove(queue, 1)
  end
  self.kind, self.value, self.line = token[1], token[2], token[3]
end

--- The kind and value of the token behind the current one.
function Lexer:look()
  local line = self.line
  self:fill(1)
  self.line = line
  local token = self.queue[1]
  return token[1], token[2]
end

return lexer
