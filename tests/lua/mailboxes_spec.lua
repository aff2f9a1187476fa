-- Full mailboxes by their policy, links, dead letters: what Lua sees of them.
local helper = require "helper"
local weir = require "weir"

local report = weir.uncaught

describe("a full mailbox", function()
  before_each(function()
    weir.system {driver = "test", seed = 1} -- a virtual clock: 30 s pass at once
    weir.uncaught = function() end
  end)

  after_each(function()
    weir.shutdown()
    weir.uncaught = report
  end)

  -- Sleeps, then takes all messages; a call is answered with its argument.
  local function receiver(options, pause, got)
    return weir.spawn_with(options, function()
      weir.sleep(pause)
      while true do
        local m = weir.receive()
        got[#got + 1] = m[1]
        m:reply(m[1])
      end
    end)
  end

  local function count(n)
    local t = {}
    for i = 1, n do
      t[i] = i
    end
    return t
  end

  it("makes_a_sender_wait_by_the_policy_await", function()
    local got, done = {}, false
    local a = receiver({messages = 4, full = "await"}, 5, got)
    weir.spawn(function()
      for i = 1, 50 do
        assert.is_true(weir.send(a, "item", i))
      end
      done = true
    end)
    weir.sleep(4)
    assert.is_false(done)
    weir.sleep(2)
    assert.is_true(done)
    assert.are.same(count(50), got)
  end)

  it("makes_a_main_chunk_pump_by_the_policy_await", function()
    local got = {}
    local a = receiver({messages = 4, full = "await"}, 5, got)
    weir.sleep(0)
    for i = 1, 20 do
      weir.send(a, "item", i)
    end
    weir.sleep(1)
    assert.are.same(count(20), got)
  end)

  it("makes_every_waiting_sender_come_through", function()
    local got, left = {}, 20
    local a = receiver({messages = 2, full = "await"}, 5, got)
    for i = 1, 20 do
      weir.spawn(function()
        weir.send(a, "item", i)
        left = left - 1
      end)
    end
    weir.sleep(10)
    assert.are.equal(0, left)
    table.sort(got)
    assert.are.same(count(20), got)
  end)

  it("makes_calls_wait_by_the_policy_await", function()
    local got, answers = {}, {}
    local a = receiver({messages = 2, full = "await"}, 5, got)
    for i = 1, 12 do
      weir.spawn(function()
        local answer = weir.call(a, "item", i)
        answers[#answers + 1] = answer
      end)
    end
    weir.sleep(4)
    assert.are.same({}, answers)
    weir.sleep(4)
    table.sort(answers)
    assert.are.same(count(12), answers)
  end)

  it("ends_a_wait_at_its_deadline", function()
    local a = receiver({messages = 1, full = "await"}, 1e6, {})
    weir.sleep(0)
    weir.send(a, "first")
    local begin = weir.now()
    local e = helper.raises("ETIMEOUT", weir.send, a, "second")
    assert.is_truthy(e.text:find("second to actor", 1, true))
    assert.are.equal(30, math.floor(weir.now() - begin + 0.5))
    begin = weir.now()
    helper.raises("ETIMEOUT", weir.call_with, {to = a, timeout = 2}, "third")
    assert.are.equal(2, math.floor(weir.now() - begin + 0.5))
    assert.are.equal(1, weir.stats(a).queued)
  end)

  it("is_told_at_once_to_those_who_try", function()
    local a = receiver({messages = 1, full = "await"}, 1e6, {})
    weir.sleep(0)
    assert.is_true(weir.try_send(a, "first"))
    local ok, e = weir.try_send(a, "second")
    assert.is_nil(ok)
    assert.are.equal("EFULL", e.code)
  end)

  it("ends_a_wait_with_its_actor", function()
    local a = receiver({messages = 1, full = "await"}, 1e6, {})
    local ended = {}
    for i = 1, 3 do
      weir.spawn(function()
        local ok, e = pcall(weir.send, a, "item", i)
        ended[#ended + 1] = ok or e.code
        ok, e = pcall(weir.call, a, "item", i)
        ended[#ended + 1] = ok or e.code
      end)
    end
    weir.sleep(0.1)
    weir.kill(a)
    weir.sleep(0.1)
    table.sort(ended, function(x, y) return tostring(x) < tostring(y) end)
    assert.are.same({"ENOACTOR", "ENOACTOR", "ENOACTOR", "ENOACTOR", "ENOACTOR"}, {unpack(ended, 1, 5)})
  end)

  it("leaves_nothing_of_a_waiting_sender_that_is_killed", function()
    local got = {}
    local a = receiver({messages = 1, full = "await"}, 5, got)
    local senders = {}
    for i = 1, 3 do
      senders[i] = weir.spawn(function()
        weir.send(a, "item", i)
        weir.send(a, "item", i)
      end)
    end
    weir.sleep(1)
    for _, sender in ipairs(senders) do
      weir.kill(sender)
    end
    weir.sleep(10)
    assert.are.equal(1, #got)
    assert.are.equal(0, weir.stats().timers)
  end)

  it("cannot_be_waited_for_where_nothing_can_wait", function()
    local a = receiver({messages = 1, full = "await"}, 1e6, {})
    local code
    weir.spawn(function()
      weir.send(a, "first")
      local ok, e = pcall(string.gsub, "x", "x", function()
        weir.send(a, "second")
      end)
      code = not ok and e.code
    end)
    weir.sleep(0.1)
    assert.are.equal("EYIELD", code)
    assert.are.equal(1, weir.stats(a).queued)
  end)

  it("drops_the_oldest_or_the_newest_by_these_policies", function()
    for policy, wanted in pairs {["drop-oldest"] = {4, 5, 6}, ["drop-newest"] = {1, 2, 3}} do
      local got = {}
      local a = receiver({messages = 3, full = policy}, 1, got)
      weir.sleep(0)
      local before = weir.stats().dead
      for i = 1, 6 do
        assert.is_true(weir.send(a, "item", i))
      end
      weir.sleep(2)
      assert.are.same(wanted, got)
      assert.are.equal(3, weir.stats().dead - before)
    end
  end)

  it("refuses_without_a_policy_and_names_wrong_ones", function()
    local a = receiver({messages = 1}, 1, {})
    weir.sleep(0)
    weir.send(a, "first")
    helper.raises("EFULL", weir.send, a, "second")
    local e = helper.raises("EINVAL", weir.spawn_with, {full = "burst"}, function() end)
    assert.is_truthy(e.text:find('"burst"', 1, true))
  end)
end)

describe("a new actor", function()
  after_each(function()
    weir.shutdown()
  end)

  it("starts_however_full_its_mailbox_is", function()
    for _, policy in ipairs {"refuse", "drop-oldest", "drop-newest", "await"} do
      local got = {}
      local a = weir.spawn_with({messages = 1, full = policy}, function(...)
        got = {...}
        got[#got + 1] = weir.receive()[1]
      end, "start", policy)
      assert.is_true(weir.send(a, "item", 1))
      if policy:find "drop" then
        weir.send(a, "item", 2)
      end
      weir.sleep(0.01)
      assert.are.same({"start", policy, policy == "drop-oldest" and 2 or 1}, got)
    end
  end)
end)

describe("links", function()
  after_each(function()
    weir.shutdown()
    weir.uncaught = report
  end)

  local function linked()
    local partner
    local a = weir.spawn(function()
      partner = weir.spawn(weir.receive)
      weir.link(partner)
      local m = weir.receive()
      if m.verb == "unlink" then
        weir.unlink(partner)
        weir.receive()
      elseif m.verb == "fail" then
        error("broken", 0)
      end
    end)
    weir.sleep(0)
    weir.monitor(partner)
    return a, partner
  end

  it("end_the_other_with_the_error_as_the_cause", function()
    weir.uncaught = function() end
    local a = linked()
    weir.send(a, "fail")
    local why = weir.receive(1)[2]
    assert.are.equal("EEXITED", why.code)
    local texts = tostring(why)
    assert.is_truthy(texts:find("broken", 1, true), texts)
  end)

  it("break_by_an_orderly_end_or_by_unlink", function()
    local a = linked()
    weir.send(a, "end")
    assert.is_nil(weir.receive(0.01))
    a = linked()
    weir.send(a, "unlink")
    weir.sleep(0)
    weir.kill(a)
    assert.is_nil(weir.receive(0.01))
  end)

  it("are_made_by_name_and_not_with_oneself_or_nobody", function()
    weir.uncaught = function() end
    local codes = {}
    local partner = weir.spawn(weir.receive)
    weir.register("partner", partner)
    local a = weir.spawn(function()
      for i, what in ipairs {weir.self(), "nobody"} do
        local ok, e = pcall(weir.link, what)
        codes[i] = not ok and e.code
      end
      weir.link("partner")
      weir.receive()
    end)
    weir.sleep(0)
    assert.are.same({"EINVAL", "ENOACTOR"}, codes)
    weir.monitor(a)
    weir.kill("partner")
    assert.are.equal("down", weir.receive(1).verb)
  end)
end)

describe("dead letters", function()
  after_each(function()
    weir.shutdown()
  end)

  it("are_kept_with_their_reason_and_arguments", function()
    local a = weir.spawn(function()
      weir.sleep(1e6)
    end)
    weir.sleep(0)
    weir.send(a, "small", 1, "two", weir.null, {3})
    weir.send(a, "large", ("x"):rep(5000))
    weir.send(a, "bare")
    weir.kill(a)
    local letters = weir.dead_letters()
    local n = #letters
    local small, large, bare = letters[n - 2], letters[n - 1], letters[n]
    assert.are.equal("small", small.verb)
    assert.are.equal(a, small.to)
    assert.are.equal(weir.self(), small.from)
    assert.are.equal("EKILLED", small.why)
    assert.are.same({1, "two", weir.null, {3}}, small.args)
    assert.are.equal("large", large.verb)
    assert.is_true(large.bytes > 5000)
    assert.is_nil(large.args)
    assert.are.same({}, bare.args)
    assert.is_true(small.at <= bare.at and bare.at <= weir.now())
  end)

  it("are_the_last_256", function()
    local a = weir.spawn(function()
      weir.sleep(1e6)
    end)
    weir.sleep(0)
    for i = 1, 300 do
      weir.send(a, "item", i)
    end
    weir.kill(a)
    local letters = weir.dead_letters()
    assert.are.equal(256, #letters)
    assert.are.equal(45, letters[1].args[1])
    assert.are.equal(300, letters[256].args[1])
  end)
end)
