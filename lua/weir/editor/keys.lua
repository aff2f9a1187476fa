--- Bytes of a terminal as keys: characters, control keys, escape sequences (xterm's, VT's and the Linux console's), bracketed paste.
-- @module weir.editor.keys
local width = require "weir.editor.width"

local keys = {}
keys.__index = keys

local finals = {A = "up", B = "down", C = "right", D = "left", H = "home", F = "end", Z = "back-tab"}
local numbers = {[1] = "home", [2] = "insert", [3] = "delete", [4] = "end", [5] = "page-up", [6] = "page-down", [7] = "home", [8] = "end"}
local controls = {[8] = "backspace", [9] = "tab", [10] = "enter", [13] = "enter", [27] = "escape", [127] = "backspace"}

--- Makes a decoder.
function keys.new()
  return setmetatable({rest = ""}, keys)
end

local function control(byte)
  return controls[byte] or byte < 27 and "ctrl-" .. string.char(byte + 96) or byte == 31 and "ctrl-_" or byte == 0 and "ctrl-space" or nil
end

-- The modifier of xterm's sequences: 1 + shift + 2 alt + 4 ctrl.
local function modified(name, modifier)
  local m = (tonumber(modifier) or 1) - 1
  if m >= 4 then
    return "ctrl-" .. name
  end
  return m >= 2 and "alt-" .. name or name
end

-- A control sequence at `at`: its key (nil: of no use) and the next byte; nil, nil if it is not complete.
local function sequence(text, at)
  local parameters, final, after = text:match("^\27%[([%d;:<=>?]*)[ -/]*([@-~])()", at)
  if not final then
    return nil, nil, text:find("^\27%[[%d;:<=>?]*[ -/]*$", at) == nil
  end
  local number, modifier = parameters:match "^(%d*);?(%d*)"
  if final == "~" then
    if number == "200" then
      return "paste", after
    end
    local name = numbers[tonumber(number)]
    return name and modified(name, modifier), after
  end
  return finals[final] and modified(finals[final], modifier), after
end

-- What begins with ESC at `at`.
local function escape(text, at)
  local second = text:sub(at + 1, at + 1)
  if second == "" then
    return nil, nil
  elseif second == "[" then
    local key, after, broken = sequence(text, at)
    if broken then
      return nil, at + 2
    end
    return key, after
  elseif second == "O" then
    local final = text:sub(at + 2, at + 2)
    return finals[final], final ~= "" and at + 3 or nil
  elseif second == "\27" then
    return "escape", at + 1
  elseif second:byte() < 32 or second == "\127" then
    return "alt-" .. (control(second:byte()) or "?"), at + 2
  end
  return "alt-" .. second, at + 2
end

--- Takes bytes; what is not complete waits for more.
-- @tparam string bytes
-- @treturn table array of {key = name} and {text = a character, or what was pasted, with \n for its line ends; pasted = true}
function keys:feed(bytes)
  local text, at, found = self.rest .. bytes, 1, {}
  while at <= #text do
    local byte, key, after = text:byte(at), nil, at + 1
    if self.pasting then
      local stop, last = text:find("\27[201~", at, true)
      if not stop then
        break
      end
      found[#found + 1] = {text = text:sub(at, stop - 1):gsub("\r\n?", "\n"), pasted = true}
      self.pasting, after = false, last + 1
    elseif byte == 27 then
      key, after = escape(text, at)
      if not after then
        break
      end
      self.pasting = key == "paste"
      key = not self.pasting and key or nil
    elseif byte < 32 or byte == 127 then
      key = control(byte)
    else
      local n = width.sequence(text, at)
      if n == 0 then
        break
      end
      found[#found + 1] = {text = n and text:sub(at, at + n - 1) or "\239\191\189"}
      after = at + (n or 1)
    end
    if key then
      found[#found + 1] = {key = key}
    end
    at = after
  end
  self.rest = text:sub(at)
  return found
end

return keys
