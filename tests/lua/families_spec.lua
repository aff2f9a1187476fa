-- Every family and rotary scaling in both formats: logits, hidden states and greedy continuations against transformers (bounds: the reference folder's
-- models/README.md). A row of README's table of what runs names these tests.
local weir = require "weir"
local reference = require "reference"
local helper = require "helper"

-- Whose GGUF the reference has.
local families = {
  {"llama", gguf = true}, {"llama-tied", gguf = true}, {"llama-rope3", gguf = true}, {"llama-yarn", gguf = true}, {"llama-linear", gguf = true},
  {"qwen2", gguf = true}, {"qwen3", gguf = true}, {"mistral"}, {"phi3", gguf = true}, {"gemma2"}, {"gemma2-b", gguf = true},
}

local function check(name, model, options, bound)
  local folder = helper.reference("models/families/" .. name .. "/config.json"):match "^(.*)/config.json$"
  reference.check_family(folder .. model, folder .. "/reference.safetensors", options, bound)
end

describe("families", function()
  teardown(weir.shutdown)

  for _, family in ipairs(families) do
    local name, gguf = family[1], family.gguf
    for format, model in pairs {gguf = gguf and "/model.gguf", safetensors = ""} do
      if model then
        it(("family_%s_%s_in_float_with_f32_kv"):format(name, format), function()
          check(name, model, {activations = "f32", kv = "f32"}, 1e-4)
        end)
        it(("family_%s_%s_with_f16_kv"):format(name, format), function()
          check(name, model, {activations = "f32"}, 5e-3)
        end)
      end
    end
  end
end)
