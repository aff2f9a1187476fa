-- Sampling from Lua and from the command line: penalties, biases, order of steps, log-probabilities, with the small llama of tests/data.
local weir = require "weir"
local helper = require "helper"

local LLAMA = helper.root .. "/tests/data/families/llama/model.gguf"
local PROMPT = {1, 20, 30, 40, 50}
local model

local function load()
  if not model then
    weir.shutdown()
    model = weir.load(LLAMA, {threads = 2})
  end
  return model
end

-- The tokens of a generation, which is returned too.
local function tokens(options)
  options.tokens = options.tokens or PROMPT
  options.max_tokens, options.ignore_end = options.max_tokens or 24, true
  local it = load():generate(options)
  for _ in it do end -- luacheck: ignore 542
  return it.tokens, it
end

local function counts(ids)
  local count = {}
  for _, id in ipairs(ids) do
    count[id] = (count[id] or 0) + 1
  end
  return count
end

local function most(ids)
  local best = 0
  for _, n in pairs(counts(ids)) do
    best = math.max(best, n)
  end
  return best
end

-- log softmax of a tensor's row, literally.
local function log_softmax(row, vocab)
  local largest, sum, all = -math.huge, 0, {}
  for id = 0, vocab - 1 do
    largest = math.max(largest, row:get(id))
  end
  for id = 0, vocab - 1 do
    sum = sum + math.exp(row:get(id) - largest)
  end
  for id = 0, vocab - 1 do
    all[id] = row:get(id) - largest - math.log(sum)
  end
  return all
end

describe("sampling", function()
  teardown(function()
    model = nil
    weir.shutdown()
  end)

  it("biases_ban_and_force_tokens", function()
    local greedy = tokens {}
    local banned = tokens {logit_bias = {[greedy[1]] = -100}}
    assert.is_nil(counts(banned)[greedy[1]])
    local forced = tokens {logit_bias = {["77"] = 100}}
    assert.are.same({[77] = 24}, counts(forced))
    assert.are.same(forced, tokens {logit_bias = {[77] = 100}, temperature = 0.8, top_p = 0.9, seed = 4})
  end)

  it("frequency_and_presence_spread_the_tokens", function()
    local once = tokens {presence_penalty = 2, logit_bias = {[7] = 50}, max_tokens = 4}
    assert.are.equal(7, once[1])
    -- 2 a time: after 26 times 7 has lost what it was given
    local often = tokens {frequency_penalty = 2, logit_bias = {[7] = 50}, max_tokens = 60}
    assert.are.equal(7, often[20])
    assert.is_true(most(often) >= 20 and most(often) < 45)
    local free = tokens {logit_bias = {[7] = 50}, max_tokens = 60}
    assert.are.equal(60, counts(free)[7])
  end)

  it("frequency_and_presence_leave_the_prompt_out_and_repetition_does_not", function()
    local function first(options)
      options.tokens, options.max_tokens, options.logit_bias = {1, 7, 30, 40, 50}, 1, {[7] = 50}
      return tokens(options)[1]
    end
    assert.are.equal(7, first {frequency_penalty = 2, presence_penalty = 2, samplers = {"logit_bias", "frequency_penalty", "presence_penalty"}})
    local order = {"logit_bias", "repeat_penalty"}
    assert.are_not.equal(7, first {repeat_penalty = 100, samplers = order})
    assert.are_not.equal(7, first {repeat_penalty = 100, samplers = order, penalty_last = 4})
    assert.are.equal(7, first {repeat_penalty = 100, samplers = order, penalty_last = 3})
  end)

  it("penalties_reach_over_blocks_of_the_kv_cache", function()
    local ids = tokens {repeat_penalty = 100, max_tokens = 150}
    assert.are.equal(1, most(ids))
    local few = tokens {repeat_penalty = 100, penalty_last = 2, max_tokens = 150}
    assert.is_true(most(few) > 1)
    for i = 3, #few do
      assert.is_true(few[i] ~= few[i - 1] and few[i] ~= few[i - 2], "token " .. i)
    end
  end)

  it("the_order_of_steps_matters_and_is_as_asked", function()
    local bias = {[77] = 100}
    -- top-k first leaves the one best token, which a later bias cannot bring back
    local before = tokens {temperature = 1, top_k = 1, logit_bias = bias, samplers = {"top_k", "logit_bias", "temperature"}, max_tokens = 8}
    assert.is_nil(counts(before)[77])
    local after = tokens {temperature = 1, top_k = 1, logit_bias = bias, samplers = {"logit_bias", "top_k", "temperature"}, max_tokens = 8}
    assert.are.same({[77] = 8}, counts(after))
    local options = {temperature = 0.9, top_k = 50, top_p = 0.8, min_p = 0.01, typical = 0.9, repeat_penalty = 1.2, presence_penalty = 0.3, seed = 3}
    local default = tokens(options)
    options.samplers = {"repeat_penalty", "frequency_penalty", "presence_penalty", "logit_bias", "temperature", "top_k", "typical", "top_p", "min_p"}
    assert.are.same(default, tokens(options))
  end)

  it("wrong_samplers_are_refused_by_name", function()
    local function refused(options, ...)
      options.tokens = PROMPT
      local e = helper.raises(options.code or "EINVAL", function(o) o.code = nil return load():generate(o) end, options)
      for _, word in ipairs {...} do
        assert.is_truthy(e.text:find(word, 1, true), e.text)
      end
    end
    refused({samplers = {"top_k", "heat"}}, '"heat"', "temperature")
    refused({samplers = {"top_k", "top_k"}}, '"top_k"', "twice")
    refused({samplers = {"top_k"}, top_p = 0.5}, '"top_p"', "missing")
    refused({samplers = {}, logit_bias = {[1] = 1}}, '"logit_bias"', "missing")
    refused({samplers = "top_k"}, '"samplers"')
    refused({samplers = {3}}, "number 0")
    refused({typical = 1.5}, '"typical"', "1.5", "from 0 to 1")
    refused({repeat_penalty = 0}, '"repeat_penalty"', "is 0")
    refused({frequency_penalty = -2.5}, '"frequency_penalty"', "-2.5", "from -2 to 2")
    refused({presence_penalty = "high"}, '"presence_penalty"', "a string")
    refused({penalty_last = -1}, '"penalty_last"', "is -1")
    refused({logprobs = 21}, '"logprobs"', "is 21", "from 0 to 20")
    refused({logprobs = true}, '"logprobs"', "is true")
    refused({logit_bias = {[512] = 1}, code = "ETOKEN"}, "512")
    refused({logit_bias = {[1] = 100.5}}, "token 1", "100.5")
    refused({logit_bias = {[1] = 0 / 0}}, "token 1", "nan")
    refused({logit_bias = {x = 1}}, "[x]")
    local many = {}
    for id = 0, 1024 do
      many[id] = 0
    end
    refused({logit_bias = many}, "1025", "1024")
    assert.are.equal(4, #tokens {samplers = {}, max_tokens = 4})
  end)

  it("logprobs_are_the_log_softmax_of_the_logits", function()
    local ids, it = tokens {logprobs = 5, max_tokens = 6, temperature = 2, top_k = 20, repeat_penalty = 1.3, seed = 9}
    local all = {unpack(PROMPT)}
    for _, id in ipairs(ids) do
      all[#all + 1] = id
    end
    local forward = model:forward {tokens = all}
    assert.are.equal(6, #it.logprobs)
    assert.are.equal(it.logprobs, it.finish.logprobs)
    for i, token in ipairs(it.logprobs) do
      local want = log_softmax(forward.logits:row(#PROMPT + i - 2), model.info.vocab)
      assert.are.equal(ids[i], token.id)
      assert.is_true(math.abs(token.logprob - want[token.id]) < 1e-6)
      assert.are.equal(5, #token.top)
      local above = 0
      for k, other in ipairs(token.top) do
        assert.is_true(math.abs(other.logprob - want[other.id]) < 1e-6)
        assert.is_true(k == 1 or other.logprob <= token.top[k - 1].logprob)
      end
      for id = 0, model.info.vocab - 1 do
        above = above + (want[id] > token.top[5].logprob + 1e-6 and 1 or 0)
      end
      assert.is_true(above <= 4)
      if it.logprobs[i].text ~= nil then
        assert.are.equal("string", type(token.text))
      end
    end
  end)

  it("logprobs_change_no_token_and_cost_nothing_unasked", function()
    local plain, it = tokens {temperature = 0.9, seed = 2}
    assert.is_nil(it.logprobs)
    assert.is_nil(it.finish.logprobs)
    local ids, asked = tokens {temperature = 0.9, seed = 2, logprobs = 0}
    assert.are.same(plain, ids)
    assert.are.same({}, asked.logprobs[1].top)
  end)

  it("neighbours_with_other_settings_change_nothing", function()
    local settings = {
      {}, {repeat_penalty = 1.4}, {frequency_penalty = 1.5, presence_penalty = 1}, {logit_bias = {[77] = 3, [78] = 3.5}, temperature = 0.7, seed = 1},
      {temperature = 1.1, typical = 0.6, seed = 5, logprobs = 3}, {temperature = 0.9, top_p = 0.7, samplers = {"top_p", "temperature"}, seed = 6},
      {logprobs = 20}, {penalty_last = 3, repeat_penalty = 50},
    }
    local alone, together, logprobs = {}, {}, {}
    for i, options in ipairs(settings) do
      local it
      alone[i], it = tokens(options)
      logprobs[i] = it.logprobs
    end
    for i, options in ipairs(settings) do
      weir.spawn(function()
        local ids, it = tokens(options)
        together[i] = ids
        assert.are.same(logprobs[i], it.logprobs)
      end)
    end
    weir.run()
    assert.are.same(alone, together)
  end)

  it("cancelled_generations_with_biases_and_logprobs_give_their_sequences_back", function()
    load()
    for _ = 1, 70 do -- more than there are sequences
      local it = model:generate {tokens = PROMPT, max_tokens = 100, logprobs = 20, logit_bias = {[5] = 1}, ignore_end = true, frequency_penalty = 1}
      it()
      it:close()
    end
    weir.run()
    assert.are.equal(3, #tokens {max_tokens = 3, logprobs = 1})
  end)

  it("the_program_takes_the_options_and_shows_logprobs", function()
    model = nil
    weir.shutdown()
    local run = {"generate", LLAMA, "--tokens", "1,20,30,40,50", "-n", "3", "--ignore-end", "--print"}
    local function program(print, ...)
      local arguments = {unpack(run)}
      arguments[#arguments + 1] = print
      for _, word in ipairs {...} do
        arguments[#arguments + 1] = word
      end
      return helper.weir(arguments)
    end
    local code, out = program("tokens", "--logit-bias", "77=100,78=-1.5")
    assert.are.equal(0, code)
    assert.are.equal("77,77,77\n", out)
    code, out = program("tokens", "--logprobs", "2", "--logit-bias", "77=100")
    assert.are.equal(0, code)
    assert.are.equal(3, select(2, out:gsub('\n"[^\n]+ 77 +%-%d+%.%d%d%d%d', "")))
    assert.are.equal(6, select(2, out:gsub('\n  "[^\n]+ +%d+ +%-%d+%.%d%d%d%d', "")))
    code, out = program("json", "--logprobs", "1")
    local shown = weir.json.decode(out)
    assert.are.equal(0, code)
    assert.are.equal(shown.tokens[2], shown.logprobs[2].id)
    assert.are.equal(shown.logprobs[2].logprob, shown.logprobs[2].top[1].logprob)
    code = program("tokens", "--temperature", "0.8", "--typical", "0.9", "--repeat-penalty", "1.1", "--frequency-penalty", "0.2", "--presence-penalty", "-0.1",
      "--penalty-last", "16", "--samplers", "temperature,typical,repeat_penalty,presence_penalty,frequency_penalty", "--seed", "3")
    assert.are.equal(0, code)
    local _, err
    code, _, err = program("tokens", "--samplers", "heat")
    assert.are.equal(2, code)
    assert.is_truthy(err:find("'heat'", 1, true))
    code, _, err = program("tokens", "--logit-bias", "77")
    assert.are.equal(2, code)
    assert.is_truthy(err:find("13=-100,42=1.5", 1, true))
  end)
end)
