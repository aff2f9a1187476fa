--- The prompt: reads, evaluates, shows. Evaluations run in the main chunk; while one types, and while an evaluation waits, the loop runs and the actors go on.
-- @module weir.prompt
local core = require "weir.core"
local chunk = require "weir.prompt.chunk"
local completion = require "weir.prompt.completion"
local documentation = require "weir.documentation"
local errors = require "weir.errors"
local history = require "weir.editor.history"
local session = require "weir.prompt.session"
local terminal = require "weir.terminal"
local weir = require "weir"

local prompt = {}

local help = [[
Enter an expression or statements of Lua; weir is there as `weir`. What is not finished goes on in the next line.
  1 + 1, =x        values are shown; _ is the last one. Locals stay from line to line
  weir.call(...)   waits, while actors go on; they do so too while you type
  ?name            what is written about a function, module or error code: ?weir.spawn, ?weir.model, ?EFULL
Keys
  Tab              completes; twice: lists      Up, Down, Ctrl-R   history, search in it
  Ctrl-C           stops an evaluation, or empties the line; what runs and what is known stays
  Ctrl-D           ends                         Alt-Enter          another line
  Ctrl-A, -E       begin, end of the line       Alt-B, -F          a word back, forth
  Ctrl-U, -K, -W, Alt-D  cut; Ctrl-Y inserts that again; Ctrl-L clears the screen; Ctrl-Z suspends]]

-- `?name`: what to look up; nil: no such question.
local function question(text)
  return text:match "^%s*%?%s*([%w_.:]*)%s*%(?%)?%s*$"
end

local function answer(state, name)
  if name == "" then
    return help
  end
  local path = {}
  for part in name:gmatch "[%w_]+" do
    path[#path + 1] = part
  end
  return (documentation.of(name, state:value(path)))
end

-- A slow evaluation is its owner's business; slow actors are told.
local function guard()
  local slow = weir.slow
  weir.guard {limit = 1}
  weir.slow = function(address, ...)
    if address ~= nil then
      return slow(address, ...)
    end
  end
end

-- Shows what comes of a text; false if it failed.
local function enter(state, text, out)
  local name = question(text)
  if name then
    out:write(answer(state, name), "\n")
    return true
  end
  local shown, complaint = state:evaluate(text)
  if shown then
    out:write(shown, "\n")
  elseif complaint and not core.terminated() then
    if core.calm() and core.is_terminal(0) then
      out:write "\n" -- behind the terminal's own ^C
    end
    io.stderr:write(complaint, "\n")
  end
  return complaint == nil
end

local function open(state, program)
  local kept = core.is_terminal(0) and history.open(history.place()) or nil
  local reader = terminal.open {
    history = kept, list = completion.list, attentive = program.attentive,
    continues = function(text) return not question(text) and chunk.continues(text) end,
    complete = function(text) return completion.find(state, text) end,
  }
  return reader, kept
end

local function remember(kept, text)
  local reason = kept and kept:add(text)
  if reason and not kept.told then
    kept.told = true
    io.stderr:write("weir: the history is not kept: ", reason, "\n")
  end
end

-- Reads and evaluates once; nil to go on, else the exit code.
local function turn(self)
  local text, why = self.reader:read("> ", ">> ")
  if text and text:find "%S" then
    remember(self.history, text)
    self.failed = not enter(self.session, text, io.stdout) or self.failed
    io.stdout:flush()
    core.calm()
  elseif why == "interrupt" and not self.reader.is then
    return 130
  elseif not text and why ~= "interrupt" then
    return not self.reader.is and self.failed and 1 or 0
  end
  return nil
end

--- Runs the prompt until its end.
-- @tparam table program what main.c and weir.cli offer: attend(function), attentive(boolean)
-- @treturn number exit code; from a pipe 1 if something failed
function prompt.run(program)
  local columns = core.is_terminal(1) and core.window_size(1) or 100
  local self = {session = session.new {width = math.max(40, math.min(columns - 1, 160))}, failed = false}
  self.reader, self.history = open(self.session, program)
  program.attend((core.waker()))
  guard()
  if self.reader.is then
    io.stdout:write("weir ", core.version, ", ", jit.version, ". ? helps, Ctrl-D ends.\n")
  end
  while true do
    local ok, code = pcall(turn, self)
    if core.terminated() then
      return 143
    elseif ok and code then
      return code
    elseif not ok and not errors.is(code, "ECANCELLED") then -- Ctrl-C finds the prompt's own code too
      error(code, 0)
    end
  end
end

return prompt
