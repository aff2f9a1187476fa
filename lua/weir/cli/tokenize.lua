--- weir tokenize: token ids of standard input.
local core = require "weir.core"

local tokenize = {
  summary = "print the token ids of standard input",
  usage = "MODEL [--special] < TEXT",
  help = "Reads all bytes of standard input and prints their token ids. Adds no beginning and no end.\n"
    .. "MODEL may also be a tokenizer.json, a tokenizer.model, or a folder that has one and no weights.",
  positional = {"MODEL"},
  options = {
    {flags = "--special", type = "flag", text = "recognise the text of control tokens"},
  },
}

function tokenize.run(o)
  local path = core.model_locate(o[1])
  local ids = core.source_tokenize(path, io.stdin:read "*a", o.special or false, false)
  io.stdout:write(table.concat(ids, " "), "\n")
  return 0
end

return tokenize
