-- Every family in every weight type: small random models, whose logits with int8 activations must be near those with float activations, and far from nothing.
-- README's table of what runs names these tests.
local core = require "weir.core"
local ffi = require "ffi"
local weir = require "weir"
local helper = require "helper"

local families = {"llama", "qwen2", "qwen3", "mistral", "phi3", "gemma2"}
local tokens = {}
for i = 1, 24 do
  tokens[i] = (i * 167) % 299
end

local function logits(path, options)
  weir.shutdown()
  local m = weir.load(path, options)
  local t = m:forward {tokens = tokens}.logits
  local bytes = ffi.string(t.data, t.bytes)
  m:close()
  return bytes
end

-- Root mean square of x, and of x - y.
local function sizes(x, y)
  local a, b, n, sum, difference = ffi.cast("const float *", x), ffi.cast("const float *", y), #x / 4, 0, 0
  assert(#x == #y)
  for i = 0, n - 1 do
    sum, difference = sum + a[i] ^ 2, difference + (a[i] - b[i]) ^ 2
  end
  return math.sqrt(sum / n), math.sqrt(difference / n)
end

-- A model whose rows are whole blocks of every type.
local function make(family, type_, path)
  core.make_model({family = family, type = type_, layers = 2, width = 256, heads = 4, kv_heads = 2, ffn = 256, vocab = 300, context = 64, seed = 1}, path)
end

describe("types", function()
  teardown(weir.shutdown)

  for _, family in ipairs(families) do
    for _, type_ in ipairs((core.weight_types())) do
      it(("runs_%s_%s"):format(family, type_), function()
        local path = helper.temporary ".gguf"
        make(family, type_, path)
        local size, difference = sizes(logits(path, {activations = "f32", kv = "f32"}), logits(path))
        os.remove(path)
        assert.is_true(size > 0.05 and size < 50, "logits of size " .. size)
        assert.is_true(difference < 0.06 * size, ("int8 activations change logits of size %g by %g"):format(size, difference))
      end)
    end

    it(("runs_%s_safetensors_quantised_to_every_type"):format(family), function()
      local path, folder = helper.temporary ".gguf", helper.temporary ""
      make(family, "f32", path)
      core.convert(path, folder)
      local names, writes = core.weight_types()
      for _, type_ in ipairs(names) do
        if writes[type_] then
          local quantised = helper.temporary ".gguf"
          core.convert(path, quantised, type_)
          assert(logits(folder, {quant = type_}) == logits(quantised), type_ .. ": quantised while loading and in a file differ")
          os.remove(quantised)
        end
      end
      os.remove(path)
      os.execute("rm -r " .. helper.quote(folder))
    end)
  end

  it("a_type_that_is_not_quantised_to_is_refused_by_its_name", function()
    local path = helper.temporary ".gguf"
    make("llama", "f16", path)
    for _, name in ipairs {"q9", "q4_K"} do
      local ok, e = pcall(weir.load, path, {quant = name})
      assert.is_false(ok)
      assert.equal("EINVAL", e.code)
      assert.matches('"quant" is "' .. name .. '"', tostring(e), 1, true)
      assert.matches("q8_0", tostring(e), 1, true)
    end
    os.remove(path)
  end)
end)
