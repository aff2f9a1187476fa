--- What could follow what was typed: names, fields, methods, modules. Looks only at what is there; runs nobody's code.
-- @module weir.prompt.completion
local core = require "weir.core"
local lexer = require "weir.lexer"
local session = require "weir.prompt.session"

local completion = {}

local function collect(found, prefix)
  local names = {}
  for name in pairs(found) do
    if type(name) == "string" and name:sub(1, #prefix) == prefix then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return names
end

-- ---- fields ----

-- Names of fields of a value and of the tables that its metatables name. __names: what a table knows how to find later.
local function fields_of(value, methods)
  local found = {}
  for _ = 1, 16 do
    local meta = debug.getmetatable(value)
    if type(value) == "table" then
      for name, field in next, value do
        if type(name) == "string" and name:find "^[%a_][%w_]*$" and not lexer.keywords[name] and (not methods or type(field) == "function") then
          found[name] = true
        end
      end
      for name in pairs(type(meta) == "table" and rawget(meta, "__names") or {}) do
        found[name] = true
      end
    end
    value = type(meta) == "table" and rawget(meta, "__index") or nil
    if type(value) ~= "table" then
      break
    end
  end
  for name in pairs(found) do -- metamethods only for those who ask for them
    found[name] = name:sub(1, 2) ~= "__" or nil
  end
  return found
end

-- The value of a chain like a.b[1].c that ends at words[last]; nil if it is none, or cannot be told.
local function chain(words, last, self)
  local word = words[last]
  if not word then
    return nil
  elseif word.text == "]" and words[last - 2] and words[last - 2].text == "[" then
    local key = words[last - 1]
    local base = chain(words, last - 3, self)
    if key.kind == "number" then
      return base ~= nil and session.field(base, tonumber(key.text)) or nil
    end
    return base ~= nil and key.kind == "string" and session.field(base, key.text:sub(2, -2)) or nil
  elseif word.kind == "string" and not word.open then
    return ""
  elseif word.kind ~= "name" then
    return nil
  end
  local before = words[last - 1]
  if before and (before.text == "." or before.text == ":") then
    local base = chain(words, last - 2, self)
    return base ~= nil and session.field(base, word.text) or nil
  end
  return self:names()[word.text]
end

-- ---- modules ----

local function add_folder(found, template, prefix)
  local folder, after = template:match "^(.-)%?(.*)$"
  local inside = prefix:match "^(.*)%." or ""
  if not folder or folder == "" then
    return
  end
  local shown = inside == "" and "" or inside .. "."
  for _, name in ipairs(core.list_folder(folder .. inside:gsub("%.", "/"))) do
    local module = name:sub(-#after) == after and name:sub(1, -#after - 1)
    if module and module ~= "" and module:sub(1, 1) ~= "." then
      found[shown .. module] = true
    elseif not name:find("%.") and after:sub(1, 1) == "." and #core.list_folder(folder .. inside:gsub("%.", "/") .. "/" .. name) > 2 then
      found[shown .. name .. "."] = true
    end
  end
end

-- Modules that are loaded, preloaded, or lie where require looks, one level of folders at a time.
local function modules(prefix)
  local found = {}
  for _, loaded in ipairs {package.loaded, package.preload} do
    for name in pairs(loaded) do
      found[name] = true
    end
  end
  for template in (package.path .. ";" .. package.cpath):gmatch "[^;]+" do
    if template:sub(1, 2) ~= "./" or not prefix:find "^%.*$" then
      add_folder(found, template, prefix)
    end
  end
  local names = collect(found, prefix)
  for i = #names, 2, -1 do -- a folder whose module is there too is named once
    if names[i] == names[i - 1] .. "." then
      table.remove(names, i)
    end
  end
  return names
end

-- ---- what to complete ----

local function is_require(words, last)
  local before = words[last - 1]
  if before and before.text == "(" then
    before = words[last - 2]
  end
  return before ~= nil and before.kind == "name" and before.text == "require"
end

local function with_keywords(self)
  local found = {}
  for name in pairs(self:names()) do
    found[name] = type(name) == "string" and name:find "^[%a_][%w_]*$" ~= nil or nil
  end
  for word in pairs(lexer.keywords) do
    found[word] = true
  end
  return found
end

--- Candidates for what stands before the cursor.
-- @tparam table self the session
-- @tparam string text before the cursor
-- @treturn ?number first byte of the word to complete
-- @treturn ?table candidates, sorted: what could stand in its place
function completion.find(self, text)
  local source = text:gsub("^%s*[?=]", " ")
  local shift = #text - #source
  local words, ending = lexer.scan(source)
  local last = words[#words]
  if ending == "broken" and last.kind == "string" and is_require(words, #words) then
    local prefix = last.text:sub(2)
    return last.first + 1 + shift, modules(prefix)
  elseif ending then
    return nil
  end
  local at_end = last and last.last == #source
  local prefix = at_end and (last.kind == "name" or last.kind == "keyword") and last.text or ""
  local place = #words - (prefix ~= "" and 1 or 0)
  local dot = words[place]
  if dot and (dot.text == "." or dot.text == ":") and dot.last == #source - #prefix then
    local value = chain(words, place - 1, self)
    return #text - #prefix + 1, value ~= nil and collect(fields_of(value, dot.text == ":"), prefix) or {}
  elseif prefix == "" then
    return nil
  end
  return #text - #prefix + 1, collect(with_keywords(self), prefix)
end

--- Candidates in columns, as a list to look at.
function completion.list(candidates, columns)
  local shown, longest = {}, 0
  for i = 1, math.min(#candidates, 200) do
    shown[i] = candidates[i]
    longest = math.max(longest, #candidates[i])
  end
  local across = math.max(1, math.floor((columns + 2) / (longest + 2)))
  local down = math.ceil(#shown / across)
  local rows = {}
  for row = 1, down do
    local parts = {}
    for column = 0, across - 1 do
      local name = shown[row + column * down]
      parts[#parts + 1] = name and name .. (" "):rep(longest + 2 - #name) or nil
    end
    rows[row] = table.concat(parts):gsub(" +$", "")
  end
  if #candidates > #shown then
    rows[#rows + 1] = ("... %d more"):format(#candidates - #shown)
  end
  return table.concat(rows, "\n")
end

return completion
