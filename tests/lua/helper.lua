-- helper.lua: what the specs share: named skips, the reference folder, the fetched model, running the program weir.
local helper = {}

if os.getenv "WEIR_SPEC_MODE" == "gc" then
  collectgarbage("setpause", 0)
  collectgarbage("setstepmul", 10000)
end

helper.build = os.getenv "WEIR_BUILD"
helper.root = debug.getinfo(1, "S").source:match "^@(.*)/tests/lua/helper.lua$" or "."
helper.program = helper.build and helper.build .. "/bin/weir"

local function readable(path)
  local file = io.open(path, "rb")
  if file then
    file:close()
  end
  return file ~= nil
end

-- Ends the running test as skipped. busted gives the function that does so to the environment of the test's own function only; it is somewhere on the stack.
local function pend(reason)
  local declare = require "busted".pending
  local level = 2
  while debug.getinfo(level, "f") do
    local pending = getfenv(debug.getinfo(level, "f").func).pending
    if pending and pending ~= declare then
      pending(reason)
    end
    level = level + 1
  end
  error("skipped outside of a test: " .. reason, 0)
end

--- Skips the running test with a reason; with CI=true that is a failure.
function helper.skip(reason)
  if os.getenv "CI" == "true" then
    error("needed with CI=true: " .. reason, 0)
  end
  pend(reason)
end

--- Skips the running test for what this build or machine cannot have: no failure with CI=true.
function helper.skip_machine(reason)
  pend(reason)
end

--- Path of a file of the reference folder; skips the test if it is not there.
function helper.reference(name)
  local folder = os.getenv "WEIR_REFERENCE" or helper.root .. "/../shared"
  local path = folder .. "/" .. name
  if not readable(path) then
    helper.skip("the reference file " .. name .. " is not there")
  end
  return path
end

--- Runs the loop until a condition holds, for half a minute at most; whether it does.
function helper.soon(condition)
  local weir = require "weir"
  local give_up = weir.now() + 30
  while not condition() and weir.now() < give_up do
    weir.sleep(0.001)
  end
  return condition()
end

--- Path of the fetched SmolLM2; skips the test if it is not there.
function helper.smollm2()
  local data = os.getenv "XDG_DATA_HOME"
  if not data or data == "" then
    data = (os.getenv "HOME" or "") .. "/.local/share"
  end
  local path = data .. "/weir/models/smollm2.gguf"
  if not readable(path) then
    helper.skip("smollm2 is not fetched (weir fetch smollm2)")
  end
  return path
end

function helper.quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

--- A name for a file that does not exist yet; the caller removes it.
function helper.temporary(suffix)
  local name = os.tmpname()
  os.remove(name)
  return name .. (suffix or "")
end

function helper.write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

function helper.read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read "*a"
  file:close()
  return text
end

--- Runs a shell command line; returns its exit code, standard output and standard error.
function helper.shell(line)
  local out, err, code = helper.temporary(".out"), helper.temporary(".err"), helper.temporary(".code")
  os.execute(("{ unset LUA_PATH LUA_CPATH; %s ; } >%s 2>%s; echo $? >%s"):format(line, out, err, code))
  local result = {tonumber(helper.read(code)), helper.read(out), helper.read(err)}
  os.remove(out)
  os.remove(err)
  os.remove(code)
  return unpack(result)
end

--- Runs the program weir with arguments, and standard input from a string.
function helper.weir(arguments, input)
  local words = {}
  for i, word in ipairs(arguments) do
    words[i] = helper.quote(word)
  end
  local line = helper.quote(helper.program) .. " " .. table.concat(words, " ")
  if not input then
    return helper.shell(line .. " </dev/null")
  end
  local file = helper.temporary(".in")
  helper.write(file, input)
  local code, out, err = helper.shell(line .. " <" .. file)
  os.remove(file)
  return code, out, err
end

--- An error object of weir with this code, from a function that must raise it.
function helper.raises(code, fn, ...)
  local ok, e = pcall(fn, ...)
  local weir = require "weir"
  if ok then
    error("no error, wanted " .. code, 2)
  elseif not weir.is_error(e, code) then
    error("wanted " .. code .. ", got " .. tostring(e), 2)
  end
  return e
end

return helper
