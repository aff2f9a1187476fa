-- Models whose actors die: what Lua sees of it, and that the next request is right.
local weir = require "weir"
local helper = require "helper"

local path = debug.getinfo(1, "S").source:match("^@(.*)lua/restart_spec%.lua$") .. "data/families/llama/model.gguf"
local request = {tokens = {1, 20, 30, 40, 50}, max_tokens = 12, ignore_end = true}

local function long()
  return {tokens = request.tokens, max_tokens = 200, ignore_end = true}
end

local function last_logits(model)
  local row, values = model:forward({tokens = request.tokens}).logits:row(#request.tokens - 1), {}
  for v = 0, model.info.vocab - 1 do
    values[v] = row:get(v)
  end
  return values
end

describe("restart", function()
  before_each(weir.shutdown)
  teardown(weir.shutdown)

  it("a_generation_whose_stepper_is_killed_says_so_and_the_next_is_right", function()
    local model = weir.load(path)
    local right = model:complete(request)
    local it = model:generate(long())
    assert.is_string(it())
    weir.kill(model.stepper)
    local e
    repeat
      local ok, piece = pcall(it)
      e = not ok and piece
    until e or not piece
    assert.is_true(e.code == "EEXITED" or e.code == "EKILLED", tostring(e))
    assert.is_truthy(tostring(e):find("stepper", 1, true))
    assert.are.equal(right, model:complete(request))
  end)

  for _, name in ipairs {"generator", "stepper", "policy", "experts", "residency"} do
    it("the_model_object_finds_its_actors_after_the_death_of_" .. name, function()
      local model = weir.load(path)
      local right = model:complete(request)
      local logits = last_logits(model)
      weir.kill(model.info[name])
      assert.are.equal(right, model:complete(request))
      weir.kill(model.info[name])
      assert.are.same(logits, last_logits(model))
    end)
  end

  it("an_old_iterator_never_reads_another_request", function()
    local model = weir.load(path)
    local it = model:generate(long())
    assert.is_string(it())
    weir.kill(model.generator)
    local other = model:generate(long()) -- has the same number at the new generator
    assert.are.equal(it.id, other.id)
    local e = helper.raises("EEXITED", it)
    assert.are.equal("generator", e.actor)
    assert.is_string(other())
    it:close()
    assert.is_string(other())
    other:close()
  end)

  it("a_model_that_gave_up_says_so", function()
    local model = weir.load(path)
    for _ = 1, 3 do
      weir.kill(model.stepper)
      model:forward {tokens = {1}}
    end
    weir.kill(model.stepper)
    local ok, e = pcall(model.forward, model, {tokens = {1}})
    assert.is_false(ok)
    assert.is_truthy(tostring(e):find("model", 1, true) or e.code == "ENOACTOR", tostring(e))
    ok, e = pcall(model.complete, model, request)
    assert.is_false(ok)
    assert.is_table(e)
  end)

  it("streams_show_their_state", function()
    local model = weir.load(path)
    model:complete(request)
    for _, stream in ipairs(weir.streams()) do
      assert.are.equal("open", stream.state)
    end
  end)
end)
