--- A line editor for terminals, of one or more lines: keys in, text and cursor out. Knows no terminal: whoever owns one feeds keys and draws `view()`.
-- @module weir.editor
local width = require "weir.editor.width"

local editor = {}
editor.__index = editor

--- Makes an editor.
-- @tparam[opt] table options history (weir.editor.history); complete(text before the cursor): first byte of the word, array of candidates; continues(text):
-- whether Enter at its end begins another line
function editor.new(options)
  options = options or {}
  local self = setmetatable({
    history = options.history, complete = options.complete, continues = options.continues or function() return false end, killed = "",
  }, editor)
  self:begin ""
  return self
end

--- Starts with an empty text.
-- @tparam string prompt
-- @tparam[opt] string continuation before the second and further lines
function editor:begin(prompt, continuation)
  self.prompt, self.continuation = prompt, continuation or prompt
  self.characters, self.cursor = {}, 0
  self.place, self.draft, self.search, self.listing = nil, nil, nil, nil
end

--- The text.
function editor:text()
  return table.concat(self.characters)
end

--- Puts a text in the place of the edited one, the cursor at its end.
function editor:set(text)
  self.characters = width.characters(text)
  self.cursor = #self.characters
end

--- What to draw: prompt, continuation, characters, cursor.
function editor:view()
  if not self.search then
    return {prompt = self.prompt, continuation = self.continuation, characters = self.characters, cursor = self.cursor}
  end
  local prompt = ("(%ssearch '%s') "):format(self.search.failed and "failed " or "", self.search.text)
  return {prompt = prompt, continuation = self.continuation, characters = self.characters, cursor = self.cursor}
end

-- ---- places in the text: numbers of characters before them ----

local function line_start(self, at)
  while at > 0 and self.characters[at] ~= "\n" do
    at = at - 1
  end
  return at
end

local function line_end(self, at)
  while at < #self.characters and self.characters[at + 1] ~= "\n" do
    at = at + 1
  end
  return at
end

-- One character on, with the marks that combine with it.
local function step(self, at, way)
  at = at + way
  while at > 0 and at < #self.characters and width.of(self.characters[at + 1]) == 0 do
    at = at + way
  end
  return math.max(0, math.min(at, #self.characters))
end

local function is_word(character)
  return character:find "^[%w_\128-\255]" ~= nil
end

local function word_end(self, at)
  while at < #self.characters and not is_word(self.characters[at + 1]) do
    at = at + 1
  end
  while at < #self.characters and is_word(self.characters[at + 1]) do
    at = at + 1
  end
  return at
end

local function word_start(self, at, inside)
  inside = inside or is_word
  while at > 0 and not inside(self.characters[at]) do
    at = at - 1
  end
  while at > 0 and inside(self.characters[at]) do
    at = at - 1
  end
  return at
end

local function no_space(character)
  return not character:find "^%s"
end

-- ---- changes ----

--- Inserts text at the cursor.
function editor:insert(text)
  local after = {unpack(self.characters, self.cursor + 1)}
  for i, character in ipairs(width.characters(text)) do
    self.characters[self.cursor + i] = character
  end
  self.cursor = self.cursor + #width.characters(text)
  for i, character in ipairs(after) do
    self.characters[self.cursor + i] = character
  end
end

-- Takes the characters between two places out.
local function cut(self, from, to)
  local taken = table.concat(self.characters, "", from + 1, to)
  local n = #self.characters
  for i = to + 1, n + to - from do
    self.characters[i - to + from] = self.characters[i]
  end
  if self.cursor > from then
    self.cursor = math.max(from, self.cursor - (to - from))
  end
  return taken
end

local function kill(self, from, to)
  if to > from then
    self.killed = cut(self, from, to)
  end
end

-- ---- history ----

local function recall(self, place)
  local entries = self.history and self.history.entries or {}
  local current = self.place or #entries + 1
  if place < 1 or place > #entries + 1 or place == current then
    return
  end
  if current == #entries + 1 then
    self.draft = self:text()
  end
  self.place = place <= #entries and place or nil
  self:set(entries[place] or self.draft or "")
end

local function older(self)
  recall(self, (self.place or #(self.history and self.history.entries or {}) + 1) - 1)
end

local function newer(self)
  if self.place then
    recall(self, self.place + 1)
  end
end

-- A line up or down within the text; false if there is none.
local function move_line(self, way)
  local start = line_start(self, self.cursor)
  local column = self.cursor - start
  local target
  if way < 0 and start > 0 then
    target = line_start(self, start - 1)
  elseif way > 0 and line_end(self, self.cursor) < #self.characters then
    target = line_end(self, self.cursor) + 1
  else
    return false
  end
  self.cursor = math.min(target + column, line_end(self, target))
  return true
end

-- ---- search in the history ----

local function look(self, before)
  local search = self.search
  local found = self.history:find(search.text, math.min(before, #self.history.entries + 1))
  search.failed = not found
  if found then
    search.at = found
    self:set(self.history.entries[found])
  end
end

local function search_begin(self)
  if self.history then
    self.search = {text = "", at = #self.history.entries + 1, before = self:text()}
  end
end

local function search_cancel(self)
  self:set(self.search.before)
  self.search = nil
end

-- A key while searching; true: it was the search's.
local function search_key(self, key)
  local search = self.search
  if key.text and not key.pasted then
    search.text = search.text .. key.text
    look(self, search.at + 1)
  elseif key.key == "backspace" then
    search.text = table.concat(width.characters(search.text), "", 1, math.max(0, #width.characters(search.text) - 1))
    look(self, #self.history.entries + 1)
  elseif key.key == "ctrl-r" then
    look(self, search.at)
  elseif key.key == "ctrl-g" or key.key == "escape" then
    search_cancel(self)
  else
    self.place = search.at <= #self.history.entries and search.at or nil
    self.draft, self.search = self.draft or search.before, nil
    return false
  end
  return true
end

-- ---- completion ----

local function common_prefix(words)
  local first = words[1]
  local n = #first
  for _, word in ipairs(words) do
    while word:sub(1, n) ~= first:sub(1, n) do
      n = n - 1
    end
  end
  while n > 0 and n < #first and first:byte(n + 1) >= 0x80 and first:byte(n + 1) < 0xc0 do
    n = n - 1
  end
  return first:sub(1, n)
end

local function complete(self)
  local before = table.concat(self.characters, "", 1, self.cursor)
  if not self.complete then
    return nil
  elseif before:find "^[ \t]*$" or before:find "\n[ \t]*$" then
    self:insert "  "
    return nil
  end
  local first, candidates = self.complete(before)
  if not candidates or #candidates == 0 then
    return nil
  end
  local typed, prefix = before:sub(first), common_prefix(candidates)
  if #prefix > #typed then
    self:insert(prefix:sub(#typed + 1))
    self.listing = #candidates > 1 and candidates or nil
    return nil
  elseif self.listing then
    return "list", candidates
  end
  self.listing = #candidates > 1 and candidates or nil
  return nil
end

-- ---- keys ----

local commands = {
  left = function(self) self.cursor = step(self, self.cursor, -1) end,
  right = function(self) self.cursor = step(self, self.cursor, 1) end,
  home = function(self) self.cursor = line_start(self, self.cursor) end,
  ["end"] = function(self) self.cursor = line_end(self, self.cursor) end,
  ["alt-b"] = function(self) self.cursor = word_start(self, self.cursor) end,
  ["alt-f"] = function(self) self.cursor = word_end(self, self.cursor) end,
  ["alt-<"] = function(self) self.cursor = 0 end,
  ["alt->"] = function(self) self.cursor = #self.characters end,
  up = function(self) return not move_line(self, -1) and older(self) or nil end,
  down = function(self) return not move_line(self, 1) and newer(self) or nil end,
  ["ctrl-p"] = older,
  ["ctrl-n"] = newer,
  ["ctrl-r"] = search_begin,
  backspace = function(self) cut(self, step(self, self.cursor, -1), self.cursor) end,
  delete = function(self) cut(self, self.cursor, step(self, self.cursor, 1)) end,
  ["ctrl-u"] = function(self) kill(self, line_start(self, self.cursor), self.cursor) end,
  ["ctrl-w"] = function(self) kill(self, word_start(self, self.cursor, no_space), self.cursor) end,
  ["alt-backspace"] = function(self) kill(self, word_start(self, self.cursor), self.cursor) end,
  ["alt-d"] = function(self) kill(self, self.cursor, word_end(self, self.cursor)) end,
  ["ctrl-y"] = function(self) self:insert(self.killed) end,
  ["alt-enter"] = function(self) self:insert "\n" end,
  ["ctrl-l"] = function() return "clear" end,
  ["ctrl-z"] = function() return "suspend" end,
  tab = complete,
}

commands["ctrl-k"] = function(self)
  local last = line_end(self, self.cursor)
  kill(self, self.cursor, last > self.cursor and last or math.min(last + 1, #self.characters))
end

commands["ctrl-d"] = function(self)
  if #self.characters == 0 then
    return "end"
  end
  commands.delete(self)
end

-- What was typed is entered when it is finished, or the cursor is not at its end.
function commands.enter(self)
  local text = self:text()
  if self.continues(text) then
    self:insert "\n"
    return nil
  end
  return "submit", text
end

for alias, name in pairs {
  ["ctrl-b"] = "left", ["ctrl-f"] = "right", ["ctrl-a"] = "home", ["ctrl-e"] = "end", ["ctrl-left"] = "alt-b", ["ctrl-right"] = "alt-f", ["alt-left"] = "alt-b",
  ["alt-right"] = "alt-f", ["ctrl-h"] = "backspace", ["ctrl-j"] = "enter", ["ctrl-m"] = "enter", ["ctrl-delete"] = "alt-d", ["page-up"] = "ctrl-p",
  ["page-down"] = "ctrl-n", ["ctrl-home"] = "alt-<", ["ctrl-end"] = "alt->",
} do
  commands[alias] = commands[name]
end

--- Takes a key.
-- @tparam table key {key = name} or {text = ...}, as weir.editor.keys gives them
-- @treturn ?string what is for the terminal's owner: "submit", text; "end" (Ctrl-D in an empty text); "list", candidates; "clear" (the screen); "suspend";
-- nil: draw
function editor:key(key)
  if self.search and search_key(self, key) then
    return nil
  end
  local listing = self.listing
  if key.key ~= "tab" then
    self.listing = nil
  end
  if key.text then
    self:insert(key.pasted and key.text:gsub("\n$", "") or key.text)
    return nil
  end
  local command = commands[key.key]
  if not command then
    return nil
  end
  self.listing = key.key == "tab" and listing or nil
  return command(self)
end

--- Ctrl-C: ends a search, or empties the text.
function editor:interrupt()
  if self.search then
    search_cancel(self)
  end
  self:begin(self.prompt, self.continuation)
end

return editor
