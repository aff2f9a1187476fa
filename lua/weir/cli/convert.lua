--- weir convert: llama2.c checkpoints to GGUF.
local core = require "weir.core"

local convert = {
  summary = "write a llama2.c checkpoint as a GGUF file",
  usage = "CHECKPOINT OUT.gguf [--tokenizer FILE]",
  positional = {"CHECKPOINT", "OUT.gguf"},
  options = {
    {flags = "--tokenizer", type = "string", value = "FILE", text = "its vocabulary (default: the one tok*.bin or tokenizer.bin beside it)"},
  },
}

function convert.run(o)
  core.llama2c_convert(o[1], o.tokenizer, o[2])
  return 0
end

return convert
