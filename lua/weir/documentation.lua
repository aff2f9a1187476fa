--- What stands in the sources about functions and modules: an index of their LDoc comments, made from the installed files when it is first asked.
-- @module weir.documentation
local core = require "weir.core"
local weir = require "weir"

local documentation = {}

local index -- name -> entry {name, module, text, signature, file, line}; modules: {name, text, functions}

-- ---- reading sources ----

local function lines_of(path)
  local file = io.open(path, "rb")
  local lines = {}
  if file then
    for line in file:lines() do
      lines[#lines + 1] = line
    end
    file:close()
  end
  return lines
end

-- The comment above line `at`: an array of lines without their dashes; nil if there is none, or if it begins with less than three dashes and must not.
local function comment_above(lines, at, any)
  local first = at
  while lines[first - 1] and lines[first - 1]:find "^%s*%-%-" do
    first = first - 1
  end
  while first < at and not any and not lines[first]:find "^%s*%-%-%-" do
    first = first + 1
  end
  if first == at then
    return nil
  end
  local text = {}
  for i = first, at - 1 do
    text[#text + 1] = lines[i]:gsub("^%s*%-+ ?", "")
  end
  return text
end

-- Splits a comment into what it says and its tags; continuation lines belong to their tag.
local function split(text)
  local says, tags = {}, {}
  for _, line in ipairs(text) do
    local tag, rest = line:match "^@(%w+)%s*(.*)$"
    if not tag then
      local kind, after = line:match "^@(%w+)(%[.*)$"
      tag, rest = kind, after
    end
    if tag then
      tags[#tags + 1] = {tag = tag, rest = rest}
    elseif #tags > 0 then
      tags[#tags].rest = tags[#tags].rest .. " " .. line
    else
      says[#says + 1] = line
    end
  end
  return table.concat(says, "\n"), tags
end

local function tag_value(tags, name)
  for _, tag in ipairs(tags) do
    if tag.tag == name then
      return tag.rest
    end
  end
  return nil
end

-- A parameter as it is shown: name, type, what for.
local function parameter(rest)
  local modifier, after = rest:match "^%[([^%]]*)%]%s*(.*)$"
  return after or rest, modifier
end

local function show_tag(tag)
  local rest, modifier = parameter(tag.rest)
  local optional = modifier and modifier:find "^opt" and ((modifier:match "^opt=(.*)$" and ", default " .. modifier:match "^opt=(.*)$") or ", optional") or ""
  if tag.tag == "tparam" then
    local kind, name, text = rest:match "^(%S+)%s+(%S+)%s*(.*)$"
    return kind and ("  %s (%s%s)  %s"):format(name, kind, optional, text)
  elseif tag.tag == "param" then
    local name, text = rest:match "^(%S+)%s*(.*)$"
    return name and ("  %s%s  %s"):format(name, optional ~= "" and " (" .. optional:gsub("^, ", "") .. ")" or "", text)
  elseif tag.tag == "treturn" then
    local kind, text = rest:match "^(%S+)%s*(.*)$"
    return kind and ("  returns %s  %s"):format(kind:gsub("^%?", ""), text)
  elseif tag.tag == "return" then
    return "  returns " .. rest
  end
  return nil
end

local function word(signature, says, tags)
  local parts = {signature, says ~= "" and says or nil}
  for _, tag in ipairs(tags) do
    parts[#parts + 1] = show_tag(tag)
  end
  return (table.concat(parts, "\n"):gsub(" +\n", "\n"):gsub("%s+$", ""))
end

-- ---- the index ----

local function add_function(entry, module)
  index.entries[#index.entries + 1] = entry
  index.by_place[entry.file .. ":" .. entry.line] = entry
  module.functions[#module.functions + 1] = entry
end

-- The name that code gives to what its comment is about.
local function named(line, tags)
  if line:find "^%s*local%s+function" then
    return nil
  end
  local name, arguments = line:match "^%s*function%s+([%w_.:]+)%s*(%b())"
  if not name then
    name, arguments = line:match "^%s*([%w_.]+)%s*=%s*function%s*(%b())"
  end
  if not name then
    name = line:match "^([%w_.]+)%s*="
  end
  return tag_value(tags, "function") or name, arguments
end

local function read_source(path)
  local lines = lines_of(path)
  local module = {functions = {}, text = ""}
  for at, line in ipairs(lines) do
    local about = lines[at - 1] and lines[at - 1]:find "^%s*%-%-" and not line:find "^%s*%-%-" and comment_above(lines, at)
    if about then
      local says, tags = split(about)
      local name, arguments = named(line, tags)
      if tag_value(tags, "module") then
        module.name, module.text = tag_value(tags, "module"), says
      elseif name then
        add_function({name = name, module = module, file = path, line = at, says = says, text = word(name .. (arguments or ""), says, tags)}, module)
      end
    end
  end
  if module.name then
    index.modules[module.name] = module
  end
end

local function read_folder(folder)
  for _, name in ipairs(core.list_folder(folder)) do
    local path = folder .. "/" .. name
    if name:find "%.lua$" then
      read_source(path)
    elseif not name:find("%.") then
      read_folder(path)
    end
  end
end

local function build()
  index = {entries = {}, by_place = {}, modules = {}}
  local main = package.searchpath("weir", package.path)
  if main then
    read_source(main)
    read_folder((main:gsub("%.lua$", "")))
  end
end

-- ---- asking ----

-- Entries whose name is asked for: as it is, or its last part, whatever holds it.
local function find_named(name)
  local last, found = name:match "([%w_]+)$", {}
  for _, entry in ipairs(index.entries) do
    if entry.name == name or (entry.module.name or "_"):match "([%w_]+)$" .. "." .. entry.name:match "([%w_]+)$" == name then
      return {entry}
    elseif entry.name:match "([%w_]+)$" == last and (name == last or name:find(":", 1, true)) then
      found[#found + 1] = entry
    end
  end
  return found
end

local function show_module(module)
  local parts = {module.name, module.text, ""}
  for _, entry in ipairs(module.functions) do
    local short = entry.says:match "^(.-%.)%s" or entry.says
    parts[#parts + 1] = ("  %-28s %s"):format(entry.text:match "^[^\n]*", (short:gsub("\n", " ")))
  end
  return (table.concat(parts, "\n"):gsub("%s+$", ""))
end

local function show_code(name)
  local code = weir.codes[name]
  return code and ("%s (error %d): %s. HTTP status %d; %s"):format(name, code.number, code.text, code.http, code.retry and "worth a retry" or "not worth a retry")
end

-- A function by where it is defined: its comment in its own file, whoever wrote it.
local function show_function(fn)
  local info = debug.getinfo(fn, "S")
  local path = info.source:match "^@(.*)$"
  if not path then
    return nil
  end
  local entry = index.by_place[path .. ":" .. info.linedefined]
  if entry then
    return entry.text
  end
  local lines = lines_of(path)
  local about = lines[info.linedefined] and comment_above(lines, info.linedefined, true)
  if not about then
    return nil
  end
  local says, tags = split(about)
  return word((lines[info.linedefined]:gsub("^%s+", "")), says, tags)
end

-- How many insertions, deletions and replacements lead from one word to the other, within `most`.
local function distance(a, b, most)
  if math.abs(#a - #b) > most then
    return most + 1
  end
  local row = {}
  for j = 0, #b do
    row[j] = j
  end
  for i = 1, #a do
    local corner = row[0]
    row[0] = i
    for j = 1, #b do
      local replaced = corner + (a:byte(i) == b:byte(j) and 0 or 1)
      corner = row[j]
      row[j] = math.min(replaced, row[j] + 1, row[j - 1] + 1)
    end
  end
  return row[#b]
end

local function near(name)
  local last, all, seen = name:match "([%w_]+)%W*$" or name, {}, {}
  local function consider(candidate, shown)
    local d = distance(last:lower(), candidate:lower(), 2)
    if #last >= 3 and candidate:lower():find(last:lower(), 1, true) then
      d = math.min(d, 1)
    end
    if d <= (#last <= 3 and 1 or 2) and not seen[shown] then
      seen[shown] = true
      all[#all + 1] = {shown, shown:find "^weir" and d or d + 0.5} -- what scripts use first
    end
  end
  for _, entry in ipairs(index.entries) do
    consider(entry.name:match "([%w_]+)$", entry.name)
  end
  for code in pairs(weir.codes) do
    consider(code, code)
  end
  for module in pairs(index.modules) do
    consider(module:match "([%w_]+)$", module)
  end
  table.sort(all, function(a, b) return a[2] < b[2] or a[2] == b[2] and a[1] < b[1] end)
  local names = {}
  for i = 1, math.min(#all, 6) do
    names[i] = all[i][1]
  end
  return names
end

--- The documentation of a name.
-- @tparam string name of a function ("weir.spawn", "spawn", "m:generate"), a module ("weir", "weir.model") or an error code ("EFULL")
-- @param[opt] value what the name stands for: a function is found by where it is defined
-- @treturn string what is known, or which names are near
-- @treturn boolean whether something is known
function documentation.of(name, value)
  if not index then
    build()
  end
  local code = show_code(name)
  local by_value = type(value) == "function" and show_function(value)
  if code or by_value then
    return code or by_value, true
  elseif index.modules[name] then
    return show_module(index.modules[name]), true
  end
  local found, texts = find_named(name), {}
  for i = 1, math.min(#found, 4) do
    texts[i] = found[i].text
  end
  if #texts > 0 then
    return table.concat(texts, "\n\n"), true
  end
  local names = near(name)
  return ("nothing is written about %s%s"):format(name, names[1] and "; near: " .. table.concat(names, ", ") or ""), false
end

return documentation
