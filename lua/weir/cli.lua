--- The program weir: finds the subcommand or the script, runs it, and turns errors into messages and exit codes (0 done, 1 failed, 2 wrong use, 130
-- interrupted).
-- @module weir.cli
local core = require "weir.core"
local args = require "weir.args"
local coroutines = require "weir.coroutines"
local errors = require "weir.errors"

local commands = {
  "run", "generate", "chat", "logits", "tokenize", "template", "info", "models", "fetch", "convert", "make-model", "trace", "streams", "bench", "env", "help",
}

local PATIENCE = 2 -- seconds that actors have to end when the program does

local function is_command(name)
  for _, command in ipairs(commands) do
    if command == name then
      return true
    end
  end
  return false
end

local function is_file(name)
  local file = io.open(name, "rb")
  if file then
    file:close()
  end
  return file ~= nil
end

local function complain(name, text)
  io.stderr:write("weir", name and " " .. name or "", ": ", text, "\n")
end

-- What went wrong, said once; the exit code. Scripts get the traceback, subcommands one line.
local function explain(program, name, e, traced)
  local stopped = program.calm()
  if program.exit_code or core.exit_code() then
    return program.exit_code or core.exit_code()
  elseif args.is_usage(e) then
    complain(name, e.text)
    io.stderr:write("weir ", name and name .. " " or "", "--help says more\n")
    return 2
  elseif core.terminated() then
    complain(name, "terminated")
    return 143
  elseif stopped then
    complain(name, "interrupted")
    return 130
  end
  complain(name, traced and errors.report(e) or errors.is(e) and e.code ~= "ELUA" and tostring(e) or errors.report(e))
  return 1
end

-- Runs fn; its result or 0 is the exit code.
local function protected(program, name, traced, fn)
  local ok, result, co = core.guarded(fn)
  if ok then
    return program.exit_code or type(result) == "number" and result or 0
  elseif co and not args.is_usage(result) then
    result = errors.wrap(result, coroutines.traceback(co, result))
  end
  return explain(program, name, result, traced)
end

local function run_command(program, name, argv)
  local command = require("weir.cli." .. name)
  for _, word in ipairs(argv) do
    if word == "--" then
      break
    elseif word == "--help" or word == "-h" then
      io.stdout:write(args.help(name, command))
      return 0
    end
  end
  return command.run(args.parse(command, argv), program)
end

-- Not guarded as a whole: each evaluation is.
local function run_prompt(program)
  local ok, result = xpcall(function()
    return require "weir.prompt".run(program)
  end, function(e)
    return errors.wrap(e, coroutines.traceback(nil, e))
  end)
  return ok and result or explain(program, nil, result, true)
end

local function slice(argv, first)
  return {unpack(argv, first)}
end

local function dispatch(program, argv)
  local word = argv[1]
  if word == nil then
    return run_prompt(program)
  elseif word == "--version" then
    io.stdout:write("weir ", core.version, "\n")
    return 0
  elseif word == "--help" or word == "-h" or word == "help" and not argv[2] then
    io.stdout:write(require "weir.cli.help".text(commands))
    return 0
  elseif word == "help" and is_command(argv[2]) then
    return protected(program, argv[2], false, function() return run_command(program, argv[2], {"--help"}) end)
  elseif word == "-e" or word:match "%.lua$" or word == "run" then
    local script = require "weir.cli.run"
    return protected(program, nil, true, function() return script.start(word == "run" and slice(argv, 2) or argv) end)
  elseif is_command(word) then
    return protected(program, word, false, function() return run_command(program, word, slice(argv, 2)) end)
  elseif word:sub(1, 1) ~= "-" and is_file(word) then
    return protected(program, nil, true, function() return require "weir.cli.run".start(argv) end)
  end
  complain(nil, ("no command, option or file '%s'; weir --help lists them"):format(word))
  return 2
end

-- os.exit ends the program as SIGTERM does: the main chunk is broken off, hooks run, actors are stopped. In an actor it ends that one first.
local function replace_exit(program)
  rawset(os, "exit", function(code)
    code = (code == nil or code == true) and 0 or code == false and 1 or code
    program.exit_code = program.exit_code or tonumber(code) or 1
    core.terminated(true)
    if core.inside() then
      return core.exit()
    end
    error(errors.new("ECANCELLED", "os.exit"), 0)
  end)
end

--- Runs a command line.
-- @tparam table program what main.c offers: prefix, interrupts(function, function, argument). Gets calm(), and exit_code after os.exit
-- @tparam table argv
-- @treturn number exit code
return function(program, argv)
  local interrupt, state = core.interrupter()
  program.interrupts(interrupt, (core.terminator()), state)
  program.calm = core.calm
  replace_exit(program)
  local code = dispatch(program, argv)
  if package.loaded.weir and not require "weir.shutdown".finish(PATIENCE) and code == 0 then
    code = 1
  end
  code = program.exit_code or core.exit_code() or code
  program.interrupts(nil, nil, nil)
  pcall(core.shutdown, true)
  return code
end
