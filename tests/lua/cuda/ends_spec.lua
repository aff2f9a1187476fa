-- Requests on the cuda device that end badly, also while their list is being captured: errors of scripts, killed actors. The next request is right, the emulation finds
-- no fault, nothing is left. And with graphs and without, a model gives the same bits.
local weir = require "weir"
local helper = require "helper"
local emulated = require "cuda.emulated"

local LLAMA = helper.root .. "/tests/data/families/llama/model.gguf"
local PROMPT = {1, 20, 30, 40, 50}
local DRAWN = {tokens = PROMPT, max_tokens = 3, temperature = 0, ignore_end = true}

local function draw(m)
  return (m:complete(DRAWN))
end

describe("a request", function()
  local right, m
  setup(function()
    weir.shutdown()
    m = weir.load(LLAMA, {device = "cuda"})
    right = draw(m)
  end)
  teardown(weir.shutdown)
  before_each(function()
    weir.shutdown()
    m = weir.load(LLAMA, {device = "cuda"})
  end)
  after_each(function()
    emulated.set("call_us", 0)
    emulated.set("jitter_us", 0)
    m = nil
    emulated.ends_clean()
  end)

  -- A request that an actor makes: begins it, returns a function that waits for its end and gives its error.
  local function begin(request)
    local ended, e = false, nil
    local actor = weir.spawn(function()
      local ok, result = pcall(request)
      ended, e = true, not ok and result or nil
    end)
    return function()
      while not ended do
        weir.sleep(0.002)
      end
      return e
    end, actor
  end

  -- Runs the loop until a capture is under way. Every call of the driver takes long meanwhile, and a capture is many.
  local function until_capturing()
    local began = emulated.count "cuStreamBeginCapture"
    while emulated.count "cuStreamBeginCapture" == began do
      weir.sleep(0.001)
    end
    assert(emulated.count "cuStreamBeginCapture" > emulated.count "cuStreamEndCapture", "the capture is over")
  end

  -- A request whose list is captured: the second of its shape.
  local function captured()
    m:complete {tokens = PROMPT, max_tokens = 1, temperature = 0}
    emulated.set("call_us", 4000)
    return function() m:complete {tokens = PROMPT, max_tokens = 1, temperature = 0} end
  end

  for name, ending in pairs {stepper = "stepper", policy = "policy"} do
    it(("whose_%s_is_killed_while_it_is_captured_says_so"):format(name), function()
      local wait = begin(captured())
      until_capturing()
      weir.kill(m.info[name])
      emulated.set("call_us", 0)
      assert.matches(ending, tostring(wait()), 1, true)
      assert.equal(right, draw(m))
    end)

    it(("whose_%s_is_killed_while_it_runs_says_so"):format(name), function()
      emulated.set("jitter_us", 300)
      local wait = begin(function() m:complete {tokens = PROMPT, max_tokens = 30, temperature = 0, ignore_end = true} end)
      local launched = emulated.count "launch"
      while emulated.count "launch" < launched + 4 do
        weir.sleep(0.001)
      end
      weir.kill(m.info[name])
      assert.matches(ending, tostring(wait()), 1, true)
      emulated.set("jitter_us", 0)
      assert.equal(right, draw(m))
    end)
  end

  it("whose_caller_is_killed_while_it_is_captured_leaves_nothing", function()
    local _, actor = begin(captured())
    until_capturing()
    weir.kill(actor)
    emulated.set("call_us", 0)
    assert.equal(right, draw(m))
  end)

  it("whose_caller_is_killed_while_it_runs_leaves_nothing", function()
    emulated.set("jitter_us", 300)
    local launched = emulated.count "launch"
    local _, actor = begin(function() m:complete {tokens = PROMPT, max_tokens = 30, temperature = 0, ignore_end = true} end)
    while emulated.count "launch" < launched + 4 do
      weir.sleep(0.001)
    end
    weir.kill(actor)
    emulated.set("jitter_us", 0)
    assert.equal(right, draw(m))
  end)

  it("of_an_actor_that_throws_ends_with_that_actor_and_its_error_is_told", function()
    local uncaught, told = weir.uncaught, {}
    weir.uncaught = function(_, e) told[#told + 1] = tostring(e) end
    weir.spawn(function()
      for piece in m:generate {tokens = PROMPT, max_tokens = 30, temperature = 0, ignore_end = true} do
        error("thrown after a piece of " .. #piece .. " bytes")
      end
    end)
    weir.spawn(function()
      weir.call(m.stepper, "open")
      m:forward {tokens = PROMPT}
      error "thrown after a pass"
    end)
    weir.run()
    weir.uncaught = uncaught
    table.sort(told)
    assert.equal(2, #told)
    assert.matches("thrown after a pass", told[1]:find "a pass" and told[1] or told[2], 1, true)
    assert.matches("thrown after a piece", told[1]:find "a piece" and told[1] or told[2], 1, true)
    assert.equal(right, draw(m))
  end)

  it("whose_callback_throws_ends_with_its_error", function()
    local pieces = 0
    local ok, e = pcall(m.chat, m, {{role = "user", content = "Once upon a time"}}, {
      max_tokens = 40, ignore_end = true,
      template = function(messages) return {{messages[1].content, false}} end,
      stream = function()
        pieces = pieces + 1
        if pieces == 3 then
          error("thrown by the reader", 0)
        end
      end,
    })
    assert.is_false(ok)
    assert.equal("thrown by the reader", e)
    assert.equal(right, draw(m))
  end)
end)

describe("graphs", function()
  teardown(weir.shutdown)

  -- Logits and tokens, thrice: item by item, captured, replayed.
  local function answers(setting)
    weir.shutdown()
    emulated.environment("WEIR_CUDA_GRAPHS", setting)
    local graphs = emulated.count "cuGraphLaunch"
    local m = weir.load(LLAMA, {device = "cuda", tile = 32})
    local all = {}
    for _ = 1, 3 do
      all[#all + 1] = emulated.logits(m, emulated.tokens(36)) -- unit by unit, a whole tile and a part
      all[#all + 1] = m:complete {tokens = {1}, max_tokens = 2, temperature = 0.8, seed = 7, ignore_end = true} -- one list
    end
    emulated.ends_clean()
    return all, emulated.count "cuGraphLaunch" - graphs
  end

  it("replay_the_same_bits_as_without_them", function()
    local given = os.getenv "WEIR_CUDA_GRAPHS"
    local replayed, some = answers(nil)
    local eager, none = answers "0"
    emulated.environment("WEIR_CUDA_GRAPHS", given)
    assert.is_true(some > 5 and none == 0, ("%d, %d"):format(some, none))
    for i = 1, #eager do
      assert.is_true(eager[i] == replayed[i], ("answer %d"):format(i))
      assert.is_true(i <= 2 or replayed[i] == replayed[i - 2], ("answer %d is not the first one"):format(i))
    end
  end)
end)
