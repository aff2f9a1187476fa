-- The cuda device, on whatever driver the library path offers: the emulated one in these tests. A continuation against llama2.c, the same bits twice and after a
-- restart, alone and in a batch.
local ffi = require "ffi"
local weir = require "weir"
local helper = require "helper"

local function with(options)
  options.device = "cuda"
  return options
end

local function stories()
  local path = helper.temporary ".gguf"
  require "weir.core".llama2c_convert(helper.reference "models/stories260K/stories260K.bin", nil, path)
  return path
end

local function logits(m, tokens)
  local t = m:forward {tokens = tokens}.logits
  return ffi.string(t.data, t.bytes)
end

describe("cuda", function()
  teardown(weir.shutdown)

  it("continues_stories260K_as_llama2c_does", function()
    weir.shutdown()
    local path = stories()
    local m = weir.load(path, with {activations = "f32", kv = "f32"})
    local want = helper.read(helper.reference "models/stories260K/greedy-200.txt")
    local text = m:complete {tokens = {1}, max_tokens = 24, temperature = 0}
    assert.equal(want:sub(1, 40), (text:gsub("^%s+", "")):sub(1, 40))
    m:close()
    os.remove(path)
  end)

  it("gives_the_same_bits_twice_and_after_a_restart", function()
    weir.shutdown()
    local path, tokens = stories(), {}
    for i = 1, 40 do
      tokens[i] = i * 7 % 500
    end
    local m = weir.load(path, with {})
    local first = logits(m, tokens)
    for _ = 1, 3 do
      assert.is_true(first == logits(m, tokens))
    end
    m:close()
    weir.shutdown()
    m = weir.load(path, with {})
    assert.is_true(first == logits(m, tokens))
    m:close()
    os.remove(path)
  end)

  it("draws_the_same_tokens_alone_and_in_a_batch_of_three", function()
    weir.shutdown()
    local path = stories()
    local m = weir.load(path, with {})
    local prompts, alone, together = {{1}, {1, 403, 407}, {1, 300}}, {}, {}
    local function text(prompt)
      return (m:complete {tokens = prompt, max_tokens = 6, temperature = 0})
    end
    for i, prompt in ipairs(prompts) do
      alone[i] = text(prompt)
    end
    for i, prompt in ipairs(prompts) do
      weir.spawn(function()
        together[i] = text(prompt)
      end)
    end
    for _ = 1, 3000 do
      if #together == 3 and together[1] and together[2] then
        break
      end
      weir.sleep(0.01)
    end
    assert.same(alone, together)
    m:close()
    os.remove(path)
  end)

  it("refuses_a_step_of_sampling_that_it_has_not", function()
    weir.shutdown()
    local path = stories()
    local m = weir.load(path, with {})
    for name, value in pairs {typical = 0.5, repeat_penalty = 1.1, samplers = {"top_k", "temperature"}, logprobs = 2} do
      local ok, e = pcall(m.complete, m, {tokens = {1}, max_tokens = 2, temperature = 1, [name] = value})
      assert.is_false(ok)
      assert.matches('"' .. name .. '" is not on this device', tostring(e), 1, true)
    end
    assert.equal("f32", m.info.activations)
    m:close()
    os.remove(path)
  end)

  it("has_streams_of_its_own_for_each_actor", function()
    weir.shutdown()
    local path = stories()
    local m = weir.load(path, with {})
    local names = {}
    for _, st in ipairs(weir.streams()) do
      assert.equal("cuda:0", st.device)
      names[#names + 1] = st.name
    end
    table.sort(names)
    assert.same({"experts", "policy", "residency", "stepper"}, names)
    m:close()
    os.remove(path)
  end)
end)
