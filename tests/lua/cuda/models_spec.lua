-- stories260K and SmolLM2 on the cuda device against what other programs computed, with float activations: logits within 1e-3 of the largest, greedy continuations; the
-- same bits twice; alone and in a batch of three. WEIR_WHOLE=1: all prompts of SmolLM2, with their continuations and how near they come (minutes).
local ffi = require "ffi"
local weir = require "weir"
local safetensors = require "weir.safetensors"
local tensor = require "weir.tensor"
local reference = require "reference"
local helper = require "helper"
local emulated = require "cuda.emulated"

local FLOATS = {device = "cuda", activations = "f32", kv = "f32"}
local BOUND = 1e-3 -- of the largest |logit|
local whole = (os.getenv "WEIR_WHOLE" or "") ~= ""
local sanitized = (os.getenv "WEIR_SANITIZED" or "") ~= ""

-- Runs each fn in an actor of its own, all at once; returns their results.
local function together(fns)
  local results = {}
  for i, fn in ipairs(fns) do
    weir.spawn(function()
      results[i] = {pcall(fn)}
    end)
  end
  weir.run()
  for i = 1, #fns do
    assert(results[i][1], results[i][2])
    results[i] = results[i][2]
  end
  return results
end

local function passes(m)
  return weir.call(m.info.policy, "stats").passes
end

describe("stories260K", function()
  local path, want, m
  setup(function()
    path, want = emulated.stories(), helper.read(helper.reference "models/stories260K/greedy-200.txt")
    weir.shutdown()
    m = weir.load(path, FLOATS)
  end)
  teardown(function()
    weir.shutdown()
    os.remove(path)
  end)

  local function continued(tokens, n)
    local it = m:generate {tokens = tokens, max_tokens = n, temperature = 0, ignore_end = true}
    for _ in it do end -- luacheck: ignore 542
    return it.tokens
  end

  local right -- what it says to the beginning token

  it("continues_as_llama2c_does", function()
    right = continued({1}, whole and 200 or 20)
    local text = m:detokenize(right):gsub("^%s+", "")
    assert.equal(whole and want or want:sub(1, #text), text)
  end)

  it("gives_the_logits_of_the_cpu", function()
    local ids = emulated.tokens(60)
    local got = m:forward {tokens = ids}.logits:table()
    local cpu = weir.load(path, {activations = "f32", kv = "f32", threads = 1})
    local _, most, largest = reference.differences(got, cpu:forward {tokens = ids}.logits:table())
    cpu:close()
    assert.is_true(most <= BOUND * largest, ("%g of %g"):format(most, largest))
  end)

  it("continues_as_llama2c_does_alone_and_in_a_batch_of_three", function()
    local starts, fns, alone, steps = {0, 2, 5}, {}, 0, 4
    for i, n in ipairs(starts) do -- each begins with a part of the right text
      local prompt = {1, unpack(right, 1, n)}
      fns[i] = function() return continued(prompt, steps) end
      local before = passes(m)
      assert.same({unpack(right, n + 1, n + steps)}, fns[i]())
      alone = alone + passes(m) - before
    end
    local before = passes(m)
    local batch = together(fns)
    for i, n in ipairs(starts) do
      assert.same({unpack(right, n + 1, n + steps)}, batch[i])
    end
    assert.is_true(passes(m) - before < alone / 2, "they were not together")
  end)

  it("gives_the_same_bits_twice", function()
    local ids = emulated.tokens(40)
    assert.is_true(emulated.logits(m, ids) == emulated.logits(m, ids))
  end)
end)

-- ---- SmolLM2 ----

local PROMPTS = not whole and {"capital"} or {"capital", "story", "code", "numbers", "unicode", "chat-sky", "chat-system", "chat-turns", "long"}

local function prompt_of(file, name)
  return {name = name, ids = reference.numbers(file, name .. ".ids"), greedy = reference.numbers(file, name .. ".greedy"),
    margin = reference.numbers(file, name .. ".greedy_margin"), top_ids = reference.numbers(file, name .. ".top_ids"),
    top = reference.numbers(file, name .. ".top_logits"), last = reference.numbers(file, name .. ".last_logits")}
end

-- The prompt and its continuation, and how many steps of that.
local function continued_prompt(p)
  local steps = p.greedy and #p.greedy or 0
  local tokens = {unpack(p.ids)}
  for i = 1, steps - 1 do
    tokens[#tokens + 1] = p.greedy[i]
  end
  return tokens, steps
end

-- Largest difference from the reference's best logits at each of the first positions, from all at the last one of the prompt; the largest of the reference's.
local function compare(p, logits, positions)
  local most, largest = 0, 0
  local function add(got, want)
    assert(got == got, "not a number")
    most, largest = math.max(most, math.abs(got - want)), math.max(largest, math.abs(want))
  end
  for t = 0, positions - 1 do
    local row = logits:row(t)
    for k = t * 32 + 1, t * 32 + 32 do
      add(row:get(p.top_ids[k]), p.top[k])
    end
  end
  for id = 1, positions == #p.ids and p.last and #p.last or 0 do
    add(logits:row(positions - 1):get(id - 1), p.last[id])
  end
  assert.is_true(most <= BOUND * largest, ("%s: %g of %g"):format(p.name, most, largest))
  return most, largest
end

local function best_of(row)
  local best, id = -math.huge, nil
  for i, l in ipairs(row:table()) do
    if l > best then
      best, id = l, i - 1
    end
  end
  return id
end

-- Steps of the reference's continuation that are the best token here too; each whose margin is above the noise must be.
local function greedy(p, logits, steps)
  local same = 0
  for i = 1, steps do
    local is = best_of(logits:row(#p.ids + i - 2)) == p.greedy[i]
    assert(is or p.margin[i] <= 0.2, ("%s: step %d is another token"):format(p.name, i))
    same = same + (is and 1 or 0)
  end
  return same
end

-- Logits of the tokens from an empty state, of all sequences in one pass.
local function pass(m, prompts)
  local runs, sequences, tensors, from = {}, {}, {}, 0
  for i, tokens in ipairs(prompts) do
    sequences[i] = weir.call(m.stepper, "open")
    runs[i] = {sequences[i], 0, weir.bin(ffi.string(ffi.new("int32_t[?]", #tokens, tokens), 4 * #tokens)), {logits = "all"}}
  end
  local reply = weir.call_with({to = m.stepper, timeout = false}, "pass", {runs = runs, return_logits = true})
  for i, tokens in ipairs(prompts) do
    weir.call(m.stepper, "close", sequences[i])
    tensors[i] = tensor.new(reply.logits, "F32", {#tokens, m.info.vocab}, from)
    from = from + 4 * #tokens * m.info.vocab
  end
  return tensors
end

local function bits(t)
  return ffi.string(t.data, t.bytes)
end

describe("smollm2", function()
  local file, m
  setup(function()
    helper.smollm2()
    file = safetensors.open(whole and helper.reference "models/smollm2/reference.safetensors" or helper.root .. "/tests/data/smollm2/reference.safetensors")
    weir.shutdown()
    m = not sanitized and weir.load("smollm2", {device = "cuda", activations = "f32", kv = "f32", context = 1280})
  end)
  teardown(function()
    weir.shutdown()
    file:close()
  end)
  before_each(function()
    if sanitized then
      helper.skip_machine "it takes minutes with a sanitizer"
    end
  end)

  it("gives_the_logits_and_greedy_steps_of_the_reference_in_a_batch_of_three", function()
    local prompts, tokens = {}, {}
    for i, name in ipairs {"capital", "story", "code"} do
      local p = prompt_of(file, name)
      prompts[i], tokens[i] = p, {unpack(continued_prompt(p), 1, i == 1 and #p.ids + 3 or 5)}
    end
    local logits = pass(m, tokens)
    for i, p in ipairs(prompts) do
      compare(p, logits[i], math.min(#p.ids, #tokens[i]))
    end
    assert.equal(4, greedy(prompts[1], logits[1], 4))
  end)

  for _, name in ipairs(PROMPTS) do
    it(("gives_the_logits_and_greedy_steps_of_%s"):format(name), function()
      local p = prompt_of(file, name)
      local tokens, steps = continued_prompt(p)
      local logits = pass(m, {tokens})[1]
      local most, largest = compare(p, logits, #p.ids)
      local same = greedy(p, logits, steps)
      print(("%s: %d positions, largest difference %.3g of %.3g (%.2g), %d of %d greedy steps"):format(name, #p.ids, most, largest, most / largest, same, steps))
    end)
  end

  it("gives_the_same_bits_twice_and_alone_and_in_a_batch_of_three", function()
    if not whole then
      helper.skip_machine "a minute: with WEIR_WHOLE=1"
    end
    local tokens = {} -- of so few rows that all go the same way
    for i, name in ipairs {"capital", "story", "code"} do
      tokens[i] = {unpack(prompt_of(file, name).ids, 1, 2)}
    end
    local batch, again = pass(m, tokens), pass(m, tokens)
    for i = 1, 3 do
      assert.is_true(bits(batch[i]) == bits(again[i]))
      assert.is_true(bits(batch[i]) == bits(pass(m, {tokens[i]})[1]))
    end
  end)
end)
