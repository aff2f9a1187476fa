--- Chat templates: which one is used, and what it is given. A model's own runs unless another is asked for; a file without one may use a built-in one by name.
-- A rendering is an array of parts {text, special}: control tokens are recognised in special parts only - what the template itself says - so a user's text never
-- becomes one.
-- @module weir.template
local builtin = require "weir.template_builtin"
local errors = require "weir.errors"
local jinja = require "weir.jinja"

local template = {}

-- Roles that published templates spell tokens with (`'<|' + message.role + '|>'`): these words, given as roles, count as the template's own.
local roles = {}
for role in ("assistant chatbot context developer document documents environment function human ipython model observation system tool tool_response user"):gmatch "%S+" do
  roles[role] = true
end

local function advice()
  return ("give one with options.template (weir chat: --template): %s, or a function(messages) that returns an array of {text, special}"):format(
    table.concat(builtin.names, ", "))
end

-- Compiled templates by name and text; those not used for a while go.
local compiled = setmetatable({}, {__mode = "v"})

local function compile(source, name)
  local key = name .. "\0" .. source
  local t = compiled[key] or jinja.compile(source, {name = name})
  compiled[key] = t
  return t
end

local function check_messages(messages)
  if type(messages) ~= "table" then
    error(errors.new("EINVAL", "a chat is an array of messages {role = ..., content = ...}, got a " .. type(messages)), 4)
  end
  for i, message in ipairs(messages) do
    if type(message) ~= "table" then
      error(errors.new("EINVAL", ("message %d of the chat is a %s, wanted a table with a role and a content"):format(i, type(message))), 4)
    end
  end
end

local function copy(t)
  local new = {}
  for key, value in pairs(t) do
    new[key] = value
  end
  return setmetatable(new, getmetatable(t))
end

local function with_roles(messages)
  local list = {}
  for i, message in ipairs(messages) do
    list[i] = message
    if roles[message.role] then
      list[i] = copy(message)
      list[i].role = jinja.literal(message.role)
    end
  end
  return list
end

-- What a template finds: variables first, so that nothing else is replaced by them.
local function variables_of(messages, options)
  local variables = {}
  for key, value in pairs(options.variables or {}) do
    variables[key] = value
  end
  variables.messages = with_roles(messages)
  variables.tools, variables.documents = options.tools or variables.tools, options.documents or variables.documents
  if options.add_generation_prompt ~= nil then
    variables.add_generation_prompt = options.add_generation_prompt
  elseif variables.add_generation_prompt == nil then
    variables.add_generation_prompt = true
  end
  for name, text in pairs {bos_token = options.bos, eos_token = options.eos} do
    variables[name] = jinja.literal(text)
  end
  return variables
end

--- Renders messages with a template.
-- @tparam string source the template's text
-- @tparam table messages array of tables: role, content, and whatever else the template uses (tool_calls, ...)
-- @tparam[opt] table options name (what errors call the template), add_generation_prompt (default: true), bos, eos (texts of these tokens), tools, documents,
-- variables (name -> value: enable_thinking, ...), limits and now as weir.jinja has them
-- @treturn table parts {text, special}. ETEMPLATE with fields message, line and, by raise_exception, raised; EINVAL: no messages
function template.render(source, messages, options)
  options = options or {}
  check_messages(messages)
  if type(source) ~= "string" or source == "" then
    error(errors.new("ETEMPLATE", "the model has no chat template; " .. advice()), 2)
  end
  return compile(source, options.name or "template"):render(variables_of(messages, options), options)
end

--- The text of a template by its name.
-- @tparam table info template (the default one), templates (name -> text): what a model's file has
-- @tparam string|nil name one of the file's own names, else a built-in one; nil: the file's default
-- @treturn string|nil text; nil: none was asked for and the file has none
-- @treturn string name. ETEMPLATE: no such name
function template.find(info, name)
  local own = info.templates or {}
  if name == nil or name == "default" and info.template then
    return info.template, "chat template"
  elseif own[name] or builtin.texts[name] then
    return own[name] or builtin.texts[name], name
  end
  local names = {}
  for known in pairs(own) do
    names[#names + 1] = known
  end
  table.sort(names)
  error(errors.new("ETEMPLATE", ("no chat template is called '%s'; the model's file has %s, built in are %s"):format(
    tostring(name), #names > 0 and table.concat(names, ", ") or "none by name", table.concat(builtin.names, ", "))), 2)
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
