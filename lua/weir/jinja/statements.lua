--- Turns statements into Lua closures: each takes the scope, prints through weir.jinja.run, and gives "break" or "continue" if the loop around it is left.
-- @module weir.jinja.statements
local attributes = require "weir.jinja.attributes"
local evaluate = require "weir.jinja.evaluate"
local loop = require "weir.jinja.loop"
local macro = require "weir.jinja.macro"
local objects = require "weir.jinja.objects"
local printing = require "weir.jinja.printing"
local run = require "weir.jinja.run"
local text = require "weir.jinja.text"
local values = require "weir.jinja.values"

local statements = {}

local compilers = {}
local truth = objects.truth

--- A closure of an array of nodes.
function statements.compile(nodes)
  local list = {}
  for i, node in ipairs(nodes) do
    list[i] = compilers[node.kind](node)
  end
  local n = #list
  return function(scope)
    for i = 1, n do
      local signal = list[i](scope)
      if signal then
        return signal
      end
    end
  end
end
local compile = statements.compile

--- Runs a closure in a scope and gives what it printed as a text, and its signal.
function statements.capture(body, scope)
  local outer = run.out
  local inner = {n = 0}
  run.out = inner
  local signal = body(scope)
  run.out = outer
  return text.concat(inner, inner.n), signal
end
local capture = statements.capture

-- ---- output ----

function compilers.data(node)
  local data, size = text.literal(node.data), #node.data
  return function()
    run.spend(1)
    run.emit(data, size)
  end
end

function compilers.print(node)
  local items, line = {}, node.line
  for i, item in ipairs(node.items) do
    items[i] = evaluate.compile(item)
  end
  return function(scope)
    for i = 1, #items do
      run.spend(1)
      run.line = line
      local value = printing.str(items[i](scope))
      run.emit(value, #text.raw(value))
    end
  end
end

-- ---- assignments ----

local target

local function member_target(node)
  local name, attribute, line = evaluate.compile {kind = "name", name = node.name, line = node.line}, node.attribute, node.line
  return function(scope, value)
    local namespace = name(scope)
    run.line = line
    if values.class(namespace) ~= values.Namespace then
      run.fail "cannot assign attribute on non-namespace object"
    end
    values.put(namespace.dict, attribute, value)
  end
end

local function tuple_target(node)
  local targets, line = {}, node.line
  for i, item in ipairs(node.items) do
    targets[i] = target(item)
  end
  return function(scope, value)
    run.line = line
    local array, n = objects.collect(value)
    if n > #targets then
      run.fail("too many values to unpack (expected %d)", #targets)
    elseif n < #targets then
      run.fail("not enough values to unpack (expected %d, got %d)", #targets, n)
    end
    for i = 1, n do
      targets[i](scope, array[i])
    end
  end
end

--- A closure fn(scope, value) that assigns to a target.
function target(node)
  if node.kind == "member" then
    return member_target(node)
  elseif node.kind == "tuple" then
    return tuple_target(node)
  end
  local name = node.name
  return function(scope, value) scope[name] = value end
end

function compilers.set(node)
  local assign, value, line = target(node.target), evaluate.compile(node.value), node.line
  return function(scope)
    run.spend(1)
    run.line = line
    assign(scope, value(scope))
  end
end

local function filter_all(nodes)
  local list = {}
  for i, node in ipairs(nodes) do
    list[i] = evaluate.filter(node)
  end
  return function(scope, value)
    for i = 1, #list do
      value = list[i](scope, value)
    end
    return value
  end
end

function compilers.set_block(node)
  local assign, body, apply = target(node.target), compile(node.body), filter_all(node.filters)
  return function(scope)
    run.spend(1)
    local printed, signal = capture(body, {[0] = scope})
    if signal then
      return signal
    end
    assign(scope, apply(scope, printed))
  end
end

function compilers.filter_block(node)
  local body, apply = compile(node.body), filter_all(node.filters)
  return function(scope)
    run.spend(1)
    local printed, signal = capture(body, {[0] = scope})
    local value = printing.str(apply(scope, printed))
    run.emit(value, #text.raw(value))
    return signal
  end
end

-- ---- branches and scopes ----

compilers["if"] = function(node)
  local tests, bodies = {}, {}
  for i, branch in ipairs(node.branches) do
    tests[i], bodies[i] = evaluate.compile(branch.test), compile(branch.body)
  end
  local otherwise, line = node.otherwise and compile(node.otherwise), node.line
  return function(scope)
    run.spend(1)
    run.line = line
    for i = 1, #tests do
      if truth(tests[i](scope)) then
        return bodies[i](scope)
      end
    end
    if otherwise then
      return otherwise(scope)
    end
  end
end

function compilers.scope(node)
  local body = compile(node.body)
  return function(scope) return body {[0] = scope} end
end

function compilers.with(node)
  local targets, sources, body = {}, {}, compile(node.body)
  for i, source in ipairs(node.sources) do
    targets[i], sources[i] = target(node.targets[i]), evaluate.compile(source)
  end
  return function(scope)
    local inner = {[0] = scope}
    for i = 1, #sources do
      targets[i](inner, sources[i](scope))
    end
    return body(inner)
  end
end

-- ---- loops ----

compilers["break"] = function()
  return function() return "break" end
end

compilers["continue"] = function()
  return function() return "continue" end
end

-- The elements of a for statement that pass its test.
local function filtered(pull, scope, assign, test)
  return function()
    while true do
      local element = pull()
      if element == nil then
        return nil
      end
      local inner = {[0] = scope}
      assign(inner, element)
      if truth(test(inner)) then
        return element
      end
    end
  end
end

compilers["for"] = function(node)
  local assign, sequence, line = target(node.target), evaluate.compile(node.sequence), node.line
  local body, otherwise = compile(node.body), node.otherwise and compile(node.otherwise)
  local test, recursive = node.test and evaluate.compile(node.test), node.recursive
  local iterate

  local function recurse_in(scope)
    return function(iterable, depth)
      run.enter()
      local printed = capture(function() return iterate(scope, iterable, depth) end, scope)
      run.leave()
      return printed
    end
  end

  function iterate(scope, iterable, depth)
    local pull, size = objects.iterate(iterable), nil
    if test then
      pull = filtered(pull, scope, assign, test)
    elseif values.class(iterable) ~= values.Generator then
      size = objects.size(iterable)
    end
    local state = loop.new(pull, size, depth, recursive and recurse_in(scope))
    local element = state:step()
    if element == nil then
      return otherwise and otherwise {[0] = scope}
    end
    while element ~= nil do
      local inner = {[0] = scope, loop = state}
      assign(inner, element)
      if body(inner) == "break" then
        break
      end
      element = state:step()
    end
  end

  return function(scope)
    run.spend(1)
    local iterable = sequence(scope)
    run.line = line
    return iterate(scope, iterable, 0)
  end
end

-- ---- macros ----

function compilers.macro(node)
  local make, name = macro.compile(node, compile(node.body), capture), node.name
  return function(scope)
    run.spend(1)
    scope[name] = make(scope)
  end
end

function compilers.call_block(node)
  local make = macro.compile(node, compile(node.body), capture)
  local callee, arguments, line = evaluate.compile(node.call.callee), evaluate.arguments(node.call.arguments), node.line
  return function(scope)
    run.spend(1)
    run.line = line
    local value = callee(scope)
    local args, kwargs = arguments(scope)
    kwargs = kwargs or {}
    kwargs[#kwargs + 1], kwargs.caller = "caller", make(scope)
    run.line = line
    local printed = printing.str(attributes.call(value, args, kwargs))
    run.emit(printed, #text.raw(printed))
  end
end

return statements
