-- luajit scripts/docs_lua.lua: looks through the Lua library and prints "ok NAME" or "missing NAME: WHAT" for every public function: all need a doc comment; those of
-- the files that lua/config.ld names also one for each parameter and, if they return something, for that. scripts/docs --check counts the lines.
local settings = setmetatable({}, {__index = _G})
setfenv(assert(loadfile "lua/config.ld"), settings)()

local strict = {}
for _, name in ipairs(settings.file) do
  strict["lua/" .. name] = true
end

local function lines_of(path)
  local lines = {}
  for line in io.lines(path) do
    lines[#lines + 1] = line
  end
  return lines
end

-- The doc comment that ends above line `at`, as one text; nil if there is none.
local function comment_above(lines, at)
  local first = at
  while first > 1 and lines[first - 1]:match "^%-%-" do
    first = first - 1
  end
  if first == at or not lines[first]:match "^%-%-%-" then
    return nil
  end
  return table.concat(lines, "\n", first, at - 1)
end

-- Names that the comment's tags describe.
local function described(comment)
  local names = {}
  for tag, rest in comment:gmatch "@(t?param)(%S*%s[^\n]*)" do
    rest = rest:gsub("^%b[]", ""):gsub("^%s+", "")
    if tag == "tparam" then
      rest = rest:gsub("^%S+%s+", "")
    end
    names[rest:match "^%S+" or ""] = true
  end
  return names
end

-- Whether the function that begins at line `at` returns a value itself; functions inside it are left out by their indentation.
local function returns(lines, at)
  if lines[at]:match "%f[%w]end%s*$" then
    return lines[at]:match "%f[%w]return%s+[^%s]" ~= nil
  end
  local inner
  for i = at + 1, #lines do
    local line = lines[i]
    if line:match "^end" then
      return false
    elseif inner then
      inner = not line:match("^" .. inner .. "end") and inner
    elseif line:match "%f[%w]function%f[^%w]" and not line:match "%f[%w]end[%s,)]*$" then
      inner = line:match "^%s*"
    elseif line:match "^%s+return%s+[^%s]" or line:match "%sthen%s+return%s+[^%s]" then
      return not line:match "return nil$"
    end
  end
end

local function complaint(path, lines, at, arguments)
  local comment = comment_above(lines, at)
  if not comment then
    return "no doc comment"
  elseif not strict[path] or comment:find("@local", 1, true) then
    return nil
  end
  local names = described(comment)
  for name in (arguments or ""):gmatch "[%w_.]+" do
    if not names[name] and name:sub(1, 1) ~= "_" then
      return "parameter " .. name
    end
  end
  return returns(lines, at) and not comment:find "@t?return" and "what it returns" or nil
end

-- Whether a table that functions are put into is public: the module itself, and in documented files its classes.
local function public(path, owner, module)
  return owner == module or strict[path] and (owner == "meta" or owner:match "^%u" ~= nil)
end

local function check(path)
  local lines = lines_of(path)
  local last = table.concat(lines, "\n"):match ".*\nreturn ([^\n]*)" or ""
  local module = last:match "^setmetatable%(([%w_]+)" or last:match "^[%w_]+"
  print((lines[1]:match "^%-%-%-" and "ok " or "missing ") .. path)
  for at, line in ipairs(lines) do
    local owner, name, arguments = line:match "^function ([%w_]+)[.:]([%w_]+)%s*%(([^)]*)%)"
    if not owner then
      owner, name = line:match "^(weir)%.([%w_]+) = [%a_]"
    end
    if owner and public(path, owner, module) and name:sub(1, 2) ~= "__" then
      local why = complaint(path, lines, at, arguments)
      print((why and "missing " or "ok ") .. path .. ": " .. owner .. "." .. name .. (why and ": " .. why or ""))
    end
  end
end

check "lua/weir.lua"
for path in io.popen("ls lua/weir/*.lua"):lines() do
  check(path)
end
