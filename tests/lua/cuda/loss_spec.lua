-- The device is lost, in the emulated driver: what runs ends once, with an error that says so; the device is made anew, the model loaded anew; the next request is
-- right.
local ffi = require "ffi"
local weir = require "weir"
local helper = require "helper"

local emulated = require "cuda.emulated"
local driver = emulated.driver

local ILLEGAL_ADDRESS, LAUNCH_FAILED = 700, 719
local path, right

local function load()
  return weir.load(path, {device = "cuda"})
end

local function text(m)
  return (m:complete {tokens = {1, 403, 407}, max_tokens = 6, temperature = 0})
end

-- But for the fault itself.
local function reports()
  local lines = {}
  for line in emulated.reports():gmatch "[^\n]+" do
    lines[#lines + 1] = not line:find "injected$" and line or nil
  end
  return table.concat(lines, "\n")
end

local function is_loss(e)
  assert.is_true(weir.is_error(e), tostring(e))
  assert.equal("EDEVICE", e.code, tostring(e))
  assert.matches("device cuda:0", tostring(e), 1, true)
end

-- The request fails, naming the device; the next one is right.
local function loses_and_recovers(m)
  local ok, e = pcall(text, m)
  driver.cuemu_fail_clear()
  assert.is_false(ok)
  is_loss(e)
  assert.equal(right, text(m))
end

describe("cuda loss", function()
  setup(function()
    path = helper.reference "models/families/llama/model.gguf"
    local m = load()
    right = text(m)
    m:close()
  end)
  before_each(weir.shutdown)
  after_each(function()
    weir.shutdown()
    assert.equal("", reports())
  end)

  for _, kernel in ipairs {"weir_embed_f32", "weir_attention_merge", "weir_draw"} do
    it(("in_%s_ends_the_pass_and_the_next_request_is_right"):format(kernel), function()
      local m = load()
      text(m)
      driver.cuemu_fail("exec:" .. kernel, 3, ILLEGAL_ADDRESS)
      loses_and_recovers(m)
      m:close()
    end)
  end

  it("while_units_are_packed_fails_the_load_and_the_next_load_is_right", function()
    driver.cuemu_fail("exec:weir_pack_f32", 9, LAUNCH_FAILED)
    local ok, e = pcall(load)
    driver.cuemu_fail_clear()
    assert.is_false(ok)
    is_loss(e)
    assert.matches("lost", tostring(e), 1, true)
    local m = load()
    assert.equal(right, text(m))
    m:close()
  end)

  it("at_any_call_of_a_request_is_told_or_not_felt_and_the_next_request_is_right", function()
    local m = load()
    local before = emulated.count "any"
    text(m)
    local calls = emulated.count "any" - before
    m:close()
    for i = 1, 6 do
      m = load()
      driver.cuemu_fail("device", math.ceil(i * calls / 6), LAUNCH_FAILED)
      local ok, result = pcall(text, m)
      driver.cuemu_fail_clear()
      if ok then
        assert.equal(right, result)
      else
        is_loss(result)
      end
      assert.equal(right, text(m))
      m:close()
    end
  end)

  -- Begins the requests, all of which end with the loss, each once.
  local function end_together(requests)
    local ends, told = {}, {}
    for i, request in ipairs(requests) do
      ends[i] = 0
      weir.spawn(function()
        local _, e = pcall(request)
        ends[i] = ends[i] + 1
        told[#told + 1] = e
      end)
    end
    while #told < #requests do
      weir.sleep(0.005)
    end
    driver.cuemu_fail_clear()
    for i = 1, #requests do
      assert.equal(1, ends[i])
      is_loss(told[i])
    end
  end

  it("ends_every_request_of_every_model_once_with_the_loss_whoever_hears_of_it_first", function()
    local a, b = load(), load()
    text(a)
    text(b)
    local requests = {}
    for _, m in ipairs {a, b} do
      for i = 1, 2 do
        requests[#requests + 1] = function()
          return m:complete {tokens = {1, 400 + i}, max_tokens = 90, temperature = 0, ignore_end = true}
        end
      end
      requests[#requests + 1] = function()
        while true do
          m:forward {tokens = {1, 403}}
        end
      end
    end
    for i = 1, 3 do
      driver.cuemu_fail("exec:weir_attention_merge", 8 + 5 * i, ILLEGAL_ADDRESS)
      end_together(requests)
    end
    assert.equal(right, text(a))
    assert.equal(right, text(b))
    a:close()
    b:close()
  end)

  it("is_no_matter_of_another_model_that_rests_on_the_device", function()
    local a, b = load(), load()
    text(a)
    text(b)
    driver.cuemu_fail("exec:weir_attention_merge", 3, ILLEGAL_ADDRESS)
    loses_and_recovers(a)
    assert.equal(right, text(b))
    assert.equal(right, text(a))
    a:close()
    b:close()
  end)

  it("in_a_load_is_noticed_and_the_next_load_is_right", function()
    for _, nth in ipairs {50, 73, 93, 139} do -- while kernels are looked up, streams opened and memory taken
      weir.shutdown()
      driver.cuemu_fail("device", nth, ILLEGAL_ADDRESS)
      local ok, m = pcall(load)
      driver.cuemu_fail_clear()
      assert(ok or m.code == "EDEVICE", ("lost at call %d: %s"):format(nth, tostring(m)))
      local again, e = pcall(function()
        m = ok and m or load()
        pcall(text, m) -- of a loss behind the load the first request may hear
        assert.equal(right, text(m))
      end)
      assert(again, ("lost at call %d: %s"):format(nth, tostring(e)))
    end
  end)

  it("leaves_results_that_are_with_the_host", function()
    local m = load()
    local logits = m:forward {tokens = {1, 403, 407}}.logits
    local before = ffi.string(logits.data, logits.bytes)
    driver.cuemu_fail("exec:weir_attention_merge", 3, ILLEGAL_ADDRESS)
    loses_and_recovers(m)
    assert.equal(before, ffi.string(logits.data, logits.bytes))
    assert.equal(before, ffi.string(m:forward {tokens = {1, 403, 407}}.logits.data, logits.bytes))
    m:close()
  end)

  it("that_comes_again_and_again_ends_the_model_and_another_load_is_right", function()
    local m = load()
    text(m)
    local said = {}
    for i = 1, 5 do
      driver.cuemu_fail("exec:weir_embed_f32", 1, ILLEGAL_ADDRESS)
      local ok, e = pcall(text, m)
      driver.cuemu_fail_clear()
      assert.is_false(ok)
      said[i] = tostring(e)
    end
    for i = 1, 4 do
      assert.matches("^EDEVICE", said[i])
    end
    assert.matches("^E%u+: ", said[5])
    assert.is_nil(said[5]:find("^EDEVICE"), said[5])
    m = load()
    assert.equal(right, text(m))
    m:close()
  end)
end)
