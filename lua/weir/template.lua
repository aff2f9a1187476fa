--- Chat templates. A model's template is recognised by its exact text; each one that is known has a function here that renders the same bytes. A rendering
-- is an array of parts {text, special}: control tokens are recognised in special parts only, so a user's text never becomes one.
-- @module weir.template
local errors = require "weir.errors"

local template = {}

local function part(parts, text, special)
  parts[#parts + 1] = {text, special}
end

-- One message between <|im_start|> and <|im_end|>.
local function im_message(parts, role, content)
  part(parts, "<|im_start|>", true)
  part(parts, role .. "\n" .. content, false)
  part(parts, "<|im_end|>", true)
  part(parts, "\n", false)
end

local function smollm2(messages, reply)
  local parts = {}
  if messages[1].role ~= "system" then
    im_message(parts, "system", "You are a helpful AI assistant named SmolLM, trained by Hugging Face")
  end
  for _, message in ipairs(messages) do
    im_message(parts, message.role, message.content)
  end
  if reply then
    part(parts, "<|im_start|>", true)
    part(parts, "assistant\n", false)
  end
  return parts
end

-- The text in the model's file -> what renders it.
local known = {
  ["{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    .. "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}"
    .. "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    .. "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"] = smollm2,
}

local advice = "give one with options.template = function(messages) return array of {text, special} end"

local function check_messages(messages)
  if type(messages) ~= "table" or #messages == 0 then
    error(errors.new("EINVAL", "a chat is an array of messages {role = ..., content = ...}, at least one"), 3)
  end
  for i, message in ipairs(messages) do
    if type(message) ~= "table" or type(message.role) ~= "string" or type(message.content) ~= "string" then
      error(errors.new("EINVAL", ("message %d of the chat needs a role and a content, both strings"):format(i)), 3)
    end
  end
end

--- Renders messages with a model's template.
-- @tparam string|nil text the template in the model's file
-- @tparam table messages array of {role, content}
-- @tparam[opt=true] boolean reply end with the beginning of the assistant's answer
-- @treturn table parts {text, special}. ETEMPLATE: a template that is not known, or none
function template.render(text, messages, reply)
  check_messages(messages)
  local render = text and known[text]
  if render then
    return render(messages, reply ~= false)
  elseif type(text) == "string" and text ~= "" then
    error(errors.new("ETEMPLATE", "the model's chat template is not one that weir knows; " .. advice), 2)
  end
  error(errors.new("ETEMPLATE", "the model has no chat template; " .. advice), 2)
end

--- The text that parts say, for looking at.
-- @tparam table parts
-- @treturn string
function template.text(parts)
  local texts = {}
  for i, p in ipairs(parts) do
    texts[i] = p[1]
  end
  return table.concat(texts)
end

return template
