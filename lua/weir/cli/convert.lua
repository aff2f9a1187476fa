--- weir convert: one checkpoint as another.
local args = require "weir.args"
local core = require "weir.core"
local progress = require "weir.progress"

local convert = {
  summary = "write a model in another format or weight type",
  usage = "IN OUT [--type TYPE] [--shard-size MB] [--tokenizer FILE]",
  help = "IN is a GGUF file (or any part of a split one), a folder of safetensors, a name kept by `weir fetch`, or a checkpoint of llama2.c (.bin).\n"
    .. "OUT is a GGUF file if its name ends in .gguf, else a folder that gets model.safetensors, config.json and the tokeniser.\n"
    .. "The tokeniser and chat templates go along; what the other format cannot say exactly is not approximated: a line on standard error tells.\n"
    .. "Matrices become TYPE where their rows are whole blocks of it: f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0; the bytes are those of the reference.\n"
    .. "Without --type they stay as they are; safetensors has no quantised types: there such matrices become f32.",
  positional = {"IN", "OUT"},
  options = {
    {flags = "--type", type = "f32|f16|bf16|q4_0|q4_1|q5_0|q5_1|q8_0", text = "of the matrices"},
    {flags = "--shard-size", type = "positive", value = "MB", text = "safetensors: cut the weights into files of at most so many megabytes (default: one file)"},
    {flags = "--tokenizer", type = "string", value = "FILE", text = "vocabulary of a llama2.c checkpoint (default: tok*.bin or tokenizer.bin beside it)"},
  },
}

local function from_llama2c(o)
  if o.type then
    args.fail("--type does not go with a llama2.c checkpoint: convert what comes of it")
  end
  core.llama2c_convert(o[1], o.tokenizer, o[2])
end

local floats = {f32 = true, f16 = true, bf16 = true}

-- What OUT cannot be.
local function check(o)
  local is_gguf = o[2]:match "%.gguf$"
  if o[2]:match "%.safetensors$" then
    args.fail("OUT is '%s', wanted the name of a folder, which gets model.safetensors, or of a file that ends in .gguf", o[2])
  elseif is_gguf and o.shard_size then
    args.fail("--shard-size goes with safetensors, and OUT is a GGUF file")
  elseif not is_gguf and o.type and not floats[o.type] then
    args.fail("--type is '%s', and OUT a folder: safetensors has no quantised types; wanted f32, f16 or bf16, or an OUT that ends in .gguf", o.type)
  end
end

function convert.run(o)
  check(o)
  if o[1]:match "%.bin$" then
    from_llama2c(o)
    return 0
  elseif o.tokenizer then
    args.fail("--tokenizer goes with a llama2.c checkpoint (.bin)")
  end
  local tell, done = progress.line("writing " .. o[2])
  local ok, kept, warning = pcall(function()
    return core.convert(core.model_locate(o[1]), o[2], o.type, tell, o.shard_size and o.shard_size * 1e6)
  end)
  done()
  if not ok then
    error(kept, 0)
  end
  if kept > 0 then
    io.stderr:write(("weir convert: %d matrices keep their type: their rows are no whole blocks of %s\n"):format(kept, o.type))
  end
  if warning ~= "" then
    io.stderr:write("weir convert: ", warning, "\n")
  end
  return 0
end

return convert
