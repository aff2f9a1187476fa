-- Calls that are begun now and waited for later.
local weir = require "weir"
local helper = require "helper"

local function echo()
  while true do
    local m = weir.receive()
    m:reply(m:args())
  end
end

-- An actor that answers when it is told to: calls wait in `waiting`.
local function hoard()
  local waiting = {}
  local a = weir.spawn(function()
    while true do
      local m = weir.receive()
      if m:is_call() then
        waiting[#waiting + 1] = m:defer()
      else
        local due = table.remove(waiting, m[1])
        if m.verb == "fail" then
          due:error(weir.error("EIO", "disk " .. tostring(m[2])))
        else
          due:reply(unpack({m:args()}, 2))
        end
      end
    end
  end)
  return a, waiting
end

local function in_actor(fn)
  local result
  weir.spawn(function() result = {pcall(fn)} end)
  weir.run()
  assert(result, "the actor did not end")
  if not result[1] then
    error(result[2], 0)
  end
  return unpack(result, 2)
end

-- Everything twice: from the main chunk, and in an actor.
local function everywhere(name, fn)
  it(name .. "_in_a_main_chunk", fn)
  it(name .. "_in_an_actor", function() in_actor(fn) end)
end

describe("await", function()
  local uncaught = weir.uncaught
  before_each(function()
    weir.shutdown()
    weir.uncaught = function() end
  end)
  after_each(function() weir.uncaught = uncaught end)

  everywhere("gives_the_values_of_the_reply", function()
    local p = weir.start(weir.spawn(echo), "x", 1, nil, 3)
    assert.is_false(p:ended())
    assert.are.same({1, nil, 3}, {weir.await(p)})
    assert.are.equal(3, select("#", weir.await(p)))
    assert.is_true(p:ended())
    assert.are.equal("pending call: answered", tostring(p))
  end)

  everywhere("raises_the_error_of_the_call_also_when_asked_again", function()
    local a = weir.spawn(function() weir.receive():error(weir.error("EIO", "disk")) end)
    local p = weir.start(a, "x")
    assert.are.equal("disk", helper.raises("EIO", weir.await, p).text)
    assert.are.equal("disk", helper.raises("EIO", weir.await, p).text)
    local value, e = weir.try_await(p)
    assert.is_nil(value)
    assert.are.equal("EIO", e.code)
    assert.are.equal("pending call: failed", tostring(p))
  end)

  everywhere("calls_overlap", function()
    local order = {}
    local function sleeper(seconds)
      return weir.spawn(function()
        local m = weir.receive()
        weir.sleep(seconds)
        order[#order + 1] = m[1]
        m:reply(m[1] * 10)
      end)
    end
    local p, q = weir.start(sleeper(0.02), "x", 1), weir.start(sleeper(0.001), "x", 2)
    local results = weir.await_all {p, q}
    assert.are.same({2, 1}, order)
    assert.are.same({{n = 1, 10}, {n = 1, 20}}, results)
  end)

  everywhere("await_all_of_nothing_is_nothing", function()
    assert.are.same({}, weir.await_all {})
  end)

  everywhere("await_all_raises_the_first_error_of_the_list_after_all_have_ended", function()
    local a = hoard()
    local p, q, r = weir.start(a, "p"), weir.start(a, "q"), weir.start(a, "r")
    weir.spawn(function()
      weir.send(a, "fail", 3, "r")
      weir.send(a, "fail", 2, "q")
      weir.sleep(0.002)
      weir.send(a, "answer", 1, "p")
    end)
    assert.are.equal("disk q", helper.raises("EIO", weir.await_all, {p, q, r}).text)
    assert.are.equal("p", weir.await(p))
    assert.is_true(r:ended())
  end)

  everywhere("await_any_gives_the_place_and_the_values_of_the_first_to_end", function()
    local a = hoard()
    local list = {weir.start(a, "p"), weir.start(a, "q"), weir.start(a, "r")}
    weir.send(a, "answer", 2, "q", 7)
    assert.are.same({2, "q", 7}, {weir.await_any(list)})
    assert.is_false(list[1]:ended())
    weir.send(a, "answer", 2, "r")
    weir.await(list[3])
    assert.are.equal(2, (weir.await_any(list)))
    table.remove(list, 2)
    assert.are.same({2, "r"}, {weir.await_any(list)})
  end)

  everywhere("await_any_raises_the_error_of_the_first_to_end_with_its_place", function()
    local a = hoard()
    local list = {weir.start(a, "p"), weir.start(a, "q")}
    weir.send(a, "fail", 2, "q")
    assert.are.equal(2, helper.raises("EIO", weir.await_any, list).index)
    helper.raises("EINVAL", weir.await_any, {})
  end)

  everywhere("a_timeout_leaves_the_calls_under_way", function()
    local a = hoard()
    local p = weir.start(a, "p")
    helper.raises("ETIMEOUT", weir.await, p, 0.001)
    helper.raises("ETIMEOUT", weir.await_all, {p}, 0.001)
    helper.raises("ETIMEOUT", weir.await_any, {p}, 0)
    assert.are.equal("ETIMEOUT", select(2, weir.try_await(p, 0.001)).code)
    weir.send(a, "answer", 1, "late but there")
    assert.are.equal("late but there", weir.await(p, 5))
  end)

  everywhere("a_call_ends_at_its_own_deadline", function()
    local a = hoard()
    local p = weir.start_with({to = a, timeout = 0.002}, "p")
    helper.raises("ETIMEOUT", weir.await, p)
    helper.raises("ENOACTOR", weir.await, weir.start(4242, "x"))
  end)

  everywhere("the_same_call_twice_in_a_list", function()
    local p = weir.start(weir.spawn(echo), "x", 5)
    assert.are.same({{n = 1, 5}, {n = 1, 5}}, weir.await_all {p, p})
    assert.are.same({1, 5}, {weir.await_any {p, p}})
  end)

  everywhere("a_cancelled_call_has_ended_and_its_answer_is_late", function()
    local a, waiting = hoard()
    local p = weir.start(a, "p")
    weir.sleep(0.001)
    assert.are.equal(1, #waiting)
    assert.is_true(p:cancel())
    assert.is_false(p:cancel())
    helper.raises("ECANCELLED", weir.await, p)
    local late = weir.stats().late_replies
    weir.send(a, "answer", 1, "too late")
    weir.sleep(0.001)
    assert.are.equal(late + 1, weir.stats().late_replies)
  end)

  everywhere("one_cancelled_while_waited_for_wakes_its_waiter", function()
    local a = hoard()
    local p = weir.start(a, "p")
    weir.spawn(function()
      weir.sleep(0.001)
      p:cancel()
    end)
    helper.raises("ECANCELLED", weir.await, p)
    local list = {weir.start(a, "p"), weir.start(a, "q")}
    weir.spawn(function()
      weir.sleep(0.001)
      list[1]:cancel()
      weir.sleep(0.001)
      weir.send(a, "answer", 3, "q")
    end)
    helper.raises("ECANCELLED", weir.await_all, list, 5)
    assert.are.equal("q", weir.await(list[2]))
  end)

  it("actors_A39_a_second_waiter_is_told_that_it_is_busy", function()
    local a, shared, codes = hoard(), nil, {}
    weir.spawn(function()
      shared = weir.start(a, "p")
      codes.value = weir.await(shared)
    end)
    weir.sleep(0.001)
    weir.spawn(function()
      for _, wait in ipairs {function() weir.await(shared) end, function() weir.await_any {shared} end, function() weir.await_all {shared} end} do
        local ok, e = pcall(coroutine.wrap(wait))
        codes[#codes + 1] = not ok and e.code .. ": " .. e.text:match "^%a+"
      end
      weir.send(a, "answer", 1, "for one")
    end)
    weir.run()
    assert.are.same({"EBUSY: busy", "EBUSY: busy", "EBUSY: busy", value = "for one"}, codes)
    helper.raises("EBUSY", function()
      local mine = weir.start(a, "q")
      weir.spawn(function()
        local ok, e = pcall(weir.await, mine)
        weir.send(a, "answer", 1)
        codes.main = not ok and e
      end)
      weir.await(mine)
      error(codes.main, 0)
    end)
  end)

  it("actors_A39_two_coroutines_of_one_actor_take_their_turns", function()
    local got = {}
    local peer = weir.spawn(echo)
    in_actor(function()
      local p = weir.start(peer, "x", "once")
      local first = coroutine.create(function() got[1] = weir.await(p) end)
      local second = coroutine.create(function() got[2] = weir.await(p) end)
      coroutine.resume(first)
      coroutine.resume(second)
    end)
    assert.are.same({"once", "once"}, got)
  end)

  it("only_the_actor_that_began_a_call_waits_for_it", function()
    local a, code = hoard(), nil
    local mine = weir.start(a, "p")
    weir.spawn(function()
      code = select(2, pcall(weir.await, mine)).code
      weir.send(a, "answer", 1, "x")
    end)
    weir.sleep(0.002)
    assert.are.equal("EINVAL", code)
    assert.are.equal("x", weir.await(mine))
    -- What has ended can be read by anybody.
    assert.are.equal("x", in_actor(function() return weir.await(mine) end))
  end)

  it("a_dropped_call_is_cancelled_when_it_is_collected", function()
    local a = hoard()
    in_actor(function()
      for _ = 1, 20 do
        weir.start(a, "p")
      end
      weir.sleep(0.001)
      collectgarbage()
      collectgarbage()
      assert.are.equal(0, weir.stats(weir.self()).calls_open)
    end)
    local s = weir.stats()
    assert.are.equal(s.calls, s.calls_ended)
  end)

  it("the_end_of_its_actor_cancels_a_call", function()
    local a, kept = hoard(), {}
    local open = function() return weir.stats().calls - weir.stats().calls_ended end
    local b = weir.spawn(function()
      kept[1] = weir.start(a, "p")
      kept[2] = weir.start(a, "q")
      weir.await_all(kept)
    end)
    weir.sleep(0.001)
    assert.are.equal(2, open())
    weir.kill(b)
    assert.are.equal(0, open())
    weir.send(a, "answer", 1)
    weir.send(a, "answer", 1)
    weir.run()
    helper.raises("EINVAL", weir.await, kept[1])
    kept = nil
    collectgarbage()
  end)

  it("goes_with_its_system", function()
    local p = weir.start(hoard(), "p")
    weir.shutdown()
    helper.raises("ESTOPPING", weir.await, p)
    assert.is_true(p:ended())
    assert.is_false(p:cancel())
    collectgarbage()
  end)

  it("an_actor_that_awaits_is_serial", function()
    local log, a = {}, hoard()
    local b = weir.spawn(function()
      local p = weir.start(a, "p")
      weir.receive()
      weir.await(p)
      log[#log + 1] = "awaited"
      log[#log + 1] = weir.receive().verb
    end)
    weir.send(b, "go")
    weir.send(b, "mail")
    weir.sleep(0.001)
    assert.are.same({}, log)
    weir.send(a, "answer", 1)
    weir.run()
    assert.are.same({"awaited", "mail"}, log)
  end)

  it("an_actor_receives_while_its_calls_are_under_way", function()
    local log, a = {}, hoard()
    local b = weir.spawn(function()
      local p = weir.start(a, "p")
      log[#log + 1] = weir.receive().verb
      log[#log + 1] = weir.await(p)
    end)
    weir.send(b, "mail")
    weir.sleep(0.001)
    assert.are.same({"mail"}, log)
    weir.send(a, "answer", 1, "reply")
    weir.run()
    assert.are.same({"mail", "reply"}, log)
  end)

  it("names_a_cycle_that_closes_while_awaiting", function()
    local b, caught
    local a = weir.spawn_with({name = "snake"}, function()
      weir.receive()
      local p = weir.start(b, "x")
      caught = select(2, pcall(weir.await, p))
    end)
    b = weir.spawn_with({name = "tail"}, function()
      weir.receive()
      weir.call(a, "y")
    end)
    weir.send(a, "go")
    weir.run()
    assert.is_true(weir.is_error(caught))
  end)

  it("says_what_cannot_be_awaited", function()
    helper.raises("ETYPE", weir.await, 5)
    helper.raises("ETYPE", weir.await_all, {io.stdout})
    helper.raises("ETYPE", weir.await_all, 5)
    local e = helper.raises("ETYPE", weir.start, weir.self(), "x", print)
    assert.is_truthy(e.text:find("argument 1: a function", 1, true))
    assert.are.equal("EYIELD", in_actor(function()
      local p, code = weir.start(weir.spawn(echo), "x"), nil
      string.gsub("a", "a", function() code = select(2, pcall(weir.await, p)).code end)
      weir.await(p)
      return code
    end))
  end)

  it("conserves_calls_in_a_thousand_random_turns", function()
    weir.system {driver = "test", seed = 11}
    local a, waiting = hoard()
    for k = 1, 40 do
      weir.spawn(function()
        local list = {}
        for i = 1, 5 do
          list[i] = weir.start_with({to = a, timeout = k % 3 == 0 and 0.5 or false}, "x", k, i)
        end
        list[1 + k % 5]:cancel()
        pcall(weir.await_any, list, 1)
        if k % 4 == 0 then
          weir.exit()
        end
        pcall(weir.await_all, list, 2)
      end)
    end
    weir.spawn(function()
      for i = 1, 150 do
        weir.sleep(0.01)
        if #waiting > 0 then
          weir.send(a, i % 7 == 0 and "fail" or "answer", 1, i)
        end
      end
    end)
    weir.run()
    collectgarbage()
    local s = weir.stats()
    assert.are.equal(s.sent, s.handled + s.dead + s.queued)
    assert.are.equal(s.calls, s.calls_ended)
  end)
end)
