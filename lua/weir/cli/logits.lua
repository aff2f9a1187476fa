--- weir logits: what a model gives for every position, in a safetensors file.
local ffi = require "ffi"
local args = require "weir.args"
local safetensors = require "weir.safetensors"
local tensor = require "weir.tensor"
local weir = require "weir"

local logits = {
  summary = "write logits and hidden states to a safetensors file",
  usage = "MODEL (--prompt TEXT | --tokens 1,2,3) --out FILE.safetensors [option...]",
  help = "Writes input_ids [T] (int32), logits [T, vocabulary] and, with --hidden, hidden.0 to hidden.LAYERS [T, width] (float32).",
  positional = {"MODEL"},
  options = args.join(args.prompt, {
    {flags = "--out", type = "string", value = "FILE", text = "the file to write"},
    {flags = "--hidden", type = "flag", text = "also hidden.k: 0 embeddings, k after layer k, the last one after the final norm"},
  }, args.load),
}

local function ids_tensor(ids)
  local data = ffi.new("int32_t[?]", math.max(#ids, 1))
  for i, id in ipairs(ids) do
    data[i - 1] = id
  end
  return tensor.new(data, "I32", {#ids}, 0, data)
end

function logits.run(o)
  local request = args.prompt_options(o, {hidden = o.hidden})
  if not o.out then
    args.fail "--out is needed"
  end
  local model = args.load_model(o)
  local result = model:forward(request)
  local list = {{name = "input_ids", tensor = ids_tensor(result.tokens)}, {name = "logits", tensor = result.logits}}
  for k = 0, o.hidden and model.info.layers or -1 do
    list[#list + 1] = {name = "hidden." .. k, tensor = result.hidden[k]}
  end
  safetensors.write(o.out, list, {
    model = model.info.path, activations = tostring(model.info.activations), kv = tostring(model.info.kv), program = "weir " .. weir._VERSION,
  })
  return 0
end

return logits
