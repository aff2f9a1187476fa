-- Names and supervisors in Lua: who is found by which name, who is started anew, what a start may do.
local helper = require "helper"
local weir = require "weir"

describe("names", function()
  after_each(function()
    weir.shutdown()
  end)

  local function echo(name)
    return weir.spawn(function()
      if name then
        weir.register(name)
      end
      while true do
        local m = weir.receive()
        if m.verb == "fail" then
          error("told to")
        end
        m:reply(m[1])
      end
    end)
  end

  it("stand_for_addresses_everywhere", function()
    local a = echo()
    weir.register("echo", a)
    assert.are.equal(a, weir.whereis("echo"))
    assert.are.equal(7, weir.call("echo", "say", 7))
    assert.are.equal(8, weir.call_with({to = "echo", timeout = 1}, "say", 8))
    assert.are.equal(9, weir.await(weir.start("echo", "say", 9)))
    assert.is_true(weir.send("echo", "say"))
    weir.sleep(0)
    assert.are.equal(4, weir.stats("echo").handled - 1)
    weir.monitor("echo")
    weir.demonitor("echo")
    weir.monitor("echo")
    assert.is_true(weir.stop("echo"))
    local m = weir.receive(1)
    assert.are.equal("down", m.verb)
    assert.are.equal(a, m[1])
    assert.is_nil(weir.whereis("echo"))
    assert.is_false(weir.stop("echo"))
    assert.is_false(weir.kill("echo"))
  end)

  it("are_refused_by_their_text_when_nobody_has_them", function()
    for _, fn in ipairs {weir.send, weir.call, weir.start} do
      local e = helper.raises("ENOACTOR", fn, "nobody", "x")
      assert.are.equal('no actor is registered as "nobody"', e.text)
    end
    for _, fn in ipairs {weir.try_send, weir.try_call} do
      local value, e = fn("nobody", "x")
      assert.is_nil(value)
      assert.are.equal('no actor is registered as "nobody"', e.text)
    end
    helper.raises("ENOACTOR", weir.monitor, "nobody")
    helper.raises("ENOACTOR", weir.stats, "nobody")
  end)

  it("belong_to_one_actor_at_a_time", function()
    local a, b = echo(), echo()
    weir.register("n", a)
    weir.register("n", a)
    local e = helper.raises("EBUSY", weir.register, "n", b)
    assert.is_truthy(e.text:find(("actor %d (supervise_spec.lua"):format(a:id()), 1, true))
    assert.is_truthy(e.text:find(("actor %d (supervise_spec.lua"):format(b:id()), 1, true))
    weir.register("m", a)
    weir.register("other", b)
    assert.are.same({n = a, m = a, other = b}, weir.names())
    assert.is_true(weir.unregister("m"))
    assert.is_false(weir.unregister("m"))
    weir.kill(a)
    weir.register("n", b)
    assert.are.same({n = b, other = b}, weir.names())
    helper.raises("EINVAL", weir.register, "", b)
    helper.raises("EINVAL", weir.register, ("x"):rep(64), b)
    helper.raises("ENOACTOR", weir.register, "n", a)
  end)

  it("are_given_to_oneself", function()
    echo("own")
    weir.sleep(0)
    assert.are.equal(1, weir.call("own", "say", 1))
    weir.register("main")
    assert.are.equal(weir.self(), weir.whereis("main"))
  end)
end)

describe("a supervisor", function()
  local starts, lives, uncaught
  local report = weir.uncaught

  before_each(function()
    starts, lives, uncaught = {}, {}, 0
    weir.uncaught = function()
      uncaught = uncaught + 1
    end
  end)

  after_each(function()
    weir.shutdown()
    weir.uncaught = report
  end)

  -- A child that is found by its name, fails or ends when told to, and notes each life.
  local function child(name, options)
    local c = {
      name = name,
      args = {name},
      start = function(own)
        starts[own] = (starts[own] or 0) + 1
        lives[#lives + 1] = "+" .. own
        local a = weir.spawn_with({name = own}, function()
          while true do
            local m = weir.receive()
            if m.verb == "fail" then
              error(m[1], 0)
            elseif m.verb == "end" then
              return
            end
            m:reply(starts[own])
          end
        end)
        weir.register(own, a)
        return a
      end,
    }
    for k, v in pairs(options or {}) do
      c[k] = v
    end
    return c
  end

  it("starts_its_children_in_order_and_stops_them", function()
    local sup = weir.supervise {name = "boss", children = {child "a", child "b"}}
    weir.sleep(0)
    assert.are.same({"+a", "+b"}, lives)
    local list = weir.call(sup, "children")
    assert.are.same({"a", weir.whereis("a"):id(), 0, "running"}, list[1])
    assert.are.same({"b", weir.whereis("b"):id(), 0, "running"}, list[2])
    weir.monitor(sup)
    weir.stop(sup)
    local m = weir.receive(1)
    assert.are.equal("down", m.verb)
    assert.is_nil(m[2])
    assert.are.same({}, weir.names())
  end)

  it("starts_a_failed_child_anew_under_its_name", function()
    weir.supervise {children = {child "a", child "b"}}
    weir.sleep(0)
    local before = weir.whereis("a")
    weir.send("a", "fail", "broken")
    assert.is_true(helper.soon(function() return starts.a == 2 end))
    assert.are.equal(2, weir.call("a", "say"))
    assert.are.equal(1, weir.call("b", "say"))
    assert.are_not.equal(before, weir.whereis("a"))
  end)

  it("starts_all_anew_one_for_all", function()
    weir.supervise {strategy = "one-for-all", children = {child "a", child("b", {restart = "never"}), child "c"}}
    weir.sleep(0)
    weir.send("a", "fail", "broken")
    helper.soon(function() return #lives == 5 end)
    assert.are.same({"+a", "+b", "+c", "+a", "+c"}, lives)
  end)

  it("lets_final_ends_be", function()
    weir.supervise {children = {child("a", {restart = "on-error"}), child("b", {restart = "never"}), child "c"}}
    weir.sleep(0)
    for _, name in ipairs {"a", "b", "c"} do
      weir.send(name, "end")
    end
    assert.is_true(helper.soon(function() return starts.c == 2 end))
    weir.sleep(0.01)
    assert.are.same({a = 1, b = 1, c = 2}, starts)
  end)

  it("gives_up_with_the_childs_error_as_the_cause", function()
    local sup = weir.supervise {name = "boss", intensity = 1, period = 10, children = {child "a"}}
    weir.monitor(sup)
    weir.sleep(0)
    weir.send("a", "fail", "first")
    assert.is_true(helper.soon(function() return starts.a == 2 end))
    weir.send("a", "fail", "second")
    local e = weir.receive(1)[2]
    assert.are.equal("EEXITED", e.code)
    assert.are.equal("boss", e.actor)
    assert.are.equal('"a" failed, and 1 restarts within 10 s are all that is borne', e.text)
    assert.are.equal("second", e.cause.text)
  end)

  it("reports_an_error_in_a_start_with_its_traceback", function()
    local function open_nothing()
      error("cannot open it")
    end
    local sup = weir.supervise {children = {child "a", {name = "bad", start = function()
      open_nothing()
    end}}}
    weir.monitor(sup)
    local e = weir.receive(1)[2]
    assert.are.equal("ELUA", e.code)
    assert.is_truthy(e.text:find('"bad" did not start', 1, true))
    assert.is_truthy(e.cause.text:find("cannot open it", 1, true))
    assert.is_truthy(e.cause.traceback:find("open_nothing", 1, true))
    assert.is_nil(weir.whereis("a"))
  end)

  it("tries_a_start_that_failed_again", function()
    local tries = 0
    local c = child "a"
    local start = c.start
    c.start = function(name)
      tries = tries + 1
      if tries == 2 or tries == 3 then
        error(weir.error("EBUSY", "not yet"))
      end
      return start(name)
    end
    weir.supervise {backoff = 0.001, children = {c}}
    weir.sleep(0)
    weir.send("a", "fail", "broken")
    assert.is_true(helper.soon(function() return starts.a == 2 end))
    assert.are.equal(4, tries)
    assert.are.equal(2, weir.call("a", "say"))
  end)

  it("refuses_a_start_that_waits_or_gives_nobody", function()
    local tries = {
      EBUSY = function() weir.sleep(1) end,
      ETYPE = function() return {} end,
      ENOACTOR = function() return "nobody" end,
      EINVAL = function() return 0 end,
    }
    for code, start in pairs(tries) do
      weir.monitor(weir.supervise {children = {{name = "bad", start = start}}})
      assert.are.equal(code, weir.receive(1)[2].code)
    end
    weir.monitor(weir.supervise {children = {{name = "bad", start = function() end}}})
    assert.is_truthy(weir.receive(1)[2].text:find("returned nothing", 1, true))
  end)

  it("starts_modules_by_name", function()
    package.loaded["supervised_module"] = function(first, second)
      weir.register("module")
      while true do
        local m = weir.receive()
        if m.verb == "fail" then
          error("told to", 0)
        end
        m:reply(first, second)
      end
    end
    weir.supervise {children = {{name = "m", start = "supervised_module", args = {1, "two"}}}}
    weir.sleep(0.001)
    for _ = 1, 2 do
      local one, two = weir.call("module", "say")
      assert.are.equal(1, one)
      assert.are.equal("two", two)
      local before = weir.whereis "module"
      weir.send("module", "fail")
      assert.is_true(helper.soon(function() return weir.whereis "module" ~= nil and weir.whereis "module" ~= before end))
    end
    package.loaded["supervised_module"] = nil
  end)

  it("may_supervise_supervisors", function()
    weir.supervise {name = "outer", children = {{name = "inner", start = function()
      starts.inner = (starts.inner or 0) + 1
      return weir.supervise {name = "inner", intensity = 1, children = {child "a"}}
    end}}}
    assert.is_true(helper.soon(function() return starts.a == 1 end))
    for life = 2, 3 do
      weir.send("a", "fail", "broken")
      assert.is_true(helper.soon(function() return starts.a == life end))
    end
    assert.are.equal(2, starts.inner)
    assert.are.equal(3, weir.call("a", "say"))
  end)

  it("kills_who_does_not_stop_in_time", function()
    local function deaf()
      return weir.spawn(function()
        weir.sleep(1e6)
      end)
    end
    local sup = weir.supervise {children = {{name = "deaf", start = deaf, patience = 0.01}, {name = "deafer", start = deaf, patience = 0}}}
    weir.sleep(0)
    weir.monitor(sup)
    weir.stop(sup)
    assert.are.equal("down", weir.receive(1).verb)
    assert.are.equal(0, weir.stats().timers)
  end)

  it("names_wrong_options", function()
    local start = function() end
    for text, options in pairs {
      ["no option colour"] = {colour = 1},
      ['strategy is "rest"'] = {strategy = "rest"},
      ["period is a string"] = {period = "1"},
      ["intensity is 0"] = {intensity = 0},
      ["drain is -1"] = {drain = -1},
      ["child 1 has no name"] = {children = {{start = start}}},
      ["child 2 (b): start is a nil"] = {children = {{name = "a", start = start}, {name = "b"}}},
      ['child 1 (a): restart is "often"'] = {children = {{name = "a", start = start, restart = "often"}}},
      ["child 1 has no option when"] = {children = {{name = "a", start = start, when = 1}}},
    } do
      local ok, e = pcall(weir.supervise, options)
      assert.is_false(ok)
      assert.is_truthy(e.text:find(text, 1, true), e.text)
    end
  end)

  it("frees_its_functions_when_it_has_ended", function()
    local held = setmetatable({}, {__mode = "v"})
    local function start()
      local c = child "a"
      held[1] = c.start
      return weir.supervise {children = {c}}
    end
    local sup = start()
    weir.sleep(0)
    weir.stop(sup)
    weir.sleep(0.001)
    collectgarbage()
    collectgarbage()
    assert.is_nil(held[1])
  end)

  it("ends_with_its_system", function()
    weir.supervise {children = {child "a"}}
    weir.sleep(0)
    weir.shutdown()
    assert.are.equal(0, uncaught)
  end)
end)

describe("the end of actors", function()
  after_each(function()
    weir.shutdown()
  end)

  it("actors_A41_killed_sleepers_take_their_timers_along", function()
    for _ = 1, 20 do
      local sleepers = {}
      for i = 1, 50 do
        sleepers[i] = weir.spawn(function()
          weir.sleep(i % 2 == 0 and 1e6 or 0.0005)
        end)
      end
      weir.sleep(0)
      for i = 50, 1, -1 do
        weir.kill(sleepers[i])
      end
      assert.are.equal(0, weir.stats().timers)
    end
    weir.sleep(0.002)
    assert.are.equal(1, weir.stats().actors - 1)
  end)

  it("lua_L43_killing_twice_the_dead_or_oneself_twice_is_the_same_as_once", function()
    local a = weir.spawn(weir.receive)
    assert.is_true(weir.kill(a))
    assert.is_false(weir.kill(a))
    assert.is_false(weir.kill(4242))
    local reached = false
    local b = weir.spawn(function()
      pcall(function()
        weir.kill(weir.self())
      end)
      weir.kill(weir.self())
      reached = true
    end)
    weir.monitor(b)
    local m = weir.receive(1)
    assert.are.equal("EKILLED", m[2].code)
    assert.is_nil(weir.receive(0.001))
    assert.is_false(reached)
    assert.is_false(weir.kill(b))
  end)
end)
