-- Logits, hidden states, token ids and greedy continuations against what other programs computed (bounds: the reference folder's models/README.md). Families and SmolLM2
-- come with tests/data.
local weir = require "weir"
local safetensors = require "weir.safetensors"
local reference = require "reference"
local helper = require "helper"

local data = helper.root .. "/tests/data/"
local families = data .. "families/"
local sanitized = (os.getenv "WEIR_SANITIZED" or "") ~= ""

local numbers, check_greedy = reference.numbers, reference.check_greedy

describe("reference", function()
  teardown(weir.shutdown)

  for _, name in ipairs {"llama", "llama-tied"} do
    it("family_" .. name .. "_in_float_with_f32_kv", function()
      reference.check_family(families .. name .. "/model.gguf", families .. name .. "/reference.safetensors", {activations = "f32", kv = "f32"}, 1e-4)
    end)
    it("family_" .. name .. "_with_f16_kv", function()
      reference.check_family(families .. name .. "/model.gguf", families .. name .. "/reference.safetensors", {activations = "f32"}, 5e-3)
    end)
  end
end)

local prompts_file = data .. "smollm2/prompts.json"
local short = {"capital", "story", "code", "numbers", "unicode", "chat-sky", "chat-system", "chat-turns"}

-- Figures of one prompt: mean and largest difference over the 32 best, mean KL over them, share of equal best tokens, and the margin of the first that differs most.
local function compare_top(logits, ids, want, positions)
  local sum, most, kl, same, worst = 0, 0, 0, 0, 0
  for t = 0, positions - 1 do
    local row, got, best = logits:row(t), {}, 1
    local zp, zq = 0, 0
    for k = 1, 32 do
      local w = want[t * 32 + k]
      got[k] = row:get(ids[t * 32 + k])
      local d = math.abs(got[k] - w)
      sum, most = sum + d, math.max(most, d)
      best = got[k] > got[best] and k or best
      zp = zp + math.exp(w - want[t * 32 + 1])
      zq = zq + math.exp(got[k] - got[1])
    end
    for k = 1, 32 do
      local lp = want[t * 32 + k] - want[t * 32 + 1] - math.log(zp)
      local lq = got[k] - got[1] - math.log(zq)
      kl = kl + math.exp(lp) * (lp - lq)
    end
    if best == 1 then
      same = same + 1
    else
      worst = math.max(worst, want[t * 32 + 1] - want[t * 32 + 2])
    end
  end
  return {mean = sum / (positions * 32), most = most, kl = kl / positions, same = same / positions, worst = worst}
end

local function smollm2_file()
  helper.smollm2()
  local whole = os.getenv "WEIR_WHOLE" and helper.reference "models/smollm2/reference.safetensors"
  return safetensors.open(whole or data .. "smollm2/reference.safetensors")
end

local function each_prompt(options, check)
  local file = smollm2_file()
  weir.shutdown()
  local m = weir.load("smollm2", options)
  local names = {}
  for _, name in ipairs(sanitized and {"capital"} or short) do
    names[#names + 1] = name
  end
  if not sanitized then
    names[#names + 1] = "long"
  end
  for _, name in ipairs(names) do
    local ids, top, want = numbers(file, name .. ".ids"), numbers(file, name .. ".top_ids"), numbers(file, name .. ".top_logits")
    local positions = #want / 32
    local tokens = {}
    for i = 1, positions do
      tokens[i] = ids[i]
    end
    check(name, m, file, compare_top(m:forward {tokens = tokens}.logits, top, want, positions), tokens)
  end
  file:close()
  m:close()
end

describe("smollm2", function()
  teardown(weir.shutdown)

  it("tokenises_every_prompt_as_the_reference", function()
    local file = smollm2_file()
    local prompts = weir.json.decode(helper.read(prompts_file))
    weir.shutdown()
    local m = weir.load "smollm2"
    local checked = 0
    for name, prompt in pairs(prompts) do
      local text = prompt.text or prompt.rendered or prompt.rendering
      if text then
        assert.are.same(numbers(file, name .. ".ids"), m:tokenize(text, {special = prompt.text == nil}))
        checked = checked + 1
      end
    end
    assert.is_true(checked >= 9)
    file:close()
  end)

  it("logits_with_float_activations", function()
    each_prompt({activations = "f32", kv = "f32"}, function(name, m, file, d, tokens)
      assert.is_true(d.mean <= 0.01 and d.most <= 0.1, ("%s: mean %g, largest %g"):format(name, d.mean, d.most))
      local greedy = numbers(file, name .. ".greedy")
      if greedy and name ~= "long" then
        check_greedy(m, tokens, greedy, numbers(file, name .. ".greedy_margin"), 0.2)
      end
    end)
  end)

  it("logits_with_integer_activations", function()
    each_prompt({}, function(name, m, file, d, tokens)
      local text = ("%s: mean %.3f, largest %.2f, KL %.4f, same best %.1f %%, differs at a margin of %.2f"):format(name, d.mean, d.most, d.kl,
        d.same * 100, d.worst)
      if os.getenv "WEIR_FIGURES" then
        print(text)
      end
      assert.is_true(d.mean <= 0.33 and d.most <= 4 and d.kl <= 0.02 and d.same >= 0.85 and d.worst <= 3, text)
      local greedy = numbers(file, name .. ".greedy")
      if greedy and name ~= "long" then
        check_greedy(m, tokens, greedy, numbers(file, name .. ".greedy_margin"), 3)
      end
    end)
  end)

  it("says_paris", function()
    helper.smollm2()
    weir.shutdown()
    local m = weir.load "smollm2"
    assert.are.equal(" Paris.", (m:complete {prompt = "The capital of France is", max_tokens = 2}))
  end)
end)
