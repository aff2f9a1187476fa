--- The prompt of a chat: messages through a template, as token ids. Asks the model only for texts and ids.
-- @module weir.chat
local errors = require "weir.errors"
local template = require "weir.template"

local chat = {}

-- Texts of the model's beginning and end tokens, and the id that its file wants at the beginning of each prompt, or nil.
local function edges_of(model)
  local info = model.info
  if not model.edges then
    local function text(id)
      return id and id >= 0 and model:detokenize({id}, {special = true}) or ""
    end
    local bounds = info.tokenizer and model:tokenize("", {bounds = true}) or {}
    model.edges = {bos = text(info.bos), eos = text(info.eos), first = bounds[1] == info.bos and info.bos or nil}
  end
  return model.edges
end

local function render(model, messages, options)
  local wanted = options.template
  if type(wanted) == "function" then
    return wanted(messages)
  end
  local source, name = wanted, "options.template"
  if type(wanted) ~= "string" or not wanted:find("{", 1, true) then
    source, name = template.find(model.info, wanted)
  end
  local edges = edges_of(model)
  return template.render(source, messages, {
    name = name, bos = edges.bos, eos = edges.eos, tools = options.tools, variables = options.variables,
  })
end

--- The token ids of a chat. A beginning token that the model's file wants is there once, whether the template says it or not; no end token is added.
-- @tparam table model
-- @tparam table messages
-- @tparam table options template (nil: the model's; a name, a template's text, or fn(messages) -> parts {text, special}), tools, variables
-- @treturn table array of ids
function chat.tokens(model, messages, options)
  if type(messages) ~= "table" or #messages == 0 then
    error(errors.new("EINVAL", "a chat is an array of messages {role = ..., content = ...}, at least one"), 3)
  end
  local ids = model:tokenize(render(model, messages, options))
  local first = edges_of(model).first
  if first and ids[1] ~= first then
    table.insert(ids, 1, first)
  end
  return ids
end

return chat
