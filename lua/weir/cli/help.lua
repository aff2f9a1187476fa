--- weir help: what there is.
local help = {
  summary = "say what there is, or explain a command",
  usage = "[COMMAND]",
  positional = {"[COMMAND]"},
}

--- The list of commands.
function help.text(commands)
  local lines = {
    "usage: weir | weir COMMAND ... | weir FILE.lua ARGUMENT... | weir -e CODE", "",
    "An actor runtime for language models, scripted in Lua. Without arguments: the prompt, where Lua is entered and evaluated.", "",
  }
  for _, name in ipairs(commands) do
    lines[#lines + 1] = ("  %-10s %s"):format(name, require("weir.cli." .. name).summary)
  end
  lines[#lines + 1] = ""
  lines[#lines + 1] = "weir COMMAND --help explains one; weir --version says which weir this is."
  return table.concat(lines, "\n") .. "\n"
end

function help.run(o)
  require "weir.args".fail("no command '%s'", o[1] or "")
end

return help
