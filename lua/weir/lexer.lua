--- Words of Lua source, also of source that is not finished: for completion, continuation and the prompt's locals. Judges nothing: the compiler does that.
-- @module weir.lexer
local lexer = {}

local keywords = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat return then true until while]]):gmatch "%a+" do
  keywords[word] = true
end
lexer.keywords = keywords

-- Where the long bracket that opens at `at` ends; nil: it does not; false: none opens there.
local function long_bracket(text, at)
  local level = text:match("^%[(=*)%[", at)
  if not level then
    return false
  end
  local _, last = text:find("]" .. level .. "]", at + #level + 2, true)
  return last
end

-- Where the quoted string that opens at `at` ends; nil and whether the next line may go on with it.
local function quoted(text, at)
  local quote, i = text:sub(at, at), at + 1
  while i <= #text do
    local c = text:sub(i, i)
    if c == quote then
      return i
    elseif c == "\n" then
      return nil, false, i - 1
    elseif c == "\\" and text:sub(i + 1, i + 1) == "z" then
      i = text:match("^%s*()", i + 2)
      if i > #text then
        return nil, true, #text
      end
    elseif c == "\\" then
      if i >= #text then
        return nil, true, #text
      end
      i = i + 2
      if i > #text and text:sub(-1) == "\n" then
        return nil, true, #text
      end
    else
      i = i + 1
    end
  end
  return nil, false, #text
end

-- A comment that begins at `at`: where it ends, and whether it is an unfinished long one.
local function comment(text, at)
  local long = long_bracket(text, at + 2)
  if long then
    return long, false
  elseif long == nil then
    return #text, true
  end
  return text:match("^[^\n]*()", at) - 1, false
end

local operators = {"...", "..", "==", "~=", "<=", ">=", "::"}

local function operator(text, at)
  for _, op in ipairs(operators) do
    if text:sub(at, at + #op - 1) == op then
      return at + #op - 1
    end
  end
  return at + #(text:match("^[%z\1-\127\194-\244][\128-\191]*", at) or " ") - 1
end

-- The word at `at`: kind, last byte, and for unfinished ones how they are: "long", "escaped", "broken".
local function word(text, at)
  local c = text:sub(at, at)
  if c:find "[%a_\128-\255]" then
    local last = text:match("^[%w_\128-\255]*()", at) - 1
    return keywords[text:sub(at, last)] and "keyword" or "name", last
  elseif c:find "%d" or text:find("^%.%d", at) then
    return "number", text:match("^[%w%.]*()", at) - 1
  elseif c == '"' or c == "'" then
    local last, escaped, stop = quoted(text, at)
    return "string", last or stop, not last and (escaped and "escaped" or "broken") or nil
  elseif c == "[" then
    local last = long_bracket(text, at)
    if last ~= false then
      return "string", last or #text, not last and "long" or nil
    end
  end
  return "operator", operator(text, at)
end

--- Splits source into words.
-- @tparam string text
-- @treturn table array of {kind = "name"|"keyword"|"number"|"string"|"operator", text, first, last (bytes), open (of an unfinished string)}
-- @treturn ?string how the text ends: nil between words; "comment" in one that ends with its line; "long" in a long string or comment; "escaped" in a quoted
-- string that the next line may go on with; "broken" in one that it may not
function lexer.scan(text)
  local words, at = {}, 1
  while true do
    at = text:match("^%s*()", at)
    if at > #text then
      return words, nil
    elseif text:sub(at, at + 1) == "--" then
      local last, unfinished = comment(text, at)
      if last >= #text then
        return words, unfinished and "long" or text:sub(-1) ~= "\n" and not text:find("^%[=*%[", at + 2) and "comment" or nil
      end
      at = last + 1
    else
      local kind, last, open = word(text, at)
      words[#words + 1] = {kind = kind, text = text:sub(at, last), first = at, last = last, open = open}
      if open and last >= #text then
        return words, open
      end
      at = last + 1
    end
  end
end

return lexer
