-- One model in every weight type against logits that llama.cpp computed of exactly those weights, with float activations, and with int8 ones against the error that
-- llama.cpp itself makes then (bounds: the reference folder's models/README.md). Needs the reference folder.
local weir = require "weir"
local safetensors = require "weir.safetensors"
local reference = require "reference"
local helper = require "helper"

-- A row a file: the peer's mean and largest error with its own activations. A type that is added is a row here.
local files = {
  {"q4_0", 0.037, 0.22}, {"q4_1", 0.043, 0.41}, {"q5_0", 0.040, 0.34}, {"q5_1", 0.040, 0.31}, {"q8_0", 0.043, 0.33},
  {"iq4_nl", 0.041, 0.26}, {"f16", 0.0013, 0.009}, {"bf16", 0.011, 0.07},
  {"q2_k", 0.061, 0.37}, {"q3_k_m", 0.056, 0.43}, {"q4_k_m", 0.055, 0.42}, {"q5_k_m", 0.057, 0.52}, {"q6_k", 0.057, 0.44},
  {"iq4_xs", 0.059, 0.45},
}

local function each(name, options)
  local answers = safetensors.open(helper.reference "models/kquants/reference.safetensors")
  local ids, want = answers:tensor("input_ids"):table(), (answers:tensor(name .. ".logits") or answers:tensor(name)):table()
  answers:close()
  weir.shutdown()
  local m = weir.load(helper.reference("models/kquants/" .. name .. ".gguf"), options)
  return reference.differences(m:forward {tokens = ids}.logits:table(), want)
end

local function at_most(got, bound, what)
  if os.getenv "WEIR_FIGURES" then
    print(("%s: %.3g, at most %.3g"):format(what, got, bound))
  end
  assert.is_true(got <= bound, ("%s: %g, at most %g"):format(what, got, bound))
end

describe("kquants", function()
  teardown(weir.shutdown)

  for _, file in ipairs(files) do
    local name, peer_mean, peer_most = unpack(file)
    it("kquants_" .. name .. "_with_float_activations", function()
      local _, most, largest = each(name, {activations = "f32", kv = "f32"})
      at_most(most, 5e-4 * largest, name .. ": float, largest")
    end)
    it("kquants_" .. name .. "_with_integer_activations", function()
      local mean, most = each(name)
      at_most(mean, 1.15 * peer_mean, name .. ": int8, mean")
      at_most(most, 1.6 * peer_most, name .. ": int8, largest")
    end)
  end
end)
