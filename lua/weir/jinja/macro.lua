--- Macros and the bodies of call blocks: functions that templates define. Arguments, defaults, varargs, kwargs and caller as jinja2 has them.
-- @module weir.jinja.macro
local evaluate = require "weir.jinja.evaluate"
local run = require "weir.jinja.run"
local text = require "weir.jinja.text"
local values = require "weir.jinja.values"

local macro = {}

local function known_parameters(parameters)
  local known = {}
  for _, parameter in ipairs(parameters) do
    known[parameter.name] = true
  end
  return known
end

-- Arguments beyond the parameters, as the body's varargs; an error if it has none.
local function put_varargs(inner, node, args)
  local n = #node.parameters
  if node.varargs then
    local more = {}
    for i = n + 1, args.n do
      more[i - n] = args[i]
    end
    inner.varargs = values.tuple(more, math.max(args.n - n, 0))
  elseif args.n > n then
    run.fail("macro '%s' takes not more than %d argument(s)", node.name, n)
  end
end

-- Named arguments that are no parameters, as the body's kwargs and caller; an error if it has none.
local function put_kwargs(inner, node, kwargs, known)
  local more = node.kwargs and values.dict()
  for _, name in ipairs(kwargs or {}) do
    if name == "caller" and node.caller then
      inner.caller = kwargs.caller
    elseif not known[name] and more then
      values.put(more, name, kwargs[name])
    elseif not known[name] then
      run.fail("macro '%s' takes no keyword argument '%s'", node.name, name)
    end
  end
  inner.kwargs = more or nil
  if node.caller and inner.caller == nil and not known.caller then
    inner.caller = values.undefined "no caller defined"
  end
end

-- Parameters get their arguments, then those left out their defaults, which may use the parameters before them.
local function put_parameters(inner, node, defaults, args, kwargs)
  for i, parameter in ipairs(node.parameters) do
    local name = parameter.name
    local named = kwargs and kwargs[name]
    if i <= args.n and named ~= nil then
      run.fail("macro '%s' got multiple values for argument '%s'", node.name, name)
    end
    local value = named
    if i <= args.n then
      value = args[i]
    end
    if value == nil and defaults[i] then
      value = defaults[i](inner)
    elseif value == nil then
      value = values.undefined(("parameter '%s' was not provided"):format(name))
    end
    inner[name] = value
  end
end

--- A closure fn(scope) that makes the macro of a node.
-- @tparam table node name, parameters, varargs, kwargs, caller
-- @tparam function body the closure of its statements
-- @tparam function capture as weir.jinja.statements has it
function macro.compile(node, body, capture)
  local known, defaults, names = known_parameters(node.parameters), {}, {}
  for i, parameter in ipairs(node.parameters) do
    defaults[i] = parameter.default and evaluate.compile(parameter.default)
    names[i] = text.literal(parameter.name)
  end
  return function(scope)
    local fields = {
      name = text.literal(node.name), arguments = values.tuple({unpack(names)}), catch_varargs = node.varargs or false, catch_kwargs = node.kwargs or false,
      caller = node.caller or false,
    }
    return values.func(node.name, function(args, kwargs)
      local inner = {[0] = scope}
      run.enter()
      put_varargs(inner, node, args)
      put_kwargs(inner, node, kwargs, known)
      put_parameters(inner, node, defaults, args, kwargs)
      local printed = capture(body, inner)
      run.leave()
      return printed
    end, fields)
  end
end

return macro
