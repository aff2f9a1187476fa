--- Reads lines in a main chunk while the loop runs: with an editor where there is a terminal, plainly where there is none. What actors print meanwhile appears
-- above the edited line.
-- @module weir.terminal
local core = require "weir.core"
local editor = require "weir.editor"
local keys = require "weir.editor.keys"
local screen = require "weir.editor.screen"
local weir = require "weir"
local width = require "weir.editor.width"

local terminal = {}
terminal.__index = terminal

local KEYS = 2048 -- bytes read at a time: a screenful of pasted text

local shown -- the terminal that this process edits on; there is one
local raw_write = io.stdout.write

local function emit(text)
  if text ~= "" then
    raw_write(io.stdout, text)
  end
  io.stdout:flush()
end

-- ---- output ----

-- Where the cursor stands after a text that begins in a column; nil: in the first of a line.
local function column_after(text, column, columns)
  local line = text:match "\n([^\n]*)$"
  local plain = (line or text):gsub("\27%[[%d;?]*[@-~]", ""):gsub("^.*\r", "")
  local at = (line and 0 or column or 0) + width.text(plain)
  return at > 0 and (at - 1) % columns + 1 or nil
end

-- Text of anybody while a line is edited: above it. A line that has no end yet goes on where it was.
local function write_above(self, text, file)
  local columns, rows = core.window_size(1)
  emit(self.screen:hide(columns) .. (self.tail and ("\27[A\27[%dG"):format(math.min(self.tail + 1, columns)) or ""))
  raw_write(file, text)
  file:flush()
  self.tail = column_after(text, self.tail, columns)
  emit((self.tail and "\r\n" or "") .. self.screen:draw(self.editor:view(), columns, rows))
end

local function write(file, ...)
  local self = shown
  if not self or file ~= io.stdout and file ~= io.stderr then
    return raw_write(file, ...)
  end
  local parts = {...}
  for i = 1, select("#", ...) do
    local kind = type(parts[i])
    if kind ~= "string" and kind ~= "number" then
      return raw_write(file, ...) -- raises what it raises
    end
    parts[i] = tostring(parts[i])
  end
  local text = table.concat(parts)
  if self.editing and text ~= "" then
    write_above(self, text, file)
    return true
  end
  self.open = text ~= "" and text:sub(-1) ~= "\n" or text == "" and self.open
  return raw_write(file, ...)
end

-- print, io.write and the files' write all come by here.
local function intercept()
  getmetatable(io.stdout).__index.write = write
  rawset(io, "write", function(...)
    return write(io.output(), ...)
  end)
  rawset(_G, "print", function(...)
    local parts = {...}
    for i = 1, select("#", ...) do
      parts[i] = tostring(parts[i])
      if type(parts[i]) ~= "string" then
        error("'tostring' must return a string to 'print'", 2)
      end
    end
    write(io.stdout, table.concat(parts, "\t") .. "\n")
  end)
end

-- ---- opening ----

--- Makes a reader of standard input.
-- @tparam[opt] table options as weir.editor.new takes them; list(candidates, columns): a text; prompts: also where
-- input is no terminal; attentive(boolean): whether signals that tell of changes
-- of the terminal end the main chunk's waits; returns whether one came since it was last asked
function terminal.open(options)
  local is = core.is_terminal(0)
  local self = setmetatable({
    options = options or {}, is = is, plain = not is or not core.is_terminal(1) or os.getenv "TERM" == "dumb" or os.getenv "TERM" == nil,
    waiting = {}, screen = screen.new(), attentive = options and options.attentive or function() end,
  }, terminal)
  if self.plain then
    io.stdin:setvbuf "no" -- code that is evaluated may read what follows its line
  else
    self.editor, self.keys = editor.new(options), keys.new()
    io.stdout:setvbuf "no" -- pieces of a line are to be seen as they come
    if not shown then
      intercept()
    end
    shown = self
  end
  return self
end

-- ---- waiting ----

-- Waits for standard input; nil: it can be read; else why the wait ended: "interrupt", "terminated", "changed" (the terminal may have), or an error's text.
local function wait_input(self)
  if self.attentive(true) then
    return "changed"
  end
  local ok, e = pcall(core.wait_fd, 0, "r")
  if self.attentive(false) and ok then -- the wait was over already: the next one would end at once
    pcall(weir.sleep, 0)
  end
  if core.terminated() then
    return "terminated"
  elseif core.calm() then
    return "interrupt"
  elseif not ok and e.code == "ECANCELLED" then
    return "changed"
  elseif not ok and e.code ~= "EUNSUPPORTED" then -- the test driver watches no descriptors: nothing runs while one types
    return tostring(e)
  end
  core.waited()
  return nil
end

-- ---- without an editor ----

local function read_plain(self, prompt, continuation)
  local lines, rest = {}, ""
  while true do
    if self.is or self.options.prompts then
      io.stdout:write(#lines == 0 and prompt or continuation)
      io.stdout:flush()
    end
    local what
    repeat
      local why = wait_input(self)
      if why and why ~= "changed" then
        io.stdout:write(self.is and "\n" or "")
        return nil, why
      end
      local part
      part, what = core.read_line()
      rest = rest .. part
    until what ~= "more"
    if what ~= "line" and rest == "" and #lines == 0 then
      return nil, what
    end
    lines[#lines + 1] = rest
    rest = ""
    local text = table.concat(lines, "\n")
    if what ~= "line" or not (self.options.continues and self.options.continues(text)) then
      return text
    end
  end
end

-- ---- with an editor ----

local function draw(self)
  local columns, rows = core.window_size(1)
  emit(self.screen:draw(self.editor:view(), columns, rows))
end

local function leave(self, mark)
  local columns, rows = core.window_size(1)
  local text = self.screen:leave(self.editor:view(), columns, rows)
  emit(mark and text:gsub("\r\n$", mark .. "\r\n") or text)
end

-- The next key; nil and why there is none.
local function next_key(self)
  while #self.waiting == 0 do
    local why = wait_input(self)
    if why then
      self.waiting = why == "interrupt" and {} or self.waiting
      return nil, why
    end
    local bytes, reason = core.read(0, KEYS)
    if not bytes and reason ~= "again" then
      return nil, "end"
    end
    self.waiting = self.keys:feed(bytes or "")
  end
  return table.remove(self.waiting, 1)
end

local answers = {}

function answers.list(self, candidates)
  local columns = core.window_size(1)
  leave(self)
  self.tail = nil
  emit((self.options.list or table.concat)(candidates, columns):gsub("\n", "\r\n") .. "\r\n")
end

function answers.clear(self)
  self.screen:hide(core.window_size(1))
  self.tail = nil
  emit "\27[H\27[2J"
end

function answers.suspend(self)
  leave(self)
  core.suspend()
end

-- Keys until the line is there.
local function edit(self)
  while true do
    if #self.waiting == 0 then
      draw(self)
    end
    local key, why = next_key(self)
    local what, value
    if key then
      what, value = self.editor:key(key)
    elseif why == "changed" then
      core.raw_again()
    else
      leave(self, why == "interrupt" and "^C" or nil)
      return nil, why
    end
    if what == "submit" or what == "end" then
      leave(self)
      return value, what == "end" and "end" or nil
    elseif what then
      answers[what](self, value)
    end
  end
end

--- Reads one text of one or more lines.
-- @tparam string prompt
-- @tparam[opt] string continuation the prompt of further lines
-- @treturn ?string the text; nil at the end of input, or when the wait was broken off
-- @treturn ?string why there is none: "end", "interrupt" (Ctrl-C), "terminated" (the program has to end), or what failed
function terminal:read(prompt, continuation)
  continuation = continuation or prompt
  if self.plain then
    return read_plain(self, prompt, continuation)
  end
  if self.open then
    emit "\r\n"
  end
  self.open, self.tail = false, nil
  core.raw_mode(0)
  self.editor:begin(prompt, continuation)
  self.editing = true
  local ok, text, why = pcall(edit, self)
  self.editing = false
  core.raw_mode()
  if not ok then
    error(text, 0)
  end
  return text, why
end

return terminal
