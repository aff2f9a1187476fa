--- Jinja, the language of chat templates: what jinja2 documents, set up as transformers does it (trim_blocks, lstrip_blocks, loop controls, generation blocks, tojson
-- without HTML escaping, no autoescaping). A rendering says of each stretch of its text whether it comes from the template or from the variables.
-- Bounded in steps, output and depth; knows no models.
-- @module weir.jinja
local errors = require "weir.errors"
local functions = require "weir.jinja.functions"
local parser = require "weir.jinja.parser"
local run = require "weir.jinja.run"
local statements = require "weir.jinja.statements"
local text = require "weir.jinja.text"
local values = require "weir.jinja.values"

local jinja = {}

local Template = {}
Template.__index = Template

local MAX_SIZE = 2 ^ 18 -- bytes of a template; published ones have up to 20 KB

-- What went wrong as an error object: template and line before it.
local function wrap(name, e)
  local message = run.is_failure(e) and e.message or tostring(e)
  if not run.is_failure(e) and (message:find "stack overflow" or message:find "too many") then
    message = "values or calls are nested too deeply"
  elseif not run.is_failure(e) then
    message = message:gsub("^[^:]*%.lua:%d+: ", "")
  end
  return errors.new("ETEMPLATE", ("%s, line %d: %s"):format(name, math.max(run.line, 1), message), {
    message = message, line = math.max(run.line, 1), raised = run.is_failure(e) and e.raised or nil,
  })
end

-- Runs fn, whose failures become error objects.
local function guarded(name, fn)
  local ok, result = pcall(fn)
  if not ok then
    if errors.is(result) then
      error(result, 0)
    end
    error(wrap(name, result), 0)
  end
  return result
end

--- Compiles a template.
-- @tparam string source
-- @tparam[opt] table options name: what errors call it (default: "template")
-- @treturn table template: render(variables, options), text(variables, options). ETEMPLATE with fields message and line: no template
function jinja.compile(source, options)
  local name = options and options.name or "template"
  if type(source) ~= "string" then
    error(errors.new("ETYPE", "a template is a string, got a " .. type(source)), 2)
  elseif #source > MAX_SIZE then
    error(errors.new("ETEMPLATE", ("%s: %d bytes are more than the %d that a template may have"):format(name, #source, MAX_SIZE)), 2)
  end
  return guarded(name, function()
    run.start()
    return setmetatable({name = name, body = statements.compile(parser.parse(source))}, Template)
  end)
end

--- Text that counts as the template's own where it is given as a variable: control tokens are recognised in it.
-- @tparam string s
function jinja.literal(s)
  return text.literal(s)
end

local function scope_of(variables)
  local outer = {}
  for key, value in pairs(functions) do
    outer[key] = value
  end
  local scope = {[0] = outer}
  for key, value in pairs(variables or {}) do
    if type(key) == "string" then
      scope[key] = values.from(value)
    end
  end
  return scope
end

--- Renders.
-- @tparam table variables name -> value: tables with the keys 1..n are lists, others dicts (those of `weir.json.decode(text, true)` keep their order, others are
-- sorted); weir.null is None
-- @tparam[opt] table options limits: {steps, output, depth}; now: seconds since 1970 for strftime_now
-- @treturn table array of parts {text, special}: special where the text is the template's. ETEMPLATE with fields message, line, raised (by raise_exception)
function Template:render(variables, options)
  options = options or {}
  return guarded(self.name, function()
    run.start(options.limits, options.now)
    self.body(scope_of(variables))
    return text.parts(run.out, run.out.n)
  end)
end

--- Renders to a string.
-- @tparam table variables
-- @tparam[opt] table options as render
-- @treturn string
function Template:text(variables, options)
  local texts = {}
  for i, part in ipairs(self:render(variables, options)) do
    texts[i] = part[1]
  end
  return table.concat(texts)
end

return jinja
