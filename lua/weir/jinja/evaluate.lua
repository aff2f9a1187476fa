--- Turns expressions into Lua closures: each takes the scope and gives a value. A scope is a table of variables by name, with the scope around it under 0.
-- @module weir.jinja.evaluate
local attributes = require "weir.jinja.attributes"
local filters = require "weir.jinja.filters"
local markup = require "weir.jinja.markup"
local objects = require "weir.jinja.objects"
local operators = require "weir.jinja.operators"
local run = require "weir.jinja.run"
local signature = require "weir.jinja.signature"
local tests = require "weir.jinja.tests"
local text = require "weir.jinja.text"
local values = require "weir.jinja.values"

local evaluate = {}

local truth = objects.truth
local compilers = {}

--- A closure of an expression's node.
function evaluate.compile(node)
  return compilers[node.kind](node)
end
local compile = evaluate.compile

local function compile_all(nodes)
  local list = {}
  for i, node in ipairs(nodes) do
    list[i] = compile(node)
  end
  return list
end

-- ---- names and constants ----

function compilers.constant(node)
  local value = node.value
  return function() return value end
end

function compilers.name(node)
  local name, line = node.name, node.line
  local why = ("'%s' is undefined"):format(name)
  return function(scope)
    run.spend(1)
    run.line = line
    repeat
      local value = scope[name]
      if value ~= nil then
        return value
      end
      scope = scope[0]
    until not scope
    return values.undefined(why)
  end
end

-- Evaluates a list of closures into an array.
local function evaluate_all(list, scope)
  local array = {}
  for i = 1, #list do
    array[i] = list[i](scope)
  end
  run.spend(#list)
  return array
end

function compilers.list(node)
  local items = compile_all(node.items)
  return function(scope) return values.list(evaluate_all(items, scope), #items) end
end

function compilers.tuple(node)
  local items = compile_all(node.items)
  return function(scope) return values.tuple(evaluate_all(items, scope), #items) end
end

function compilers.dict(node)
  local keys, items = {}, {}
  for i, pair in ipairs(node.items) do
    keys[i], items[i] = compile(pair.key), compile(pair.value)
  end
  return function(scope)
    local dict = values.dict()
    for i = 1, #keys do
      values.put(dict, keys[i](scope), items[i](scope))
    end
    return dict
  end
end

-- ---- operators ----

function compilers.condition(node)
  local test, yes, no = compile(node.test), compile(node.yes), node.no and compile(node.no)
  return function(scope)
    if truth(test(scope)) then
      return yes(scope)
    elseif no then
      return no(scope)
    end
    return values.undefined "the inline if-expression evaluated to false and no else section was defined."
  end
end

-- A chain of `and` or `or`: the value of the first operand that decides.
local function logical(deciding)
  return function(node)
    local operands = compile_all(node.operands)
    local n = #operands
    return function(scope)
      for i = 1, n - 1 do
        local value = operands[i](scope)
        if truth(value) == deciding then
          return value
        end
      end
      return operands[n](scope)
    end
  end
end

compilers["or"], compilers["and"] = logical(true), logical(false)

compilers["not"] = function(node)
  local operand, twice = compile(node.operand), node.twice or false
  return function(scope) return truth(operand(scope)) == twice end
end

function compilers.compare(node)
  local first, operands, compare, line = compile(node.first), compile_all(node.operands), {}, node.line
  for i, name in ipairs(node.names) do
    compare[i] = operators.compare[name]
  end
  return function(scope)
    local left = first(scope)
    for i = 1, #operands do
      local right = operands[i](scope)
      run.line = line
      if not compare[i](left, right) then
        return false
      end
      left = right
    end
    return true
  end
end

function compilers.binary(node)
  local operands, apply, line = compile_all(node.operands), {}, node.line
  local joins = true
  for i, name in ipairs(node.operators) do
    apply[i] = operators[name]
    joins = joins and name == "add"
  end
  local n = #operands
  return function(scope)
    local left, from = operands[1](scope), 2
    if joins and n > 2 and text.is(left) then
      -- A chain of texts is joined at once.
      local pieces, count = {left}, 1
      while from <= n do
        local right = operands[from](scope)
        from = from + 1
        run.spend(1)
        if not text.is(right) then
          run.line = line
          return operators.add(markup.add(pieces, count), right)
        end
        count = count + 1
        pieces[count] = right
      end
      return markup.add(pieces, count)
    end
    for i = from, n do
      local right = operands[i](scope)
      run.spend(1)
      run.line = line
      left = apply[i - 1](left, right)
    end
    return left
  end
end

function compilers.concat(node)
  local operands = compile_all(node.operands)
  return function(scope) return operators.concat(evaluate_all(operands, scope), #operands) end
end

local function unary(apply)
  return function(node)
    local operand, line = compile(node.operand), node.line
    return function(scope)
      local value = operand(scope)
      run.line = line
      return apply(value)
    end
  end
end

compilers.neg, compilers.pos = unary(operators.neg), unary(operators.pos)

-- ---- attributes, items, slices ----

function compilers.attribute(node)
  local object, name, line = compile(node.object), node.name, node.line
  return function(scope)
    local value = object(scope)
    run.spend(1)
    run.line = line
    return attributes.attribute(value, name)
  end
end

function compilers.item(node)
  local object, key, line = compile(node.object), compile(node.key), node.line
  return function(scope)
    local value, k = object(scope), key(scope)
    run.spend(1)
    run.line = line
    return attributes.item(value, k)
  end
end

function compilers.slice(node)
  if not node.object then
    run.line = node.line
    run.fail "a slice among other subscripts is not supported"
  end
  local object, line = compile(node.object), node.line
  local start, stop, step = node.start and compile(node.start), node.stop and compile(node.stop), node.step and compile(node.step)
  return function(scope)
    local value = object(scope)
    local from, to, by = start and start(scope), stop and stop(scope), step and step(scope)
    run.spend(1)
    run.line = line
    return attributes.slice(value, from or nil, to or nil, by or nil)
  end
end

-- ---- calls, filters, tests ----

local function spread(array, iterable)
  local more, n = objects.collect(iterable)
  for i = 1, n do
    array[array.n + i] = more[i]
  end
  array.n = array.n + n
end

local function add_named(kwargs, name, value)
  if kwargs[name] ~= nil then
    run.fail("got multiple values for keyword argument '%s'", name)
  end
  kwargs[#kwargs + 1] = name
  kwargs[name] = value
end

local function spread_named(kwargs, dict)
  if values.class(dict) ~= values.Dict then
    run.fail("argument after ** must be a mapping, not %s", values.type(dict))
  end
  values.each(dict, function(key, value) add_named(kwargs, text.raw(signature.text(key, "a keyword argument's name")), value) end)
end

--- A closure that gives args (an array with n) and kwargs (nil, or as weir.jinja.signature has them).
function evaluate.arguments(node)
  local args, names, named = compile_all(node.args), {}, {}
  for i, argument in ipairs(node.named) do
    names[i], named[i] = argument.name, compile(argument.value)
  end
  local more, more_named = node.more and compile(node.more), node.more_named and compile(node.more_named)
  local n = #args
  return function(scope)
    local array = {n = n}
    for i = 1, n do
      array[i] = args[i](scope)
    end
    if more then
      spread(array, more(scope))
    end
    if not names[1] and not more_named then
      return array, nil
    end
    local kwargs = {}
    for i, name in ipairs(names) do
      add_named(kwargs, name, named[i](scope))
    end
    if more_named then
      spread_named(kwargs, more_named(scope))
    end
    return array, kwargs
  end
end

-- A call of a method where it is looked up: no object is made for it.
local function method_call(node)
  local object, name, arguments, line = compile(node.callee.object), node.callee.name, evaluate.arguments(node.arguments), node.line
  return function(scope)
    local value = object(scope)
    run.spend(1)
    run.line = line
    local method = attributes.method(value, name)
    local callee = not method and attributes.attribute(value, name)
    local args, kwargs = arguments(scope)
    run.line = line
    if method then
      return method(value, args, kwargs)
    elseif values.is_undefined(callee) then
      objects.fail_undefined(callee)
    end
    local result = attributes.call(callee, args, kwargs)
    run.line = line
    return result
  end
end

function compilers.call(node)
  if node.callee.kind == "attribute" then
    return method_call(node)
  end
  local callee, arguments, line = compile(node.callee), evaluate.arguments(node.arguments), node.line
  return function(scope)
    local value = callee(scope)
    local args, kwargs = arguments(scope)
    run.spend(1)
    run.line = line
    local result = attributes.call(value, args, kwargs)
    run.line = line
    return result
  end
end

--- A closure of a filter's node: fn(scope, value).
function evaluate.filter(node)
  local name, arguments, line = node.name, evaluate.arguments(node.arguments), node.line
  local filter = filters[name]
  return function(scope, value)
    local args, kwargs = arguments(scope)
    run.spend(1)
    run.line = line
    if not filter then
      run.fail("no filter named '%s'", name)
    end
    return filter(value, args, kwargs)
  end
end

function compilers.filter(node)
  local operand, apply = compile(node.operand), evaluate.filter(node)
  return function(scope) return apply(scope, operand(scope)) end
end

-- `name is filter` and `name is test` ask for what the engine has.
local registries = {filter = filters, test = tests}

function compilers.test(node)
  local operand, name, arguments, line = compile(node.operand), node.name, evaluate.arguments(node.arguments), node.line
  local test, registry = tests[name], registries[name]
  return function(scope)
    local value = operand(scope)
    run.spend(1)
    local args, kwargs = arguments(scope)
    run.line = line
    if registry then
      return registry[text.raw(value) or 0] ~= nil
    elseif not test then
      run.fail("no test named '%s'", name)
    end
    return test(value, args, kwargs)
  end
end

return evaluate
