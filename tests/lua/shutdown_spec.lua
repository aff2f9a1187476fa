-- How programs end: hooks, what waits, signals, exits in odd places.
local weir = require "weir"
local helper = require "helper"

local program = helper.quote(helper.program)

-- Runs a script of weir's until it has made the file that it gets as its first argument, then sends a signal; code, output, errors.
local function signalled(signal, text)
  local file, ready = helper.temporary ".lua", helper.temporary ".ready"
  helper.write(file, text)
  local code, out, err = helper.shell(("setsid env --default-signal=INT %s %s %s & pid=$!; while [ ! -e %s ]; do sleep 0.01; done; sleep 0.05; kill -%s $pid; wait $pid")
    :format(program, file, ready, ready, signal))
  os.remove(file)
  os.remove(ready)
  return code, out, err
end

local hook = [[
  local weir = require "weir"
  weir.on_shutdown(function()
    local start = weir.now()
    weir.sleep(0.05)
    io.write(weir.now() - start >= 0.05 and "hook\n" or "early\n")
  end)
]]
local touch = ' io.open((...), "w"):close() '

describe("shutdown", function()
  local uncaught = weir.uncaught
  before_each(function()
    weir.shutdown()
    weir.uncaught = function() end
  end)
  after_each(function() weir.uncaught = uncaught end)

  it("shutdown_S1_nothing_runs_after_the_end_has_begun", function()
    local ran = {}
    for i = 1, 5 do
      weir.spawn(function()
        pcall(function()
          weir.sleep(0.001 * i)
          ran[#ran + 1] = i
        end)
        weir.receive()
        ran[#ran + 1] = -i
      end)
      weir.start(weir.spawn(function() weir.receive():defer() weir.receive() end), "x")
    end
    weir.sleep(0.0025)
    local before = #ran
    weir.shutdown()
    collectgarbage()
    assert.are.equal(before, #ran)
  end)

  it("shutdown_S1_pending_work_and_lua_close", function()
    local code, out, err = helper.weir {"-e", [[
      local weir = require "weir"
      local a = weir.spawn(function() while true do weir.receive() weir.sleep(1000) end end)
      for _ = 1, 10 do weir.send(a, "x") end
      kept = {weir.start(a, "y"), coroutine.wrap(function() weir.sleep(0) end)}
      weir.spawn(function() local ok, e = pcall(weir.sleep, 1000) io.write(e.code, "\n") end)
      weir.sleep(0.01)
      os.exit(0)
    ]]}
    assert.are.equal("", err)
    assert.are.equal("ESTOPPING\n", out)
    assert.are.equal(0, code)
  end)

  it("shutdown_S3_finalizers_do_nothing_once_all_closes", function()
    local file = helper.temporary ".lua"
    helper.write(file, [[
      local weir = require "weir"
      local a = weir.spawn(function() while true do weir.receive() end end)
      kept = {}
      for i = 1, 50 do
        kept[i] = weir.start(a, "x")
        local proxy = newproxy(true)
        getmetatable(proxy).__gc = function() pcall(weir.send, a, "late") pcall(weir.sleep, 0) pcall(weir.start, a, "x") pcall(weir.kill, a) end
        kept[-i] = proxy
      end
      weir.sleep(0)
    ]])
    for _ = 1, 3 do
      local code, out, err = helper.shell(("LUA_PATH=%s LUA_CPATH=%s luajit %s"):format(helper.quote(os.getenv "LUA_PATH"), helper.quote(os.getenv "LUA_CPATH"), file))
      assert.are.same({0, "", ""}, {code, out, err})
    end
    os.remove(file)
  end)

  it("shutdown_S5_a_sleeper_is_woken_and_one_that_does_not_end_is_killed_and_named", function()
    local code
    weir.spawn(function() code = select(2, pcall(weir.sleep, 3600)).code end)
    weir.spawn(function() weir.sleep(3600) end)
    weir.spawn_with({name = "obstinate"}, function()
      while true do
        pcall(weir.sleep, 3600)
        pcall(weir.sleep, 0.001)
      end
    end)
    weir.sleep(0.001)
    local failures = weir.stats().failures
    local e = helper.raises("ETIMEOUT", weir.stop_all, 0.05)
    assert.are.equal("ESTOPPING", code)
    assert.is_truthy(e.text:find("1 actors did not stop in time and were killed: obstinate", 1, true))
    assert.are.equal(failures, weir.stats().failures)
  end)

  it("stop_all_does_not_take_the_main_chunk_for_a_survivor", function()
    weir.self()
    weir.spawn(function() weir.receive() end)
    weir.sleep(0)
    weir.stop_all(5)
    helper.raises("ESTOPPING", weir.spawn, print)
  end)

  it("stop_all_is_orderly", function()
    local seen = 0
    local a = weir.spawn(function()
      while true do
        weir.receive()
        seen = seen + 1
      end
    end)
    for _ = 1, 10 do
      weir.send(a, "x")
    end
    weir.stop_all(5)
    assert.are.equal(10, seen)
  end)

  it("stop_all_in_an_actor_is_refused", function()
    local code
    weir.spawn(function() code = select(2, pcall(weir.stop_all)).code end)
    weir.run()
    assert.are.equal("EBUSY", code)
  end)

  it("on_shutdown_runs_newest_first_and_once", function()
    local order = {}
    weir.on_shutdown(function() order[#order + 1] = 1 end)
    weir.on_shutdown(function()
      order[#order + 1] = 2
      weir.on_shutdown(function() order[#order + 1] = "added" end)
    end)
    weir.shutdown()
    weir.shutdown()
    assert.are.same({2, "added", 1}, order)
    helper.raises("ETYPE", weir.on_shutdown, 5)
  end)

  for name, code in pairs {
    the_end_of_a_script = "",
    an_actor_that_works_on = "weir.spawn(function() weir.sleep(0.01) end)",
    os_exit = "os.exit(0)",
    os_exit_in_an_actor = "weir.spawn(function() weir.sleep(0.001) os.exit(0) end) weir.sleep(100)",
    os_exit_in_an_actor_after_the_script = "weir.spawn(function() weir.sleep(0.001) os.exit(true) end) weir.spawn(function() weir.sleep(100) end)",
    os_exit_that_is_caught = "while true do pcall(os.exit) pcall(weir.sleep, 0.001) end",
  } do
    it("shutdown_S7_hooks_run_once_at_" .. name, function()
      local file = helper.temporary ".lua"
      helper.write(file, hook .. code)
      assert.are.same({0, "hook\n", ""}, {helper.weir {file}})
      assert.are.same({0, "hook\n", ""}, {helper.weir {"-e", hook .. code}})
      os.remove(file)
    end)
  end

  it("shutdown_S7_hooks_run_once_after_an_error", function()
    local code, out, err = helper.weir {"-e", hook .. "error 'broken'"}
    assert.are.equal(1, code)
    assert.are.equal("hook\n", out)
    assert.is_truthy(err:find("broken", 1, true))
  end)

  for signal, code in pairs {INT = 130, TERM = 143} do
    for name, text in pairs {
      a_wait = "weir.receive()",
      a_wait_in_a_loop_that_catches = signal == "TERM" and "while true do pcall(weir.sleep, 1) end" or "weir.sleep(9)",
      a_loop = "jit.off(true, true) while true do end",
      actors = "weir.spawn(function() while true do weir.sleep(0.001) end end)",
      an_actor_that_spins = "jit.off(true, true) weir.spawn(function() while true do end end)",
    } do
      it("shutdown_S7_hooks_run_once_at_SIG" .. signal .. "_during_" .. name, function()
        local got, out, err = signalled(signal, hook .. touch .. text)
        assert.are.equal("hook\n", out)
        assert.are.equal(code, got)
        assert.is_truthy(err:find(signal == "INT" and "interrupted" or "terminated", 1, true), err)
      end)
    end
  end

  it("a_program_that_ignores_the_first_signal_is_ended_by_the_second", function()
    local file, ready = helper.temporary ".lua", helper.temporary ".ready"
    helper.write(file, 'local weir = require "weir" io.open((...), "w"):close() while true do end')
    local code = helper.shell(("setsid env --default-signal=INT %s %s %s & pid=$!; while [ ! -e %s ]; do sleep 0.01; done; sleep 0.1; kill -INT $pid; sleep 0.1; "
      .. "kill -INT $pid 2>/dev/null; wait $pid"):format(program, file, ready, ready))
    os.remove(file)
    os.remove(ready)
    assert.are.equal(130, code)
  end)

  it("a_hook_that_fails_is_told_and_makes_the_exit_code_1", function()
    local code, out, err = helper.weir {"-e", hook .. 'weir.on_shutdown(function() error "in the hook" end)'}
    assert.are.equal("hook\n", out)
    assert.are.equal(1, code)
    assert.is_truthy(err:find("on_shutdown", 1, true) and err:find("in the hook", 1, true))
  end)

  it("a_hook_that_waits_for_ever_is_ended_by_another_signal", function()
    local code, out = signalled("TERM", hook .. [[
      weir.on_shutdown(function() io.write "stuck\n" io.flush() os.execute "(sleep 0.2; kill -INT $PPID) &" weir.sleep(1000) end)
    ]] .. touch .. "weir.sleep(1000)")
    assert.are.equal("stuck\nhook\n", out)
    assert.are.equal(143, code)
  end)

  it("loop_E5_os_exit_in_an_actor_ends_the_program_after_its_turn", function()
    local script = [[
      local weir = require "weir"
      local other = weir.spawn(function() weir.receive() print "stopped in order" end)
      weir.spawn(function()
        weir.send(other, "x")
        os.exit(7)
        print "not reached"
      end)
      weir.sleep(1000)
      print "not reached"
    ]]
    assert.are.same({7, "stopped in order\n", ""}, {helper.weir {"-e", script}})
    assert.are.same({3, "", ""}, {helper.weir {"-e", "os.exit(3)"}})
    assert.are.same({1, "", ""}, {helper.weir {"-e", "os.exit(false)"}})
  end)

  it("loop_E5_os_exit_where_nothing_can_yield_ends_the_program_all_the_same", function()
    local script = [[
      local weir = require "weir"
      weir.spawn(function() string.gsub("a", "a", function() pcall(os.exit, 5) end) end)
      weir.sleep(1000)
    ]]
    assert.are.same({5, "", ""}, {helper.weir {"-e", script}})
  end)

  it("shutdown_S13_a_program_that_returns_without_stopping_anything", function()
    local file = helper.temporary ".lua"
    helper.write(file, [[
      local weir = require "weir"
      weir.spawn(function() while true do weir.sleep(0.0001) end end)
      kept = weir.start(weir.spawn(function() weir.receive():defer() weir.receive() end), "x")
      weir.sleep(0.002)
      os.exit(4, (...) == "close")
    ]])
    -- os.exit leaves its memory to the kernel: no leak checker.
    local environment = ("ASAN_OPTIONS=detect_leaks=0 LUA_PATH=%s LUA_CPATH=%s luajit %s ")
      :format(helper.quote(os.getenv "LUA_PATH"), helper.quote(os.getenv "LUA_CPATH"), file)
    for _, how in ipairs {"close", "leave", "close", "leave"} do
      assert.are.same({4, "", ""}, {helper.shell(environment .. how)})
    end
    os.remove(file)
  end)
end)
