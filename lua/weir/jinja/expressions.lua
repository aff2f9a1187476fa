--- Parses expressions: the lower half of the parser. Nodes are tables {kind, line, ...}; chains of one operator are one node, so that they nest nothing.
-- @module weir.jinja.expressions
local text = require "weir.jinja.text"
local values = require "weir.jinja.values"

local expressions = {}

local MAX_DEPTH = 100 -- of brackets, blocks and chains of calls and filters

--- Mixes the methods into the parser's class.
function expressions.extend(Parser)
  for name, method in pairs(expressions.methods) do
    Parser[name] = method
  end
end

local P = {}
expressions.methods = P

--- Whether the current token is of a kind, with a value if one is given.
function P:is(kind, value)
  return self.lexer.kind == kind and (value == nil or self.lexer.value == value)
end

function P:fail(...)
  self.lexer:fail(...)
end

function P:advance()
  self.lexer:advance()
end

--- Goes on if the current token is this one.
function P:skip(kind, value)
  if self:is(kind, value) then
    self.lexer:advance()
    return true
  end
  return false
end

local spelt = {begin = "{%", ["end"] = "end of statement block", print = "{{", finish = "end of print statement", eof = "end of template"}

function P:describe()
  local kind = self.lexer.kind
  if kind == "name" or kind == "integer" or kind == "float" then
    return tostring(self.lexer.value)
  end
  return spelt[kind] or kind
end

--- The value of the current token, which must be of a kind; goes on.
function P:expect(kind, value)
  if not self:is(kind, value) then
    self:fail("expected token '%s', got '%s'", value or spelt[kind] or kind, self:describe())
  end
  local v = self.lexer.value
  self.lexer:advance()
  return v
end

--- Enters a construct that may hold another of its kind; leave with self:leave().
function P:enter()
  self.depth = self.depth + 1
  if self.depth > MAX_DEPTH then
    self:fail("nested deeper than %d", MAX_DEPTH)
  end
end

function P:leave()
  self.depth = self.depth - 1
end

function P.node(_, kind, line, fields)
  fields.kind, fields.line = kind, line
  return fields
end

-- Counts how often a chain of subscripts, calls and filters nests.
function P:chained(node, inner)
  node.chain = (inner.chain or 0) + 1
  if node.chain > MAX_DEPTH then
    self:fail("a chain of more than %d calls, subscripts or filters", MAX_DEPTH)
  end
  return node
end

-- ---- operators ----

--- An expression. `plain`: without `x if y else z`.
function P:expression(plain)
  self:enter()
  local node
  if plain then
    node = self:parse_or()
  else
    node = self:conditional()
  end
  self:leave()
  return node
end

function P:conditional()
  local line = self.lexer.line
  local node = self:parse_or()
  while self:skip("name", "if") do
    local test = self:parse_or()
    local otherwise = self:skip("name", "else") and self:expression() or nil
    node = self:chained(self:node("condition", line, {test = test, yes = node, no = otherwise}), node)
  end
  return node
end

-- A chain `a word b word c` of operands that `parse` reads.
local function logical(kind, word, parse)
  return function(self)
    local line = self.lexer.line
    local first = self[parse](self)
    if not self:is("name", word) then
      return first
    end
    local operands = {first}
    while self:skip("name", word) do
      operands[#operands + 1] = self[parse](self)
    end
    return self:node(kind, line, {operands = operands})
  end
end

P.parse_or = logical("or", "or", "parse_and")
P.parse_and = logical("and", "and", "parse_not")

function P:parse_not()
  local line, negations = self.lexer.line, 0
  while self:skip("name", "not") do
    negations = negations + 1
  end
  local node = self:parse_compare()
  if negations > 0 then
    return self:node("not", line, {operand = node, twice = negations % 2 == 0})
  end
  return node
end

local comparisons = {["=="] = "eq", ["!="] = "ne", ["<"] = "lt", [">"] = "gt", ["<="] = "lteq", [">="] = "gteq"}

function P:comparison()
  local name = comparisons[self.lexer.kind]
  if name then
    self:advance()
    return name
  elseif self:skip("name", "in") then
    return "in"
  elseif self:is("name", "not") then
    local kind, value = self.lexer:look()
    if kind == "name" and value == "in" then
      self:advance()
      self:advance()
      return "notin"
    end
  end
  return nil
end

function P:parse_compare()
  local line = self.lexer.line
  local first, operands, names = self:parse_sum(), {}, {}
  local name = self:comparison()
  while name do
    names[#names + 1] = name
    operands[#operands + 1] = self:parse_sum()
    name = self:comparison()
  end
  return #names > 0 and self:node("compare", line, {first = first, operands = operands, names = names}) or first
end

-- A chain of operators that bind alike, from the left.
local function binary(names, parse)
  return function(self)
    local line = self.lexer.line
    local first = self[parse](self)
    if not names[self.lexer.kind] then
      return first
    end
    local operands, operators = {first}, {}
    while names[self.lexer.kind] do
      operators[#operators + 1] = names[self.lexer.kind]
      self:advance()
      operands[#operands + 1] = self[parse](self)
    end
    return self:node("binary", line, {operands = operands, operators = operators})
  end
end

P.parse_sum = binary({["+"] = "add", ["-"] = "sub"}, "parse_concat")
P.parse_product = binary({["*"] = "mul", ["/"] = "div", ["//"] = "floordiv", ["%"] = "mod"}, "parse_power")
P.parse_power = binary({["**"] = "pow"}, "parse_unary")

function P:parse_concat()
  local line = self.lexer.line
  local operands = {self:parse_product()}
  while self:skip "~" do
    operands[#operands + 1] = self:parse_product()
  end
  return #operands > 1 and self:node("concat", line, {operands = operands}) or operands[1]
end

function P:parse_unary(bare)
  local line = self.lexer.line
  local node
  local sign = (self:is "-" or self:is "+") and self.lexer.kind
  if sign then
    self:advance()
    self:enter()
    node = self:node(sign == "-" and "neg" or "pos", line, {operand = self:parse_unary(true)})
    self:leave()
  else
    node = self:primary()
  end
  node = self:postfix(node)
  return bare and node or self:filters(node)
end

-- ---- atoms ----

local constants = {["true"] = true, ["True"] = true, ["false"] = false, ["False"] = false, none = values.null, None = values.null}

function P:primary()
  local lexer = self.lexer
  local kind, value, line = lexer.kind, lexer.value, lexer.line
  if kind == "name" then
    self:advance()
    if constants[value] ~= nil then
      return self:node("constant", line, {value = constants[value]})
    end
    self.seen[value] = true
    return self:node("name", line, {name = value})
  elseif kind == "string" then
    return self:strings()
  elseif kind == "integer" or kind == "float" then
    self:advance()
    return self:node("constant", line, {value = kind == "float" and values.float(value) or value})
  elseif kind == "(" then
    self:advance()
    local node = self:tuple(false, true)
    self:expect ")"
    return node
  elseif kind == "[" then
    self:advance()
    return self:node("list", line, {items = self:items("]", self.expression)})
  elseif kind == "{" then
    self:advance()
    return self:node("dict", line, {items = self:items("}", self.pair)})
  end
  return self:fail("unexpected '%s'", self:describe())
end

-- Strings behind each other are one.
function P:strings()
  local line, pieces = self.lexer.line, {}
  while self:is "string" do
    pieces[#pieces + 1] = self.lexer.value
    self:advance()
  end
  return self:node("constant", line, {value = text.literal(table.concat(pieces))})
end

-- Elements with commas between them, up to a bracket, which is taken.
function P:items(close, parse)
  local items = {}
  while not self:is(close) do
    if #items > 0 then
      self:expect ","
      if self:is(close) then
        break
      end
    end
    items[#items + 1] = parse(self)
  end
  self:advance()
  return items
end

function P:pair()
  local key = self:expression()
  self:expect ":"
  return {key = key, value = self:expression()}
end

--- An expression, or a tuple if there are commas. `plain`: without inline if; `bracketed`: may be empty; `stop`: a name that ends it.
function P:tuple(plain, bracketed, stop)
  local line, items, is_tuple = self.lexer.line, {}, false
  while true do
    if #items > 0 then
      self:expect ","
    end
    if self:is "finish" or self:is "end" or self:is ")" or stop and self:is("name", stop) then
      break
    end
    items[#items + 1] = self:expression(plain)
    if not self:is "," then
      break
    end
    is_tuple = true
  end
  if not is_tuple and items[1] then
    return items[1]
  elseif not is_tuple and not bracketed then
    self:fail("expected an expression, got '%s'", self:describe())
  end
  return self:node("tuple", line, {items = items})
end

-- ---- what follows an atom ----

function P:postfix(node)
  while true do
    if self:is "." or self:is "[" then
      node = self:chained(self:subscript(node), node)
    elseif self:is "(" then
      node = self:chained(self:call(node), node)
    else
      return node
    end
  end
end

function P:filters(node)
  while true do
    if self:is "|" then
      self:advance()
      node = self:chained(self:filter(node), node)
    elseif self:is("name", "is") then
      node = self:chained(self:test(node), node)
    elseif self:is "(" then
      node = self:chained(self:call(node), node)
    else
      return node
    end
  end
end

function P:subscript(node)
  local line = self.lexer.line
  if self:skip "." then
    local kind, value = self.lexer.kind, self.lexer.value
    if kind ~= "name" and kind ~= "integer" then
      self:fail("expected name or number, got '%s'", self:describe())
    end
    self:advance()
    if kind == "name" then
      return self:node("attribute", line, {object = node, name = value})
    end
    return self:node("item", line, {object = node, key = self:node("constant", line, {value = value})})
  end
  self:advance()
  local keys = self:items("]", self.subscripted)
  if #keys == 0 then
    self:fail "expected subscript expression"
  elseif #keys == 1 and keys[1].kind == "slice" then
    return self:node("slice", line, {object = node, start = keys[1].start, stop = keys[1].stop, step = keys[1].step})
  end
  return self:node("item", line, {object = node, key = #keys == 1 and keys[1] or self:node("tuple", line, {items = keys})})
end

-- One of start, stop and step, if it is there.
function P:slice_part()
  if self:is ":" or self:is "]" or self:is "," then
    return nil
  end
  return self:expression()
end

function P:subscripted()
  local line = self.lexer.line
  local start = self:slice_part()
  if not self:skip ":" then
    return start or self:fail("unexpected '%s'", self:describe())
  end
  local stop = self:slice_part()
  local step = self:skip ":" and self:slice_part() or nil
  return self:node("slice", line, {start = start, stop = stop, step = step})
end

-- Whether the current name is an argument's (`name=`).
function P:is_keyword()
  return self:is "name" and self.lexer:look() == "="
end

function P:argument(into)
  if self:skip "*" then
    into.more = self:expression()
  elseif self:skip "**" then
    into.more_named = self:expression()
  elseif self:is_keyword() then
    local name = self:expect "name"
    self:advance()
    into.named[#into.named + 1] = {name = name, value = self:expression()}
  else
    if into.more or into.more_named or #into.named > 0 then
      self:fail "invalid syntax for function call expression"
    end
    into.args[#into.args + 1] = self:expression()
  end
  return true
end

--- Arguments in brackets: {args, named = array of {name, value}, more, more_named}.
function P:arguments()
  local into = {args = {}, named = {}}
  self:expect "("
  self:items(")", function() return self:argument(into) end)
  return into
end

function P:call(node)
  local line = self.lexer.line
  return self:node("call", line, {callee = node, arguments = self:arguments()})
end

local no_arguments = {args = {}, named = {}}

function P:dotted_name()
  local name = self:expect "name"
  while self:skip "." do
    name = name .. "." .. self:expect "name"
  end
  return name
end

--- A filter's name and arguments, applied to a node (nil: to a block).
function P:filter(node)
  local line = self.lexer.line
  local name = self:dotted_name()
  return self:node("filter", line, {operand = node, name = name, arguments = self:is "(" and self:arguments() or no_arguments})
end

local begins_argument = {name = true, string = true, integer = true, float = true, ["("] = true, ["["] = true, ["{"] = true}
local no_argument = {["else"] = true, ["or"] = true, ["and"] = true, ["if"] = true, ["in"] = true, ["not"] = true}

-- The one argument of a test without brackets.
function P:test_argument()
  if not begins_argument[self.lexer.kind] or self:is "name" and no_argument[self.lexer.value] then
    return no_arguments
  elseif self:is("name", "is") then
    self:fail "you cannot chain multiple tests with is"
  end
  self:enter()
  local node = self:postfix(self:primary())
  self:leave()
  return {args = {node}, named = {}}
end

function P:test(node)
  local line = self.lexer.line
  self:advance()
  local negated = self:skip("name", "not")
  local name = self:dotted_name()
  local arguments = self:is "(" and self:arguments() or self:test_argument()
  local test = self:node("test", line, {operand = node, name = name, arguments = arguments})
  return negated and self:node("not", line, {operand = test}) or test
end

return expressions
