-- Cases of LuaJIT, coroutines, collector and errors, by their ids.
local raw_wrap = coroutine.wrap
local weir = require "weir"
local helper = require "helper"

local function echo()
  while true do
    local m = weir.receive()
    m:reply(m:args())
  end
end

-- Runs fn in an actor to its end; returns its results, or raises its error.
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

-- The error that weir.call raises inside `how(call)`, in an actor; afterwards nothing is left behind.
local function blamed(how)
  local peer = weir.spawn(echo)
  return in_actor(function()
    local caught
    how(function()
      local ok, e = pcall(weir.call, peer, "q")
      caught = caught or e
      return not ok
    end)
    assert.are.equal("EYIELD", weir.is_error(caught) and caught.code or caught)
    assert.are.equal(0, weir.stats(weir.self()).calls_open)
    assert.are.equal("still works", weir.call(peer, "q", "still works"))
    return caught.text
  end)
end

describe("cases", function()
  local uncaught = weir.uncaught
  before_each(function()
    weir.shutdown()
    weir.uncaught = function() end
  end)
  after_each(function() weir.uncaught = uncaught end)

  it("lua_L11_types_are_declared_once", function()
    weir.send(weir.self(), "x", weir.bin(("x"):rep(8192)))
    local buffer = weir.receive()[1]
    local thorough = os.getenv "WEIR_SPEC_MODE" == ""
    for _ = 1, thorough and 70000 or 700 do
      assert(buffer:pointer() ~= nil and weir.tensor(buffer, "F32", {4}).shape[1] == 4)
    end
    for _ = 1, thorough and 2000 or 20 do
      for _, name in ipairs {"weir.safetensors", "weir.tensor", "weir.integers"} do
        package.loaded[name] = nil
        require(name)
      end
    end
    assert.are.equal(9007199254740993LL, weir.json.decode "9007199254740993")
  end)

  it("lua_L13_require_is_named", function()
    package.preload.weir_spec_sleeper = function() weir.sleep(0.001) end
    local e = in_actor(function() return select(2, pcall(require, "weir_spec_sleeper")) end)
    package.preload.weir_spec_sleeper = nil
    assert.is_truthy(tostring(e):find("weir.sleep cannot wait inside require", 1, true))
  end)

  it("lua_L13_require_may_wait_in_a_main_chunk", function()
    package.preload.weir_spec_waiter = function() weir.sleep(0.001) return true end
    assert.is_true(require "weir_spec_waiter")
    package.preload.weir_spec_waiter, package.loaded.weir_spec_waiter = nil, nil
  end)

  it("lua_L15_gsub", function()
    local text = blamed(function(call) string.gsub("a", "a", function() call() end) end)
    assert.are.equal("weir.call cannot wait inside string.gsub", text)
  end)

  it("lua_L15_sort", function()
    local text = blamed(function(call) table.sort({3, 1, 2}, function(a, b) call() return a < b end) end)
    assert.are.equal("weir.call cannot wait inside table.sort", text)
  end)

  it("lua_L15_format", function()
    local text = blamed(function(call)
      string.format("%s", setmetatable({}, {__tostring = function() call() return "" end}))
    end)
    assert.are.equal("weir.call cannot wait inside string.format", text)
  end)

  it("lua_L15_finalizer", function()
    local text = blamed(function(call)
      getmetatable(newproxy(true)).__gc = function() call() end
      collectgarbage()
      collectgarbage()
    end)
    assert.is_truthy(text:find("__gc", 1, true))
  end)

  it("lua_L15_hook", function()
    local text = blamed(function(call)
      debug.sethook(function() debug.sethook() call() end, "l")
      local x = 1
      return x
    end)
    assert.is_truthy(text:find("hook", 1, true))
  end)

  it("lua_L15_gsub_in_an_outer_coroutine", function()
    local text = blamed(function(call)
      string.gsub("a", "a", function() coroutine.wrap(function() call() end)() end)
    end)
    assert.are.equal("weir.call cannot wait inside string.gsub", text)
  end)

  it("lua_L15_coroutine_resumed_behind_the_library", function()
    local text = blamed(function(call) raw_wrap(function() call() end)() end)
    -- The spec took coroutine.wrap before weir was loaded only if nothing loaded weir earlier.
    assert.is_truthy(raw_wrap == coroutine.wrap or text:find("taken before weir was loaded", 1, true))
  end)

  it("waits_pass_through_what_can_yield", function()
    local peer = weir.spawn(echo)
    assert.are.same({1, 2, 3, 4, 5}, in_actor(function()
      local function ask(n) return (weir.call(peer, "q", n)) end
      local object = setmetatable({}, {__index = function(_, n) return ask(n) end, __tostring = function() return tostring(ask(5)) end})
      local result = {select(2, pcall(ask, 1)), select(2, xpcall(function() return ask(2) end, print)), object[3]}
      for n in function(_, last) return not last and ask(4) or nil end do
        result[4] = n
      end
      result[5] = tonumber(tostring(object))
      return result
    end))
  end)

  it("waits_inside_coroutines_of_the_script", function()
    local peer = weir.spawn(echo)
    assert.are.same({1, "y", 2, "z"}, in_actor(function()
      local co = coroutine.wrap(function()
        local inner = coroutine.create(function() coroutine.yield(weir.call(peer, "q", 1)) return weir.call(peer, "q", 2) end)
        coroutine.yield((select(2, coroutine.resume(inner))))
        coroutine.yield "y"
        weir.sleep(0.001)
        coroutine.yield((select(2, coroutine.resume(inner))))
        return "z"
      end)
      return {co(), co(), co(), co()}
    end))
  end)

  it("passes_nils_through_replaced_coroutine_functions", function()
    local co = coroutine.create(function(...) return select("#", ...), select("#", coroutine.yield(nil, nil)) end)
    assert.are.equal(3, select("#", coroutine.resume(co, nil, nil, nil)))
    assert.are.same({true, 3, 2}, {coroutine.resume(co, nil, nil)})
    assert.are.same({false, "cannot resume dead coroutine"}, {coroutine.resume(co)})
    assert.are.equal(0, select("#", coroutine.wrap(function() end)()))
  end)

  it("refuses_to_resume_what_waits_in_weir", function()
    local shared
    weir.spawn(function()
      shared = coroutine.create(function() weir.sleep(0.01) end)
      coroutine.resume(shared)
    end)
    weir.sleep(0.001)
    local ok, e = coroutine.resume(shared)
    assert.is_false(ok)
    assert.is_truthy(e:find "waits in weir")
  end)

  it("says_what_is_wrong_with_a_bare_yield", function()
    local a = weir.spawn(function()
      weir.receive()
      coroutine.yield "nobody"
    end)
    assert.is_truthy(helper.raises("EEXITED", weir.call, a, "x").cause.text:find "coroutine.yield")
  end)

  it("traces_back_through_coroutines_of_the_script", function()
    local a = weir.spawn(function()
      weir.receive()
      local function innermost() error "deep" end
      coroutine.wrap(function() weir.sleep(0) innermost() end)()
    end)
    local e = helper.raises("EEXITED", weir.call, a, "x").cause
    local inner, outer = e.traceback:find "innermost", e.traceback:find("stack traceback:", 2, true)
    assert.is_truthy(inner and outer and inner < outer)
  end)

  it("lua_L17_error_handlers", function()
    local text = blamed(function(call) xpcall(function() error "x" end, function() call() end) end)
    assert.are.equal("weir.call cannot wait inside an error handler (xpcall)", text)
    text = blamed(function(call)
      xpcall(function() local t = {} return t.nothing.field end, function() call() end)
    end)
    assert.are.equal("weir.call cannot wait inside an error handler (xpcall)", text)
  end)

  it("lua_L19_errors_after_nested_coroutines_under_the_compiler", function()
    require "jit.opt".start "hotloop=1"
    local peer, sum = weir.spawn(echo), 0
    for i = 1, 300 do
      weir.spawn(function()
        for k = 1, 20 do
          local n = weir.call(peer, "q", k)
          sum = sum + n
        end
      end)
      local ok = pcall(function()
        weir.call(peer, "q", i)
        for k = 1, 100 do
          sum = sum + k % 2
        end
        error "x"
      end)
      assert.is_false(ok)
    end
    weir.run()
    require "jit.opt".start "hotloop=56"
    assert.are.equal(300 * 210 + 300 * 50, sum)
  end)

  it("lua_L23_traceback_with_a_negative_level_ends", function()
    assert.are.equal("string", type(debug.traceback("1", -50000)))
    assert.are.equal("string", type(debug.traceback(coroutine.create(print), "1", -50000)))
  end)

  it("lua_L25_an_error_in_one_actor_leaves_the_loop_intact", function()
    local ticks = 0
    weir.spawn(function() weir.sleep(0.001) error "in a timer's turn" end)
    weir.spawn(function() weir.sleep(0.002) ticks = ticks + 1 weir.sleep(0.001) ticks = ticks + 1 end)
    weir.run()
    assert.are.equal(2, ticks)
  end)

  it("lua_L25_an_error_in_the_uncaught_handler_itself", function()
    weir.uncaught = function() error "worse" end
    local a = weir.spawn(function() weir.receive() error "bad" end)
    assert.are.equal("ELUA", helper.raises("EEXITED", weir.call, a, "x").cause.code)
  end)

  it("lua_L27_deaths_that_nobody_watches_are_counted", function()
    local told
    weir.uncaught = function(address, e) told = {address, e} end
    local before = weir.stats().failures
    local a = weir.spawn(function() error "alone" end)
    weir.run()
    local watched = weir.spawn(function() weir.receive() error "watched" end)
    weir.monitor(watched)
    weir.send(watched, "x")
    weir.receive()
    assert.are.equal(before + 1, weir.stats().failures)
    assert.are.equal(a, told[1])
    assert.is_truthy(told[2].text:find "alone")
  end)

  it("lua_L29_error_values_that_are_no_strings", function()
    local value = {code = 1}
    assert.are.equal(value, in_actor(function() return (select(2, pcall(error, value))) end))
    local function cause_of(raised)
      local a = weir.spawn(function()
        weir.receive()
        error(raised)
      end)
      return helper.raises("EEXITED", weir.call, a, "x").cause
    end
    assert.is_truthy(cause_of({code = 1}).text:find "table")
    assert.is_truthy(cause_of(nil).text:find "nil")
    assert.is_truthy(cause_of(require "ffi".new "int[2]").text:find "cdata")
    assert.are.equal("speaks", cause_of(setmetatable({}, {__tostring = function() return "speaks" end})).text)
    assert.are.equal("EIO", cause_of(weir.error("EIO", "disk")).code)
  end)

  it("lua_L31_dropped_objects_are_collected", function()
    local seen = setmetatable({}, {__mode = "k"})
    local peer = weir.spawn(function()
      while true do
        seen[weir.receive()] = true
      end
    end)
    for _ = 1, 20 do
      for _ = 1, 500 do
        weir.send(peer, "x", ("long"):rep(100))
      end
      weir.run()
    end
    collectgarbage()
    collectgarbage()
    local left = 0
    for _ in pairs(seen) do
      left = left + 1
    end
    assert.is_true(left <= 1)
    assert.is_true(weir.stats().bytes < 1e6)
  end)

  it("lua_L33_finalizers_that_use_weir_while_the_state_closes", function()
    local script = helper.temporary ".lua"
    helper.write(script, [[
      local early = newproxy(true)
      getmetatable(early).__gc = function() local ok, e = pcall(require("weir").now) io.write(tostring(ok or e.code), "\n") end
      local weir = require "weir"
      local a = weir.spawn(function() weir.receive() end)
      local late = newproxy(true)
      getmetatable(late).__gc = function() pcall(weir.send, a, "x") pcall(weir.spawn, print) end
      kept = {early, late}
      weir.sleep(0)
    ]])
    local line = ("LUA_PATH=%s LUA_CPATH=%s luajit %s"):format(helper.quote(os.getenv "LUA_PATH"), helper.quote(os.getenv "LUA_CPATH"), script)
    local code, out, err = helper.shell(line)
    os.remove(script)
    assert.are.equal("", err)
    assert.are.equal(0, code)
    assert.are.equal("ESTOPPING\n", out)
  end)

  it("lua_L35_every_allocation_may_fail", function()
    local failed = 0
    local function work()
      local peer = weir.spawn(echo)
      weir.monitor(peer)
      local text = weir.call(peer, "q", "x", {1, {a = true}}, ("long"):rep(2000))
      weir.send(peer, "another verb " .. failed, 1)
      weir.sleep(0.0001)
      weir.kill(peer)
      return text
    end
    for nth = 1, 60 do
      weir.shutdown()
      weir.now()
      require "weir.core".inject("ALLOC", nth, 1)
      local ok, e = pcall(work)
      if not ok then
        failed = failed + 1
        assert.is_true(weir.is_error(e), tostring(e))
      end
      require "weir.core".inject("ALLOC", 1, 0)
      assert.are.equal("x", weir.call(weir.spawn(echo), "q", "x"))
      weir.run()
    end
    weir.shutdown()
    assert.is_true(failed > 5)
  end)

  it("lua_L37_any_values_may_be_spawn_arguments", function()
    local count
    local many = {}
    for i = 1, 250 do
      many[i] = i
    end
    weir.spawn(function(...) count = select("#", ...) end, unpack(many))
    weir.run()
    assert.are.equal(250, count)
    local got
    weir.spawn(function(...) got = {...} end, {}, coroutine.create(print), print)
    weir.run()
    assert.are.equal("thread", type(got[2]))
  end)

  it("lua_L39_closures_keep_their_upvalues", function()
    local upvalue = {}
    weir.spawn(function() upvalue.seen = true end)
    weir.run()
    assert.is_true(upvalue.seen)
  end)

  it("lua_L41_a_sent_table_is_a_copy", function()
    local got
    local a = weir.spawn(function() got = weir.receive()[1] end)
    local sent = {1}
    weir.send(a, "x", sent)
    sent[1] = 2
    weir.run()
    assert.are.same({1}, got)
  end)

  it("lua_L43_ending_an_actor_is_idempotent", function()
    local a = weir.spawn(function() weir.receive() end)
    assert.is_true(weir.kill(a))
    assert.is_false(weir.kill(a))
    assert.is_false(weir.kill(4242))
    assert.is_false(weir.stop(a))
    local b = weir.spawn(function()
      weir.kill(weir.self())
      weir.kill(weir.self())
    end)
    weir.run()
    assert.is_false(weir.kill(b))
  end)

  it("actors_A1_a_call_behind_a_stop_ends", function()
    local a = weir.spawn(echo)
    weir.sleep(0)
    weir.stop(a)
    helper.raises("EEXITED", weir.call, a, "x")
  end)

  it("actors_A35_killing_ends_every_kind_of_wait", function()
    local silent = weir.spawn(function() weir.receive():defer() weir.receive() end)
    local before = weir.stats().actors
    for _, wait in ipairs {function() weir.receive() end, function() weir.receive(9) end, function() weir.sleep(9) end,
                           function() weir.call(silent, "x") end} do
      local a = weir.spawn(wait)
      weir.sleep(0.001)
      assert.is_true(weir.kill(a))
    end
    assert.are.equal(before, weir.stats().actors)
  end)
end)
