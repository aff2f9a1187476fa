--- What was typed, as a chunk to run: expression or statements, finished or to be continued, with the top level's locals made variables of the session.
-- @module weir.prompt.chunk
local lexer = require "weir.lexer"

local chunk = {}

-- The name that stands for the session's variables in what is compiled: source that mentions it itself is compiled all the same.
local variables = "__variables"
chunk.variables = variables

-- What an expression's values are handed to: a call in the expression is no tail call then, and tracebacks have its line.
chunk.values = "__values"

-- A line end before the parenthesis, which would change lines in tracebacks, only where a comment needs it.
local function expression_of(source)
  local call = "return " .. chunk.values .. "(" .. source
  return loadstring(call .. ")", "=prompt") or loadstring(call .. "\n)", "=prompt") or loadstring("return " .. source, "=prompt")
end

-- Whether the compiler's complaint stands at the end of the source: then one more word after it changes the complaint. What is only noticed there, but is
-- about an earlier place (a goto without its label), has no "near".
local function at_the_end(source, message)
  if not message:find(" near ", 1, true) then
    return false
  end
  local _, other = loadstring(source .. "\n\1", "=prompt")
  return other ~= message
end

-- A compiled source; or nil, the complaint, and whether more lines could mend it.
local function compile(source)
  local fn, message = loadstring(source, "=prompt")
  if fn then
    return fn
  end
  local _, ending = lexer.scan(source)
  return nil, message, ending ~= "broken" and at_the_end(source, message) -- no line can mend a quoted string that ended with its line
end

-- ---- locals of the top level ----

local opens = {["do"] = 1, ["function"] = 1, ["if"] = 1, ["repeat"] = 1, ["end"] = -1, ["until"] = -1}

-- The last of the names of `local a, b` that begin at words[i], and whether values follow.
local function name_list(words, i)
  while words[i + 1] and words[i + 1].text == "," and words[i + 2] and words[i + 2].kind == "name" do
    i = i + 2
  end
  return i, words[i + 1] ~= nil and words[i + 1].text == "="
end

--- Rewrites `local` statements of the top level as assignments to the session's variables; everything keeps its line.
function chunk.rewrite(source)
  local words = lexer.scan(source)
  local parts, from, depth, i = {}, 1, 0, 1
  local function replace(first, last, text)
    parts[#parts + 1] = source:sub(from, first - 1)
    parts[#parts + 1] = text
    from = last + 1
  end
  while words[i] do
    local word, next_word = words[i], words[i + 1]
    if word.kind == "keyword" then
      depth = depth + (opens[word.text] or 0)
    end
    if depth == 0 and word.text == "local" and word.kind == "keyword" and next_word then
      replace(word.first, word.last, "")
      if next_word.kind == "name" then
        local last, valued = name_list(words, i + 1)
        for k = i + 1, last, 2 do
          replace(words[k].first, words[k].first - 1, variables .. ".")
        end
        if not valued then
          replace(words[last].last + 1, words[last].last, " = nil")
        end
        i = last
      elseif words[i + 2] then -- local function NAME
        replace(words[i + 2].first, words[i + 2].first - 1, variables .. ".")
        i, depth = i + 1, depth + 1
      end
    end
    i = i + 1
  end
  parts[#parts + 1] = source:sub(from)
  return table.concat(parts)
end

-- ---- expressions and statements ----

-- Which of two complaints to show: the one about what comes later. A statement that fails at its first word was meant as an expression.
local function better(source, expression, statement)
  local words = lexer.scan(source)
  local first = words[1] and words[1].text
  if first and statement:sub(-#first - 8) == (" near '%s'"):format(first) and expression:sub(-#first - 8) ~= statement:sub(-#first - 8) then
    return expression
  end
  return statement
end

--- Compiles what was typed: an expression (also after `=`), or statements.
-- @tparam string source
-- @treturn ?function nil if it cannot be compiled
-- @treturn string "expression", "statement"; or "incomplete" (more lines are needed); or "wrong"
-- @treturn ?string the complaint, if wrong
function chunk.compile(source)
  local forced = source:match "^%s*=(.*)$"
  if forced and not forced:find "^=" then
    local fn, message, incomplete = compile("return " .. forced)
    return fn and expression_of(forced), fn and "expression" or incomplete and "incomplete" or "wrong", message
  end
  local fn, expression, incomplete = compile("return " .. source)
  if fn then
    return expression_of(source), "expression"
  end
  local statement, more
  fn, statement, more = compile(" " .. source) -- at its very beginning # would hide a line
  if fn then
    return loadstring(chunk.rewrite(source), "=prompt") or fn, "statement"
  elseif incomplete or more then
    return nil, "incomplete"
  end
  return nil, "wrong", better(source, expression, statement)
end

--- Whether more lines are needed before what was typed can be compiled.
function chunk.continues(source)
  return select(2, chunk.compile(source)) == "incomplete"
end

return chunk
