-- Families on the cuda device against transformers.
local weir = require "weir"
local reference = require "reference"
local helper = require "helper"

local families = {"llama", "llama-tied", "llama-rope3", "llama-yarn", "llama-linear", "qwen2", "qwen3", "phi3", "gemma2-b"}

describe("cuda", function()
  teardown(weir.shutdown)

  for _, name in ipairs(families) do
    it(("family_%s_in_float_with_f32_kv"):format(name), function()
      local folder = helper.reference("models/families/" .. name .. "/config.json"):match "^(.*)/config.json$"
      local options = {device = "cuda", activations = "f32", kv = "f32"}
      reference.check_family(folder .. "/model.gguf", folder .. "/reference.safetensors", options, 1e-3)
    end)
  end
end)
