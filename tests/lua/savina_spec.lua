-- Savina's benchmarks with small parameters: each comes to its closed form with every message handled, in Lua on both drivers, and in C through the binding.
local helper = require "helper"
local savina = require "weir.savina"

local function right(kind, options)
  local r = savina.run(kind, options)
  assert.is_nil(r.failure)
  assert.are.equal(r.expected, r.value)
  assert.is_true(r.messages > 0)
end

describe("savina", function()
  for _, kind in ipairs(savina.kinds "lua") do
    it("savina_" .. kind.name .. "_in_lua", function()
      right(kind, {few = true})
    end)

    it("savina_" .. kind.name .. "_in_lua_under_the_test_driver", function()
      for seed = 1, 3 do
        right(kind, {few = true, seed = seed})
      end
    end)
  end

  for _, kind in ipairs(savina.kinds "c") do
    it("savina_" .. kind.name .. "_in_c", function()
      right(kind, {few = true})
    end)
  end

  it("tells_a_wrong_result", function()
    local kind = {name = "x", counts = "y", parameters = {}, start = function(run) run:add(1) end, expected = function() return 2 end}
    assert.are.equal("1, wanted 2", savina.run(kind, {}).failure)
  end)

  it("tells_an_actor_that_died", function()
    local weir = require "weir"
    local kind = {name = "x", counts = "y", parameters = {}, start = function() weir.spawn(error, "oh no") end, expected = function() return 0 end}
    assert.is_truthy(savina.run(kind, {}).failure:find("oh no", 1, true))
  end)

  it("bench_actors_runs_by_name_and_prints_results_and_rates", function()
    local code, out, err = helper.weir {"bench", "actors", "pingpong", "ring", "--small"}
    assert.are.equal("", err)
    assert.are.equal(0, code)
    assert.is_truthy(out:find "in C, main loop and 0 workers\npingpong +messages=100 +100 pongs")
    assert.is_truthy(out:find "in Lua, main loop\npingpong")
    assert.is_truthy(out:find "4 of 4 results are the expected ones")
    assert.is_nil(out:find "counting")
    assert.is_nil(out:find "eventfd")
  end)

  it("bench_actors_takes_one_language", function()
    local _, out = helper.weir {"bench", "actors", "ring", "--small", "--lang", "lua"}
    assert.is_nil(out:find "in C")
    assert.is_truthy(out:find "1 of 1 results")
  end)

  it("bench_actors_refuses_a_name_that_nobody_knows", function()
    local code, _, err = helper.weir {"bench", "actors", "pingpong", "nothing"}
    assert.are.equal(2, code)
    assert.is_truthy(err:find("no benchmark is called 'nothing'", 1, true))
  end)
end)
