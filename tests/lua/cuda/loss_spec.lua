-- The device is lost, in the emulated driver: what runs ends once, with an error that says so; the device is made anew, the model loaded anew; the next request is
-- right.
local ffi = require "ffi"
local weir = require "weir"
local helper = require "helper"

ffi.cdef [[
void cuemu_fail(const char *what, int nth, int code);
void cuemu_fail_clear(void);
long cuemu_count(const char *what);
int cuemu_report_count(void);
const char *cuemu_report(int i);
void cuemu_reports_clear(void);
]]
local emulated = ffi.load "libcuda.so.1"

local ILLEGAL_ADDRESS, LAUNCH_FAILED = 700, 719
local path, right

local function load()
  return weir.load(path, {device = "cuda"})
end

local function text(m)
  return (m:complete {tokens = {1, 403, 407}, max_tokens = 6, temperature = 0})
end

local function reports()
  local lines = {}
  for i = 0, emulated.cuemu_report_count() - 1 do
    local line = ffi.string(emulated.cuemu_report(i))
    if not line:find "injected$" then -- the fault itself
      lines[#lines + 1] = line
    end
  end
  emulated.cuemu_reports_clear()
  return table.concat(lines, "\n")
end

-- The request fails, naming the device; the next one is right.
local function loses_and_recovers(m)
  local ok, e = pcall(text, m)
  emulated.cuemu_fail_clear()
  assert.is_false(ok)
  assert.is_true(weir.is_error(e), tostring(e))
  assert.matches("device", tostring(e), 1, true)
  assert.equal(right, text(m))
end

describe("cuda loss", function()
  setup(function()
    path = helper.temporary ".gguf"
    require "weir.core".llama2c_convert(helper.reference "models/stories260K/stories260K.bin", nil, path)
    local m = load()
    right = text(m)
    m:close()
  end)
  before_each(weir.shutdown)
  after_each(function()
    weir.shutdown()
    assert.equal("", reports())
  end)
  teardown(function()
    os.remove(path)
  end)

  for _, kernel in ipairs {"weir_embed_f32", "weir_attention_merge", "weir_draw"} do
    it(("in_%s_ends_the_pass_and_the_next_request_is_right"):format(kernel), function()
      local m = load()
      text(m)
      emulated.cuemu_fail("exec:" .. kernel, 3, ILLEGAL_ADDRESS)
      loses_and_recovers(m)
      m:close()
    end)
  end

  it("while_units_are_packed_fails_the_load_and_the_next_load_is_right", function()
    emulated.cuemu_fail("exec:weir_pack_f32", 9, LAUNCH_FAILED)
    local ok, e = pcall(load)
    emulated.cuemu_fail_clear()
    assert.is_false(ok)
    assert.matches("lost", tostring(e), 1, true)
    local m = load()
    assert.equal(right, text(m))
    m:close()
  end)

  it("at_any_call_of_a_request_is_told_or_not_felt_and_the_next_request_is_right", function()
    local m = load()
    local before = tonumber(emulated.cuemu_count "any")
    text(m)
    local calls = tonumber(emulated.cuemu_count "any") - before
    m:close()
    for i = 1, 12 do
      m = load()
      emulated.cuemu_fail("device", math.ceil(i * calls / 12), LAUNCH_FAILED)
      local ok, result = pcall(text, m)
      emulated.cuemu_fail_clear()
      if ok then
        assert.equal(right, result)
      else
        assert.matches("device", tostring(result), 1, true)
      end
      assert.equal(right, text(m))
      m:close()
    end
  end)

  it("ends_each_of_three_requests_once", function()
    local m = load()
    text(m)
    local ends, failed = {}, 0
    emulated.cuemu_fail("exec:weir_attention_merge", 40, ILLEGAL_ADDRESS)
    for i = 1, 3 do
      ends[i] = 0
      weir.spawn(function()
        local ok, e = pcall(m.complete, m, {tokens = {1, 400 + i}, max_tokens = 60, temperature = 0})
        ends[i] = ends[i] + 1
        if not ok then
          failed = failed + 1
          assert.matches("device", tostring(e), 1, true)
        end
      end)
    end
    for _ = 1, 3000 do
      if ends[1] > 0 and ends[2] > 0 and ends[3] > 0 then
        break
      end
      weir.sleep(0.01)
    end
    emulated.cuemu_fail_clear()
    assert.same({1, 1, 1}, ends)
    assert.equal(3, failed)
    assert.equal(right, text(m))
    m:close()
  end)

  it("is_no_matter_of_another_model_that_rests_on_the_device", function()
    local a, b = load(), load()
    text(a)
    text(b)
    emulated.cuemu_fail("exec:weir_attention_merge", 3, ILLEGAL_ADDRESS)
    loses_and_recovers(a)
    assert.equal(right, text(b))
    assert.equal(right, text(a))
    a:close()
    b:close()
  end)

  it("leaves_results_that_are_with_the_host", function()
    local m = load()
    local logits = m:forward {tokens = {1, 403, 407}}.logits
    local before = ffi.string(logits.data, logits.bytes)
    emulated.cuemu_fail("exec:weir_attention_merge", 3, ILLEGAL_ADDRESS)
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
      emulated.cuemu_fail("exec:weir_embed_f32", 1, ILLEGAL_ADDRESS)
      local ok, e = pcall(text, m)
      emulated.cuemu_fail_clear()
      assert.is_false(ok)
      said[i] = tostring(e)
    end
    assert.matches("EDEVICE", said[1], 1, true)
    assert.matches("exited", said[4], 1, true)
    m = load()
    assert.equal(right, text(m))
    m:close()
  end)
end)
