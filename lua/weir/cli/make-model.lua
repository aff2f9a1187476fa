--- weir make-model: random models of any shape and type.
local args = require "weir.args"
local core = require "weir.core"
local progress = require "weir.progress"

local make = {
  summary = "write a random model of any family, shape and weight type",
  usage = "--like FAMILY --type TYPE [OPTION...] OUT.gguf",
  help = "Writes a GGUF file with random weights, for timing and for trying what a model of some size needs. It says nothing of sense. The same seed gives the "
    .. "same file.\nA 1.1B model: weir make-model --like llama --layers 22 --hidden 2048 --heads 32 --kv-heads 4 --ffn 5632 --vocab 32000 --type q4_0 big.gguf",
  positional = {"OUT.gguf"},
  options = {
    {flags = "--like", type = "string", value = "FAMILY", text = "llama (default), qwen2, qwen3, mistral, phi3 or gemma2"},
    {flags = "--type", type = "string", value = "TYPE", text = "type of the matrices (default: q8_0)"},
    {flags = "--layers", type = "positive", text = "layers (default: 4)"},
    {flags = "--hidden", type = "positive", text = "width (default: 256)"},
    {flags = "--heads", type = "positive", text = "query heads (default: hidden / 64)"},
    {flags = "--kv-heads", type = "positive", text = "KV heads (default: as many as query heads)"},
    {flags = "--head-dim", type = "positive", text = "dimensions of a head (default: hidden / heads)"},
    {flags = "--ffn", type = "positive", text = "width of the MLP (default: 4 hidden)"},
    {flags = "--vocab", type = "positive", text = "tokens (default: 32000)"},
    {flags = "--context", type = "positive", text = "positions (default: 4096)"},
    {flags = "--tied", type = "flag", text = "the embedding table is the head"},
    {flags = "--seed", type = "seed", text = "of the weights (default: 0)"},
  },
}

function make.run(o)
  local width = o.hidden or 256
  local shape = {
    family = o.like or "llama", type = (o.type or "q8_0"):lower(), layers = o.layers or 4, width = width,
    heads = o.heads or math.max(1, math.floor(width / 64)), kv_heads = o.kv_heads, head_dim = o.head_dim, ffn = o.ffn or 4 * width, vocab = o.vocab or 32000,
    context = o.context or 4096, tied = o.tied, seed = o.seed or 0,
  }
  local names, writes = core.weight_types()
  if writes[shape.type] == nil then
    args.fail("no weight type '%s'; there are %s", shape.type, table.concat(names, ", "))
  end
  local tell, done = progress.line("writing " .. o[1])
  local ok, e = pcall(core.make_model, shape, o[1], tell)
  done()
  if not ok then
    error(e, 0)
  end
  io.stdout:write(("%s: %.1f MB\n"):format(o[1], core.file_size(o[1]) / 1e6))
  return 0
end

return make
