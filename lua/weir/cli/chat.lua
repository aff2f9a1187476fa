--- weir chat: a conversation in a terminal.
local args = require "weir.args"
local core = require "weir.core"
local errors = require "weir.errors"
local history = require "weir.editor.history"
local logprobs = require "weir.logprobs"
local terminal = require "weir.terminal"

local chat = {
  summary = "talk with a model",
  usage = "MODEL [option...]",
  help = [[
Talks with a model. Ctrl-C stops an answer, Ctrl-D ends. At the prompt:
  /reset   forget what was said
  /help    say this
  /quit    end]],
  positional = {"MODEL"},
  options = args.join({
    {flags = "--system", type = "string", value = "TEXT", text = "what the model is told first"},
    {flags = "--template", type = "string", value = "NAME|FILE", text = "chatml, llama2, llama3, mistral, gemma, another of the model's, or a file FILE.jinja"},
    {flags = "-n", type = "positive", text = "tokens of an answer at most (default: 1024)", default = 1024},
  }, args.sampling, args.load),
}

local function beginning(o)
  return o.system and {{role = "system", content = o.system}} or {}
end

-- A template's name, or a file's text; a name with a dot or slash is a file.
local function template_of(o)
  if not (o.template and o.template:find "[./]") then
    return o.template
  end
  local file, why = io.open(o.template, "rb")
  local text = file and file:read "*a"
  if not text then
    error(errors.new("ENOENT", "cannot read " .. (why or o.template)), 0)
  end
  file:close()
  return text
end

-- Shows an answer as it comes; what was there is kept when Ctrl-C stops it.
local function answer(model, messages, request, program)
  local pieces = {}
  request.stream = function(piece)
    pieces[#pieces + 1] = piece
    io.stdout:write(piece)
    io.stdout:flush()
  end
  local ok, e, finish = pcall(model.chat, model, messages, request)
  io.stdout:write "\n"
  if ok and finish.logprobs then
    io.stdout:write(logprobs.lines(finish.logprobs))
  end
  if not ok then
    if not (program.calm() or core.interrupted()) then
      io.stderr:write("weir chat: ", errors.is(e) and tostring(e) or errors.text(e), "\n")
      table.remove(messages)
      return
    end
    collectgarbage() -- the broken-off generation is cancelled when it is collected
  end
  messages[#messages + 1] = {role = "assistant", content = table.concat(pieces)}
end

-- The next line that is no command; nil: the end.
local function read(o, messages, program, reader)
  while true do
    program.calm()
    io.stdout:write(#messages > #beginning(o) and "\n" or "")
    local line, why = reader:read("> ", ". ")
    if line == "/quit" or not line and why ~= "interrupt" then
      return nil
    elseif line == "/reset" then
      for i = #messages, #beginning(o) + 1, -1 do
        messages[i] = nil
      end
    elseif line == "/help" then
      io.stdout:write(chat.help, "\n")
    elseif line and line:sub(1, 1) == "/" then
      io.stdout:write("no command ", line, "; /help lists them\n")
    elseif line and line:match "%S" then
      return line
    end
  end
end

function chat.run(o, program)
  local request = args.sampling_options(o)
  request.max_tokens = o.n
  request.template = template_of(o)
  local model = args.load_model(o)
  local messages = beginning(o)
  program.attend((core.waker()))
  local said = history.open()
  local reader = terminal.open {attentive = program.attentive, history = said, prompts = true}
  for line in function() return read(o, messages, program, reader) end do
    said:add(line)
    messages[#messages + 1] = {role = "user", content = line}
    answer(model, messages, request, program)
  end
  return 0
end

return chat
