--- weir env: how plain luajit finds weir.
local quote = require "weir.shell".quote

local env = {
  summary = "print the settings with which plain luajit finds weir",
  usage = "",
  help = 'Prints shell commands: eval "$(weir env)"; luajit -e \'require "weir"\'.',
}

function env.run(_, program)
  local share, lib = program.prefix .. "/share/lua/5.1", program.prefix .. "/lib/lua/5.1"
  io.stdout:write("export LUA_PATH=", quote(share .. "/?.lua;"), '"${LUA_PATH:-;}"\n')
  io.stdout:write("export LUA_CPATH=", quote(lib .. "/?.so;"), '"${LUA_CPATH:-;}"\n')
  return 0
end

return env
