--- Parses templates: statements, and through weir.jinja.expressions what stands in them. Gives a tree; knows nothing of values but constants.
-- @module weir.jinja.parser
local expressions = require "weir.jinja.expressions"
local lexer = require "weir.jinja.lexer"

local Parser = {}
Parser.__index = Parser
expressions.extend(Parser)

local parser = {}

-- ---- targets ----

function Parser:target_name()
  local line, name = self.lexer.line, self:expect "name"
  if name == "true" or name == "false" or name == "none" or name == "True" or name == "False" or name == "None" then
    self:fail("can't assign to '%s'", name)
  end
  return self:node("name", line, {name = name})
end

local parse_target

-- One target: a name, name.attribute (in set), or targets in brackets.
local function single_target(self, namespaces)
  local line = self.lexer.line
  if self:skip "(" then
    self:enter()
    local node = parse_target(self, namespaces)
    self:leave()
    self:expect ")"
    return node.kind == "tuple" and node or self:node("tuple", line, {items = {node}})
  end
  local node = self:target_name()
  if namespaces and self:skip "." then
    return self:node("member", line, {name = node.name, attribute = self:expect "name"})
  end
  return node
end

function parse_target(self, namespaces)
  local line, items, is_tuple = self.lexer.line, {}, false
  repeat
    items[#items + 1] = single_target(self, namespaces)
    is_tuple = is_tuple or self:is ","
  until not self:skip "," or not (self:is "name" or self:is "(") or self:is("name", "in")
  return is_tuple and self:node("tuple", line, {items = items}) or items[1]
end

-- ---- statements ----

local statements = {}

-- Statements up to one of these tags; its name, whose token is taken.
function Parser:body(...)
  local enders = {...}
  self:skip ":"
  self:expect "end"
  self:enter()
  local nodes, ender = self:nodes(enders)
  self:leave()
  if not ender then
    self:fail("unexpected end of template; wanted '%s'", table.concat(enders, "' or '"))
  end
  return nodes, ender
end

function statements.set(self, line)
  local target = parse_target(self, true)
  if self:skip "=" then
    return self:node("set", line, {target = target, value = self:tuple()})
  end
  if target.kind == "tuple" then
    self:fail "a set block takes one name"
  end
  local filters = self:filter_chain(false)
  return self:node("set_block", line, {target = target, filters = filters, body = (self:body "endset")})
end

--- Filters behind each other without an operand.
function Parser:filter_chain(first)
  local filters = {}
  while first or self:skip "|" do
    filters[#filters + 1] = self:filter(nil)
    first = false
  end
  return filters
end

statements["for"] = function(self, line)
  local target = parse_target(self, false)
  self:expect("name", "in")
  local sequence = self:tuple(true, false, "recursive")
  local test = self:skip("name", "if") and self:expression() or nil
  local recursive = self:skip("name", "recursive")
  self.loops = self.loops + 1
  local body, ender = self:body("endfor", "else")
  self.loops = self.loops - 1
  local otherwise = ender == "else" and self:body "endfor" or nil
  return self:node("for", line, {target = target, sequence = sequence, test = test, recursive = recursive, body = body, otherwise = otherwise})
end

statements["if"] = function(self, line)
  local branches, otherwise = {}, nil
  local ender
  repeat
    local test = self:tuple(true)
    local body
    body, ender = self:body("elif", "else", "endif")
    branches[#branches + 1] = {test = test, body = body}
  until ender ~= "elif"
  if ender == "else" then
    otherwise = self:body "endif"
  end
  return self:node("if", line, {branches = branches, otherwise = otherwise})
end

function statements.with(self, line)
  local targets, sources = {}, {}
  while not self:is "end" do
    if #targets > 0 then
      self:expect ","
    end
    targets[#targets + 1] = single_target(self, false)
    self:expect "="
    sources[#sources + 1] = self:expression()
  end
  return self:node("with", line, {targets = targets, sources = sources, body = (self:body "endwith")})
end

-- Parameters in brackets: array of {name, default}.
function Parser:parameters()
  self:expect "("
  local defaults = false
  return self:items(")", function()
    local parameter = {name = self:target_name().name}
    if self:skip "=" then
      defaults, parameter.default = true, self:expression()
    elseif defaults then
      self:fail "non-default argument follows default argument"
    end
    return parameter
  end)
end

-- The body of a macro or call: what it uses of varargs, kwargs and caller is noted.
function Parser:callable(fields, ender)
  local seen, loops = self.seen, self.loops
  self.seen, self.loops = {}, 0
  fields.body = self:body(ender)
  fields.varargs, fields.kwargs, fields.caller = self.seen.varargs, self.seen.kwargs, self.seen.caller
  for name in pairs(self.seen) do
    seen[name] = true
  end
  self.seen, self.loops = seen, loops
  return fields
end

function statements.macro(self, line)
  local name = self:target_name().name
  return self:node("macro", line, self:callable({name = name, parameters = self:parameters()}, "endmacro"))
end

function statements.call(self, line)
  local parameters = self:is "(" and self:parameters() or {}
  local call = self:expression()
  if call.kind ~= "call" then
    self:fail "expected call"
  end
  return self:node("call_block", line, self:callable({name = "caller", parameters = parameters, call = call}, "endcall"))
end

function statements.filter(self, line)
  local filters = self:filter_chain(true)
  return self:node("filter_block", line, {filters = filters, body = (self:body "endfilter")})
end

function statements.generation(self, line)
  return self:node("scope", line, {body = (self:body "endgeneration")})
end

function statements.block(self, line)
  local name = self:expect "name"
  self:skip("name", "scoped")
  local body = self:body "endblock"
  self:skip("name", name)
  return self:node("scope", line, {body = body})
end

function statements.print(self, line)
  local items = {}
  while not self:is "end" do
    if #items > 0 then
      self:expect ","
    end
    items[#items + 1] = self:expression()
  end
  return self:node("print", line, {items = items})
end

local function leave_loop(kind)
  return function(self, line)
    if self.loops == 0 then
      self:fail("'%s' outside of a loop", kind)
    end
    return self:node(kind, line, {})
  end
end

statements["break"], statements["continue"] = leave_loop "break", leave_loop "continue"

for _, name in ipairs {"include", "import", "from", "extends"} do
  statements[name] = function(self)
    self:fail("'%s' is not supported: a chat template is one text", name)
  end
end

local function is_among(name, list)
  for _, other in ipairs(list) do
    if name == other then
      return true
    end
  end
  return false
end

-- One statement; nothing and the tag's name if it is one of `enders`.
function Parser:statement(enders)
  self:advance()
  local line = self.lexer.line
  if not self:is "name" then
    self:fail("tag name expected, got '%s'", self:describe())
  end
  local name = self.lexer.value
  if is_among(name, enders) then
    self:advance()
    return nil, name
  end
  local parse = statements[name]
  if not parse then
    self:fail("unknown tag '%s'%s", name, enders[1] and "; wanted '" .. table.concat(enders, "' or '") .. "'" or "")
  end
  self:advance()
  local node = parse(self, line)
  self:expect_end(name)
  return node
end

function Parser:expect_end(name)
  if not self:is "end" then
    self:fail("expected the end of '%s', got '%s'", name, self:describe())
  end
  self:advance()
end

-- A node of text or of what is printed, nil at the end of the template or of the body.
function Parser:nodes(enders)
  local nodes = {}
  while true do
    local kind, line = self.lexer.kind, self.lexer.line
    if kind == "data" then
      nodes[#nodes + 1] = self:node("data", line, {data = self.lexer.value})
      self:advance()
    elseif kind == "print" then
      self:advance()
      nodes[#nodes + 1] = self:node("print", line, {items = {self:tuple()}})
      self:expect "finish"
    elseif kind == "begin" then
      local node, ender = self:statement(enders)
      if not node then
        return nodes, ender
      end
      nodes[#nodes + 1] = node
    else
      return nodes
    end
  end
end

--- Parses a template. Raises failures of weir.jinja.run, whose line is then the template's.
-- @tparam string source
-- @treturn table array of nodes
function parser.parse(source)
  local self = setmetatable({lexer = lexer.new(source), depth = 0, loops = 0, seen = {}}, Parser)
  self:advance()
  return (self:nodes {})
end

return parser
