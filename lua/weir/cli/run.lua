--- weir run: runs a script, or code from the command line, then the loop until nothing is left to do.
local args = require "weir.args"
local core = require "weir.core"
local weir = require "weir"

local run = {
  summary = "run a Lua script (also: weir FILE.lua, weir -e CODE)",
  usage = "FILE.lua [ARGUMENT...] | -e CODE [ARGUMENT...]",
  help = [[
Runs a Lua program with weir's modules at hand. The arguments are in `...` and in the global table
arg. When the program's main chunk has ended, the loop goes on until nothing is left that could
happen by itself. Fails (1) if the program or an actor that nobody watched died of an error.]],
}

local function chunk_of(argv)
  if argv[1] == "-e" then
    if not argv[2] then
      args.fail "-e needs code"
    end
    return loadstring(argv[2], "=(command line)"), select(2, loadstring(argv[2], "=(command line)")), 3
  elseif not argv[1] then
    args.fail "a file or -e is needed"
  end
  local file, reason = io.open(argv[1], "rb")
  if not file then
    return nil, reason, 2
  end
  file:close()
  local chunk, message = loadfile(argv[1])
  return chunk, message, 2
end

--- Runs what argv says, which begins with a file or -e.
function run.start(argv)
  if argv[1] == "--help" or argv[1] == "-h" then
    io.stdout:write(args.help("run", run))
    return 0
  end
  local chunk, message, first = chunk_of(argv)
  if not chunk then
    error(weir.error("ELUA", message, {traceback = false}), 0)
  end
  local arguments = {unpack(argv, first)}
  rawset(_G, "arg", {[0] = argv[1], unpack(arguments)})
  chunk(unpack(arguments))
  if core.made() then
    weir.run()
    return weir.stats().failures > 0 and 1 or 0
  end
  return 0
end

function run.run(_, _)
  args.fail "a file or -e is needed"
end

return run
