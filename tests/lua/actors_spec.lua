-- Actors in Lua: spawning, messages, calls, waits, ends.
local weir = require "weir"
local helper = require "helper"

local function echo()
  while true do
    local m = weir.receive()
    m:reply(m:args())
  end
end

-- Collects what weir.uncaught is told meanwhile.
local function uncaught(fn)
  local before, seen = weir.uncaught, {}
  weir.uncaught = function(_, e)
    seen[#seen + 1] = e
  end
  local ok, e = pcall(fn)
  weir.uncaught = before
  if not ok then
    error(e, 0)
  end
  return seen
end

describe("actors", function()
  before_each(weir.shutdown)

  it("answers_a_call_from_the_main_chunk", function()
    assert.are.equal(3, weir.call(weir.spawn(echo), "x", 3))
  end)

  it("passes_arguments_to_the_function", function()
    local table_, got = {}, nil
    weir.spawn(function(...) got = {...} end, 1, nil, table_)
    weir.run()
    assert.are.equal(1, got[1])
    assert.are.equal(table_, got[3])
  end)

  it("keeps_the_order_of_messages", function()
    local seen = {}
    local a = weir.spawn(function()
      for _ = 1, 100 do
        seen[#seen + 1] = weir.receive()[1]
      end
    end)
    for i = 1, 100 do
      weir.send(a, "n", i)
    end
    weir.run()
    for i = 1, 100 do
      assert.are.equal(i, seen[i])
    end
  end)

  it("gives_equal_addresses_for_equal_numbers", function()
    local a = weir.spawn(echo)
    assert.are.equal(a, weir.address(a:id()))
    assert.are.equal(a, weir.address(weir.call(a, "x", a)))
    assert.is_truthy(tostring(a):match "^actor %d+ %(actors_spec.lua:%d+%)$")
    assert.are.equal("number", type(weir.call(a, "x", a)))
  end)

  it("names_actors", function()
    assert.is_truthy(tostring(weir.spawn_with({name = "bob"}, echo)):match "%(bob%)")
  end)

  it("spawns_a_module_by_name", function()
    package.preload["weir_spec_module"] = function()
      return function(to, value) weir.send(to, "here", value) end
    end
    weir.spawn("weir_spec_module", weir.self(), 7)
    local m = weir.receive()
    package.preload["weir_spec_module"] = nil
    assert.are.equal("here", m.verb)
    assert.are.equal(7, m[1])
  end)

  it("says_what_spawn_wants", function()
    helper.raises("ETYPE", weir.spawn, 5)
    assert.is_false((pcall(weir.spawn, "no_such_module_of_weir")))
  end)

  it("receives_in_the_main_chunk", function()
    local main = weir.self()
    weir.spawn(function() weir.send(main, "hello", "you") end)
    local m = weir.receive()
    assert.are.equal("hello", m.verb)
    assert.are.equal("you", m:args())
    assert.is_false(m:is_call())
  end)

  it("lets_the_main_chunk_answer_calls", function()
    local main, got = weir.self(), nil
    weir.spawn(function() got = weir.call(main, "ask", 1) end)
    weir.receive():reply(41)
    weir.run()
    assert.are.equal(41, got)
  end)

  it("returns_nil_when_receive_times_out", function()
    local start = weir.now()
    assert.is_nil(weir.receive(0.01))
    assert.is_true(weir.now() - start >= 0.01)
  end)

  it("takes_a_message_that_comes_before_the_timeout", function()
    local main = weir.self()
    weir.spawn(function() weir.sleep(0.005) weir.send(main, "a") weir.send(main, "b") end)
    assert.are.equal("a", weir.receive(10).verb)
    assert.are.equal("b", weir.receive(10).verb)
    assert.is_nil(weir.receive(0.001))
  end)

  it("sleeps_never_too_short", function()
    local start = weir.now()
    weir.sleep(0.02)
    assert.is_true(weir.now() - start >= 0.02)
  end)

  it("serves_others_while_one_sleeps", function()
    local order = {}
    weir.spawn(function() weir.sleep(0.02) order[#order + 1] = "late" end)
    weir.spawn(function() weir.sleep(0.001) order[#order + 1] = "early" end)
    weir.run()
    assert.are.same({"early", "late"}, order)
  end)

  it("handles_one_message_at_a_time_also_across_calls", function()
    local counter, slow = 0, weir.spawn(function()
      while true do
        local m = weir.receive()
        weir.sleep(0.001)
        m:reply()
      end
    end)
    local a = weir.spawn(function()
      for _ = 1, 5 do
        weir.receive()
        local before = counter
        weir.call(slow, "wait")
        counter = before + 1
      end
    end)
    for _ = 1, 5 do
      weir.send(a, "add")
    end
    weir.run()
    assert.are.equal(5, counter)
  end)

  it("answers_ENOREPLY_when_the_actor_goes_on", function()
    local a = weir.spawn(function() while true do weir.receive() end end)
    local e = helper.raises("ENOREPLY", weir.call, a, "x")
    assert.is_truthy(e.text:find "without a reply")
  end)

  it("answers_ENOREPLY_when_the_actor_ends", function()
    local a = weir.spawn(function() weir.receive() end)
    helper.raises("ENOREPLY", weir.call, a, "x")
  end)

  it("answers_a_deferred_call_later", function()
    local a = weir.spawn(function()
      local first = weir.receive():defer()
      local second = weir.receive()
      second:reply "second"
      first:reply "first"
    end)
    local got
    weir.spawn(function() got = weir.call(a, "x") end)
    weir.sleep(0.001)
    assert.are.equal("second", weir.call(a, "y"))
    weir.run()
    assert.are.equal("first", got)
  end)

  it("answers_a_deferred_call_with_EEXITED_when_the_actor_ends", function()
    local a = weir.spawn(function() weir.receive():defer() end)
    helper.raises("EEXITED", weir.call, a, "x")
  end)

  it("refuses_a_second_answer", function()
    local code
    local a = weir.spawn(function()
      local m = weir.receive()
      m:reply(1)
      code = select(2, pcall(m.reply, m, 2)).code
      weir.receive()
    end)
    assert.are.equal(1, weir.call(a, "x"))
    weir.run()
    assert.are.equal("EINVAL", code)
  end)

  it("refuses_an_answer_after_ENOREPLY", function()
    local code
    local a = weir.spawn(function()
      local m = weir.receive()
      weir.receive(0)
      code = select(2, pcall(m.reply, m, 2)).code
    end)
    helper.raises("ENOREPLY", weir.call, a, "x")
    weir.run()
    assert.are.equal("EINVAL", code)
  end)

  it("answers_with_an_error_object", function()
    local a = weir.spawn(function()
      while true do
        weir.receive():error(weir.error("EBUSY", "come back later", {cause = weir.error("EIO", "disk")}))
      end
    end)
    local e = helper.raises("EBUSY", weir.call, a, "x")
    assert.are.equal("come back later", e.text)
    assert.are.equal("EIO", e.cause.code)
    local value, again = weir.try_call(a, "x")
    assert.is_nil(value)
    assert.are.equal("EBUSY", again.code)
  end)

  it("ends_a_call_at_its_deadline_and_drops_the_late_reply", function()
    local a = weir.spawn(function()
      local m = weir.receive()
      weir.sleep(0.02)
      m:reply "late"
    end)
    helper.raises("ETIMEOUT", weir.call_with, {to = a, timeout = 0.002}, "x")
    weir.run()
    assert.are.equal(1, weir.stats().late_replies)
    assert.is_nil(weir.receive(0))
  end)

  it("names_a_cycle_of_calls", function()
    local a
    a = weir.spawn_with({name = "ouroboros"}, function() weir.call(a, "x") end)
    local seen = uncaught(weir.run)
    assert.are.equal("ECYCLE", seen[1].code)
    assert.is_truthy(seen[1].text:find "ouroboros")
  end)

  it("refuses_to_send_to_nobody", function()
    helper.raises("ENOACTOR", weir.send, 4242, "x")
    helper.raises("ENOACTOR", weir.call, 4242, "x")
    local unknown = helper.raises("ENOACTOR", weir.send, "nobody", "x")
    assert.are.equal('no actor is registered as "nobody"', unknown.text)
    helper.raises("ETYPE", weir.send, {}, "x")
    local ok, e = weir.try_send(4242, "x")
    assert.is_nil(ok)
    assert.are.equal("ENOACTOR", e.code)
  end)

  it("refuses_what_a_full_mailbox_cannot_take", function()
    local a = weir.spawn_with({messages = 2}, function() weir.sleep(1e6) end)
    weir.sleep(0.001)
    weir.send(a, "x")
    weir.send(a, "x")
    helper.raises("EFULL", weir.send, a, "x")
    helper.raises("EFULL", weir.call, a, "x")
  end)

  it("tells_callers_and_monitors_why_an_actor_died", function()
    local a = weir.spawn(function()
      weir.receive()
      error("boom")
    end)
    weir.monitor(a)
    local e = helper.raises("EEXITED", weir.call, a, "x")
    assert.are.equal("ELUA", e.cause.code)
    assert.is_truthy(e.cause.text:find "actors_spec.lua:%d+: boom")
    assert.is_truthy(e.cause.traceback:find "stack traceback:")
    local m = weir.receive()
    assert.are.equal("down", m.verb)
    assert.are.equal(a, m[1])
    assert.are.equal("ELUA", m[2].code)
  end)

  it("sends_down_without_an_error_after_an_orderly_end", function()
    local a = weir.spawn(function() end)
    weir.monitor(a)
    local who, why = weir.receive():args()
    assert.are.equal(a, who)
    assert.is_nil(why)
  end)

  it("sends_down_at_once_for_an_actor_that_is_gone", function()
    local a = weir.spawn(function() end)
    weir.run()
    weir.monitor(a)
    assert.are.equal("ENOACTOR", weir.receive()[2].code)
  end)

  it("takes_a_monitor_back", function()
    local a = weir.spawn(function() weir.receive() end)
    weir.monitor(a)
    weir.demonitor(a)
    weir.kill(a)
    assert.is_nil(weir.receive(0.001))
  end)

  it("stops_an_actor_behind_what_was_sent_before", function()
    local seen = 0
    local a = weir.spawn(function()
      while true do
        weir.receive()
        seen = seen + 1
      end
    end)
    weir.send(a, "x")
    weir.send(a, "x")
    assert.is_true(weir.stop(a))
    weir.run()
    assert.are.equal(2, seen)
    assert.is_false(weir.stop(a))
  end)

  it("ends_itself_with_exit", function()
    local after = false
    local a = weir.spawn(function()
      weir.receive():reply "bye"
      pcall(weir.exit)
      after = true
    end)
    assert.are.equal("bye", weir.call(a, "x"))
    weir.run()
    assert.is_false(after)
    assert.is_false(weir.kill(a))
  end)

  it("exits_with_an_error", function()
    local a = weir.spawn(function()
      weir.receive()
      weir.exit(weir.error("EIO", "no disk"))
    end)
    assert.are.equal("EIO", helper.raises("EEXITED", weir.call, a, "x").cause.code)
  end)

  it("goes_no_further_after_killing_itself", function()
    local after = false
    local a = weir.spawn(function()
      weir.kill(weir.self())
      after = true
    end)
    weir.run()
    assert.is_false(after)
    assert.is_false(weir.kill(a))
  end)

  it("ends_at_its_next_receive_after_stopping_itself", function()
    local before, after = false, false
    weir.spawn(function()
      weir.stop(weir.self())
      before = true
      weir.receive()
      after = true
    end)
    weir.run()
    assert.is_true(before)
    assert.is_false(after)
  end)

  it("refuses_exit_in_a_main_chunk", function()
    helper.raises("EINVAL", weir.exit)
  end)

  it("lists_actors_and_counts", function()
    local a = weir.spawn_with({name = "counted"}, echo)
    weir.call(a, "x")
    assert.are.equal("counted", weir.stats(a).name)
    assert.is_true(weir.stats(a).handled >= 1)
    local found = false
    for _, row in ipairs(weir.actors()) do
      found = found or row.address == a
    end
    assert.is_true(found)
    helper.raises("ENOACTOR", weir.stats, 4242)
  end)

  it("traces_messages", function()
    local a = weir.spawn(echo)
    local counts = weir.trace(function()
      for _ = 1, 3 do
        weir.call(a, "count me")
      end
    end)
    local calls = 0
    for _, row in ipairs(counts) do
      if row.kind == "call" and row.verb == "count me" and row.to == a then
        calls = row.count
      end
    end
    assert.are.equal(3, calls)
  end)

  it("quits_a_run", function()
    weir.spawn(function()
      weir.quit()
      weir.sleep(1e6)
    end)
    weir.run()
  end)

  it("refuses_a_pump_inside_a_pump", function()
    local code
    weir.spawn(function() code = select(2, pcall(weir.run)).code end)
    weir.run()
    assert.are.equal("EBUSY", code)
  end)

  it("refuses_shutdown_inside_the_loop", function()
    local code
    weir.spawn(function() code = select(2, pcall(weir.shutdown)).code end)
    weir.run()
    assert.are.equal("EBUSY", code)
  end)

  it("makes_a_system_with_options_only_before_the_first_use", function()
    weir.system {driver = "test", seed = 7}
    helper.raises("EBUSY", weir.system, {driver = "ev"})
    weir.shutdown()
    helper.raises("EINVAL", weir.system, {driver = "steam"})
  end)

  it("replays_a_seeded_run_exactly", function()
    local function run(seed)
      weir.shutdown()
      weir.system {driver = "test", seed = seed}
      local order = {}
      for i = 1, 8 do
        weir.spawn(function()
          for _ = 1, 3 do
            order[#order + 1] = i
            weir.sleep(i)
          end
        end)
      end
      weir.run()
      return table.concat(order, ",")
    end
    assert.are.equal(run(1), run(1))
    assert.are_not.equal(run(1), run(2))
  end)

  it("conserves_messages", function()
    weir.system {driver = "test", seed = 3}
    local actors = {}
    for i = 1, 10 do
      actors[i] = weir.spawn(function()
        while true do
          local m = weir.receive()
          if m[1] > 0 then
            weir.try_send(actors[1 + (i + m[1]) % 10], "hop", m[1] - 1)
          elseif i % 3 == 0 then
            weir.exit()
          end
        end
      end)
    end
    for i = 1, 10 do
      weir.send(actors[i], "hop", 20 + i)
    end
    weir.run()
    local s = weir.stats()
    assert.are.equal(s.sent, s.handled + s.dead + s.queued)
    assert.are.equal(s.calls, s.calls_ended)
  end)

  it("gives_everything_back_after_many_actors", function()
    weir.sleep(0)
    for _ = 1, 100 do
      weir.spawn(function() end)
    end
    weir.run()
    local before = weir.stats()
    for _ = 1, 1000 do
      weir.spawn(function(n) weir.sleep(n) end, 0)
    end
    weir.run()
    assert.are.equal(before.actors, weir.stats().actors)
    local a = weir.spawn(function() end)
    weir.run()
    assert.is_false(weir.kill(a))
  end)
end)
