--- weir template: what a chat template makes of a conversation.
local args = require "weir.args"
local core = require "weir.core"
local errors = require "weir.errors"
local template = require "weir.template"
local weir = require "weir"

local command = {
  summary = "render a conversation with a chat template",
  usage = "(MODEL | FILE.jinja) [option...] < CONVERSATION.json",
  help = [[
Prints the text that a chat template makes of a conversation: a model's own template, one of the file's or of weir's by name, or a file's.
Standard input is a JSON object: "messages", an array of {"role": ..., "content": ...}, and whatever else the template uses ("tools", "documents",
"add_generation_prompt", which is true if it is not there, "enable_thinking", "bos_token", ...); or the array of messages alone.
A template in a file has no model: its beginning and end tokens are shown as <BOS> and <EOS>.]],
  positional = {"MODEL"},
  options = {
    {flags = "--named", type = "string", value = "NAME", text = "another of the model's templates (tool_use ...), or chatml, llama2, llama3, mistral, gemma"},
    {flags = "--parts", type = "flag", text = "print JSON: [text, special] of each part; special: the template's own text"},
    {flags = "--now", type = "string", value = "TIME", text = "\"2026-07-04 09:05:03\" for templates that ask for the time"},
  },
}

local function read_file(path)
  local file, why = io.open(path, "rb")
  if not file then
    error(errors.new("ENOENT", "cannot read " .. tostring(why)), 0)
  end
  local text, failed = file:read "*a"
  file:close()
  return text or error(errors.new("EIO", ("cannot read %s: %s"):format(path, tostring(failed))), 0)
end

local function time_of(text)
  if not text then
    return nil
  end
  local y, mo, d, h, mi, s = text:match "^(%d%d%d%d)-(%d%d)-(%d%d)[ T](%d%d):(%d%d):(%d%d)$"
  local time = y and os.time {year = y, month = mo, day = d, hour = h, min = mi, sec = s}
  -- os.time takes February 30 as a day of March.
  if not time or os.date("%Y-%m-%d %H:%M:%S", time) ~= text:gsub("T", " ") then
    args.fail("--now is '%s', wanted a time as YYYY-MM-DD HH:MM:SS", text)
  end
  return time
end

-- The template's text and name, and the texts of its beginning and end tokens.
local function source_of(o)
  if o[1]:match "%.jinja2?$" or o[1]:match "%.j2$" then
    if o.named then
      args.fail "--named chooses among a model's templates, and this is a template"
    end
    return read_file(o[1]), o[1], "<BOS>", "<EOS>"
  end
  local info = core.template_info(core.model_locate(o[1]))
  local text, name = template.find(info, o.named)
  return text, name, info.bos or "", info.eos or ""
end

-- The conversation on standard input: messages, and the other keys as variables.
local function conversation()
  local ok, value = pcall(weir.json.decode, io.stdin:read "*a", true)
  if not ok then
    error(errors.new("EFORMAT", "the conversation on standard input: " .. (errors.is(value) and value.text or tostring(value))), 0)
  end
  local meta = type(value) == "table" and getmetatable(value)
  if type(value) == "table" and not meta then
    return value, {}
  elseif type(value) ~= "table" or type(value.messages) ~= "table" or getmetatable(value.messages) then
    error(errors.new("EFORMAT", "the conversation on standard input: wanted an object with an array \"messages\""), 0)
  end
  return value.messages, value
end

function command.run(o)
  local now = time_of(o.now)
  local source, name, bos, eos = source_of(o)
  local messages, variables = conversation()
  local parts = source == "" and {} or template.render(source, messages, {
    name = name, variables = variables, now = now,
    bos = type(variables.bos_token) == "string" and variables.bos_token or bos, eos = type(variables.eos_token) == "string" and variables.eos_token or eos,
  })
  if o.parts then
    io.stdout:write(#parts > 0 and weir.json.encode(parts) or "[]", "\n")
  else
    io.stdout:write(template.text(parts))
  end
  return 0
end

return command
