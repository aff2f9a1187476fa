-- Guard mode, interrupts and the watchdog: Lua code that does not pause.
local ffi = require "ffi"
local weir = require "weir"
local core = require "weir.core"
local helper = require "helper"

-- What any thread of a host calls; the only FFI call to C in these tests.
local function interrupter(which)
  local fn, state = core[which or "interrupter"]()
  fn = ffi.cast("int (*)(void *)", fn)
  return function() return fn(state) end
end

-- Seconds that a stretch may take: with room for a busy machine and a busy collector, as the rest of these tests is guarded too.
local LIMIT = os.getenv "WEIR_SPEC_MODE" == "gc" and 0.5 or 0.1

local function spin()
  while true do end
end

-- What an actor that spins dies of, and what weir.slow is told meanwhile.
local function killed(what)
  local told = {}
  weir.slow = function(...) told[#told + 1] = {...} end
  local a = weir.spawn_with({name = "spinner"}, function()
    weir.receive()
    what()
  end)
  local e = helper.raises("EEXITED", weir.call, a, "spin").cause
  return e, told, a
end

describe("guard", function()
  local uncaught, slow = weir.uncaught, weir.slow
  before_each(function()
    weir.shutdown()
    core.calm()
    weir.uncaught = function() end
  end)
  after_each(function()
    weir.guard(false)
    weir.uncaught, weir.slow = uncaught, slow
  end)

  it("ends_an_endless_loop_and_names_actor_verb_time_and_place", function()
    weir.guard {limit = LIMIT, kill = true}
    local e, told, a = killed(spin)
    assert.are.equal("EKILLED", e.code)
    assert.is_truthy(e.text:find('spinner) ran "spin" for 0.', 1, true))
    assert.is_truthy(e.traceback:find "guard_spec.lua:%d+")
    assert.are.equal(1, #told)
    assert.are.equal(a, told[1][1])
    assert.are.equal("spin", told[1][2])
    assert.is_true(told[1][3] >= LIMIT)
    assert.is_truthy(told[1][4]:find "guard_spec.lua:%d+")
  end)

  for name, what in pairs {
    pcall = function() while true do pcall(spin) end end,
    nested_pcalls = function() while true do pcall(pcall, pcall, spin) end end,
    xpcall_with_a_handler_that_spins = function() xpcall(spin, spin) end,
    gsub = function() while true do pcall(string.gsub, "a", "a", spin) end end,
    sort = function() while true do pcall(table.sort, {2, 1, 3}, spin) end end,
    a_coroutine = function() while true do pcall(coroutine.wrap(spin)) end end,
    a_coroutine_in_gsub = function() while true do pcall(string.gsub, "a", "a", function() pcall(coroutine.wrap(spin)) end) end end,
    a_metamethod = function() while true do pcall(function() return setmetatable({}, {__index = spin}).x end) end end,
    a_swallowed_end_and_a_wait = function() pcall(spin) weir.receive() end,
  } do
    it("is_not_held_up_by_" .. name, function()
      weir.guard {limit = LIMIT, kill = true}
      assert.are.equal("EKILLED", killed(what).code)
      assert.are.equal("works", weir.call(weir.spawn(function() weir.receive():reply "works" end), "x"))
    end)
  end

  it("only_tells_without_kill_and_once_a_stretch", function()
    weir.guard {limit = 0.005}
    local told, main = {}, 0
    weir.slow = function(address, ...)
      if address then
        told[#told + 1] = {...}
      else
        main = main + 1
      end
    end
    local function busy(seconds)
      local start = weir.now()
      while weir.now() - start < seconds do end
    end
    local a = weir.spawn(function()
      while true do
        local m = weir.receive()
        busy(m[1])
        m:reply "done"
      end
    end)
    assert.are.equal("done", weir.call(a, "long", 0.05))
    assert.are.equal(1, #told)
    assert.are.equal("done", weir.call(a, "longer", 0.05))
    assert.are.equal(2, #told)
    assert.are.equal("longer", told[2][1])
    weir.sleep(0)
    local before = main
    busy(0.05)
    assert.are.equal(before + 1, main)
  end)

  it("measures_stretches_and_not_the_time_between", function()
    weir.guard {limit = 3 * LIMIT, kill = true}
    local got = {}
    weir.spawn(function()
      for i = 1, 5 do
        weir.sleep(LIMIT)
        got[i] = i
      end
    end)
    weir.run()
    assert.are.equal(5, #got)
  end)

  it("an_error_in_weir_slow_harms_nobody", function()
    weir.guard {limit = LIMIT, kill = true}
    weir.slow = nil
    local a = weir.spawn(function() weir.receive() spin() end)
    weir.slow = function() error "in the report" end
    assert.are.equal("EKILLED", helper.raises("EEXITED", weir.call, a, "x").cause.code)
  end)

  it("ends_an_evaluation_of_a_main_chunk", function()
    weir.guard {limit = LIMIT, kill = true}
    weir.slow = function() end
    for _, what in ipairs {spin, function() while true do pcall(spin) end end, function() xpcall(spin, spin) end} do
      local ok, e = weir.guarded(what)
      assert.is_false(ok)
      assert.are.equal("EKILLED", e.code)
      assert.is_truthy(e.text:find("the main chunk ran for", 1, true))
    end
    assert.are.same({true, 1, 2}, {weir.guarded(function(...) return ... end, 1, 2)})
  end)

  it("guarded_is_as_pcall", function()
    local ok, e = weir.guarded(function() error "plain" end)
    assert.is_false(ok)
    assert.is_truthy(e.text:find "guard_spec.lua:%d+: plain" and e.traceback:find "stack traceback:")
    assert.is_truthy(select(2, weir.guarded(function() coroutine.yield(1) end)).text:find "coroutine.yield")
    local value = {}
    assert.are.equal(value, select(2, weir.guarded(error, value)).value)
    assert.are.equal(3, select("#", weir.guarded(function() return nil, nil end)))
    assert.are.same({true, 7}, {weir.guarded(function() return weir.call(weir.spawn(function() weir.receive():reply(7) end), "x") end)})
    assert.are.same({true, true, 5}, {weir.guarded(function() return weir.guarded(function() return 5 end) end)})
    local code
    weir.spawn(function() code = select(2, pcall(weir.guarded, print)).code end)
    weir.run()
    assert.are.equal("EBUSY", code)
  end)

  it("turns_the_compiler_off_and_on_again", function()
    local before = jit.status()
    weir.guard()
    assert.is_false(jit.status())
    weir.guard {limit = 5}
    weir.guard(false)
    assert.are.equal(before, jit.status())
  end)

  it("stops_loops_that_were_compiled_before", function()
    local function loop(n)
      local x = 0
      for i = 1, n do
        x = x + i % 3
      end
      return x
    end
    loop(1e6)
    weir.guard {limit = LIMIT, kill = true}
    weir.slow = function() end
    assert.are.equal("EKILLED", select(2, weir.guarded(loop, 1e15)).code)
  end)

  it("survives_a_script_that_takes_its_hook_away", function()
    weir.guard {limit = LIMIT, kill = true}
    weir.slow = function() end
    local a = weir.spawn(function()
      debug.sethook()
      weir.receive()
      spin()
    end)
    assert.are.equal("EKILLED", helper.raises("EEXITED", weir.call, a, "x").cause.code)
  end)

  it("says_what_it_takes", function()
    helper.raises("ETYPE", weir.guard, 5)
    helper.raises("EINVAL", weir.guard, {limits = 1})
    helper.raises("EINVAL", weir.guard, {limit = -1})
  end)

  it("loop_E23_an_interrupt_ends_the_evaluation_and_state_is_kept", function()
    weir.guard {limit = 0}
    local interrupt = interrupter()
    local kept = {}
    for i = 1, 3 do
      local ok, e = weir.guarded(function()
        kept[i] = i
        interrupt()
        interrupt()
        while true do pcall(spin) end
      end)
      assert.is_false(ok)
      assert.are.equal("ECANCELLED", e.code)
      assert.are.equal("interrupted", e.text)
    end
    assert.are.same({1, 2, 3}, kept)
    assert.is_true(core.calm())
    assert.is_false(core.calm())
  end)

  it("an_interrupt_breaks_off_a_wait_and_what_catches_that", function()
    weir.guard {limit = 0}
    local interrupt, others = interrupter(), 0
    weir.spawn(function()
      for _ = 1, 4 do
        weir.sleep(0.002)
        others = others + 1
      end
    end)
    weir.spawn(function()
      weir.sleep(0.001)
      interrupt()
    end)
    local ok, e = weir.guarded(function()
      while true do
        pcall(weir.sleep, 10)
      end
    end)
    assert.is_false(ok)
    assert.are.equal("interrupted", e.text)
    for _ = 1, 1000 do
      if others == 4 then
        break
      end
      weir.sleep(0.01)
    end
    assert.are.equal(4, others)
  end)

  it("without_guard_mode_a_script_may_catch_an_interrupt", function()
    local interrupt = interrupter()
    local ok, e = pcall(function()
      interrupt()
      weir.sleep(10)
    end)
    assert.is_false(ok)
    assert.are.equal("interrupted", e.text)
    ok, e = pcall(function()
      jit.off(true, true)
      interrupt()
      while true do end
    end)
    assert.is_false(ok)
    assert.are.equal("interrupted", e.text)
    weir.sleep(0.001)
    assert.is_true(core.calm())
  end)

  it("an_interrupt_ends_an_actor_that_does_not_end_its_turn", function()
    weir.guard {limit = 0}
    local interrupt = interrupter()
    local a = weir.spawn(function()
      weir.receive()
      interrupt()
      spin()
    end)
    weir.monitor(a)
    helper.raises("ECANCELLED", weir.call, a, "x")
    core.calm()
    assert.are.equal("ECANCELLED", weir.receive()[2].code)
  end)

  it("the_watchdog_names_actor_verb_and_time", function()
    weir.watchdog(0.01, true)
    local a = weir.spawn_with({name = "slowpoke"}, function()
      weir.receive()
      local start = weir.now()
      while weir.now() - start < 0.3 do end
    end)
    weir.send(a, "dawdle")
    weir.run()
    weir.watchdog(false)
    local reports = weir.slow_handlers()
    assert.are.equal(1, #reports)
    assert.are.equal("slowpoke", reports[1].name)
    assert.are.equal("dawdle", reports[1].verb)
    assert.are.equal(a, reports[1].address)
    assert.is_true(reports[1].elapsed >= 0.01)
    assert.are.same({}, weir.slow_handlers())
  end)
end)
