-- Actors in Lua on other loops: states, messages across them, errors, ends.
local weir = require "weir"
local core = require "weir.core"
local helper = require "helper"

local folder, modules = nil, {}

-- A module that other loops' states find.
local function module(name, text)
  modules[#modules + 1] = folder .. "/" .. name .. ".lua"
  helper.write(modules[#modules], text)
  return name
end

local echo = [[
  local weir = require "weir"
  return function(...)
    local first, n = {...}, select("#", ...)
    while true do
      local m = weir.receive()
      if m.verb == "first" then
        m:reply(unpack(first, 1, n))
      elseif m.verb == "loop" then
        m:reply(weir.loop())
      elseif m.verb == "call" then
        m:reply(weir.call(m[1], "x", m[2]))
      elseif m.verb == "fail" then
        error("broken on loop " .. weir.loop())
      elseif m.verb == "run" then
        m:reply(assert(loadstring("local weir, a, b = require 'weir', ... " .. m[1]))(m[2], m[3]))
      else
        m:reply(m:args())
      end
    end
  end
]]

describe("loops", function()
  local path, uncaught = package.path, weir.uncaught

  setup(function()
    folder = helper.temporary()
    assert(require "lfs".mkdir(folder))
    package.path = folder .. "/?.lua;" .. package.path
    module("weir_spec_echo", echo)
  end)
  teardown(function()
    weir.shutdown()
    package.path = path
    for _, name in ipairs(modules) do
      os.remove(name)
    end
    os.remove(folder)
  end)
  before_each(function()
    weir.shutdown()
    core.calm()
    weir.system {workers = 2}
    weir.uncaught = function() end
  end)
  after_each(function()
    weir.guard(false)
    weir.uncaught = uncaught
  end)

  local function on(loop, ...)
    return weir.spawn_with({loop = loop}, "weir_spec_echo", ...)
  end

  it("are_counted_and_say_their_number", function()
    assert.are.equal(3, weir.loops())
    assert.are.equal(0, weir.loop())
    weir.shutdown()
    assert.are.equal(1, weir.loops())
    helper.raises("EBUSY", weir.system, {workers = 1})
    weir.shutdown()
    helper.raises("EINVAL", weir.system, {workers = -1})
    helper.raises("EINVAL", weir.system, {workers = 64})
    helper.raises("EINVAL", weir.system, {workers = 1.5})
  end)

  it("run_modules_with_arguments", function()
    for loop = 0, 2 do
      local a = on(loop, 1, nil, {x = {2}}, "text")
      assert.are.same({1, nil, {x = {2}}, "text"}, {weir.call(a, "first")})
      assert.are.equal(loop, (weir.call(a, "loop")))
      assert.are.equal(loop, weir.stats(a).loop)
      assert.are.equal("weir_spec_echo", weir.stats(a).name)
    end
    assert.are.equal("bob", weir.stats(weir.spawn_with({loop = 1, name = "bob"}, "weir_spec_echo")).name)
    assert.are.equal(0, (weir.call(on "main", "loop")))
    helper.raises("EINVAL", on, 3)
    helper.raises("EINVAL", on, -1)
    helper.raises("ETYPE", on, {})
  end)

  it("take_turns_with_any", function()
    local seen = {}
    for i = 1, 4 do
      seen[i] = weir.call(on "any", "loop")
    end
    table.sort(seen)
    assert.are.same({1, 1, 2, 2}, seen)
    weir.shutdown()
    assert.are.equal(0, (weir.call(on "any", "loop")))
  end)

  it("have_a_state_each_that_is_made_once", function()
    local a, b, c = on(1), on(1), on(2)
    weir.call(a, "run", "shared = a", 5)
    assert.are.equal(5, (weir.call(b, "run", "return shared")))
    assert.is_nil((weir.call(c, "run", "return shared")))
    assert.is_nil(rawget(_G, "shared"))
  end)

  it("carry_messages_calls_and_addresses_in_every_direction", function()
    local a, b = on(1), on(2)
    assert.are.equal("round", (weir.call(a, "call", b, "round")))
    local main = weir.self()
    weir.send(a, "run", "weir.send(a, 'hello', weir.self())", main)
    local m = weir.receive()
    assert.are.equal("hello", m.verb)
    assert.are.equal(a, weir.address(m[1]))
    assert.are.equal(a, m.from)
    local got
    local here = weir.spawn(function()
      while true do
        weir.receive():reply "from the main loop"
      end
    end)
    got = weir.call(b, "call", here, 1)
    assert.are.equal("from the main loop", got)
    local long = ("0123456789abcdef"):rep(1000)
    assert.are.equal(long, weir.call(a, "x", weir.bin(long)):string())
    assert.are.equal(9007199254740993LL, (weir.call(a, "x", 9007199254740993LL)))
  end)

  it("await_many_across_loops", function()
    local list = {}
    for i = 1, 20 do
      list[i] = weir.start(on(i % 3), "x", i)
    end
    for i, result in ipairs(weir.await_all(list)) do
      assert.are.equal(i, result[1])
    end
    local p = weir.start(on(1), "run", "weir.sleep(1000)")
    helper.raises("ETIMEOUT", weir.await, p, 0.01)
    assert.is_true(p:cancel())
    helper.raises("ECANCELLED", weir.await, p)
  end)

  it("spawn_from_each_other", function()
    local a = on(1)
    local b = weir.address((weir.call(a, "run", "return weir.spawn_with({loop = 2}, 'weir_spec_echo', 'child')")))
    assert.are.equal(2, (weir.call(b, "loop")))
    assert.are.equal("child", (weir.call(b, "first")))
    local c = weir.address((weir.call(b, "run", "return weir.spawn_with({loop = 'main'}, 'weir_spec_echo', 'back')")))
    assert.are.equal(0, (weir.call(c, "loop")))
    local d = weir.address((weir.call(a, "run", "return weir.spawn(function() weir.receive():reply(weir.loop()) end)")))
    assert.are.equal(1, (weir.call(d, "x")))
  end)

  it("tell_why_a_module_could_not_be_run", function()
    local e = helper.raises("ELUA", weir.spawn_with, {loop = 1}, "weir_spec_nowhere")
    assert.is_truthy(e.text:find("module 'weir_spec_nowhere' not found", 1, true))
    e = helper.raises("ELUA", weir.spawn_with, {loop = 1}, module("weir_spec_syntax", "return return"))
    assert.is_truthy(e.text:find "weir_spec_syntax.lua:1")
    e = helper.raises("ELUA", weir.spawn_with, {loop = 1}, module("weir_spec_raises", "local function inner() error 'at load' end\ninner()"))
    assert.is_truthy(e.text:find("at load", 1, true))
    assert.is_truthy(e.traceback:find("inner", 1, true))
    e = helper.raises("ETYPE", weir.spawn_with, {loop = 1}, module("weir_spec_table", "return {}"))
    assert.is_truthy(e.text:find("weir_spec_table returned a table", 1, true))
    e = helper.raises("EBUSY", weir.spawn_with, {loop = 1}, module("weir_spec_waits", "require 'weir'.sleep(1)"))
    assert.is_truthy(e.text:find("weir.sleep", 1, true))
    assert.are.equal("fine", (weir.call(on(1), "x", "fine")))
  end)

  it("tell_callers_and_monitors_of_deaths_on_other_loops", function()
    local a = on(1)
    weir.monitor(a)
    local e = helper.raises("EEXITED", weir.call, a, "fail")
    assert.is_truthy(e.cause.text:find("broken on loop 1", 1, true))
    assert.is_truthy(e.cause.traceback:find("weir_spec_echo", 1, true))
    local m = weir.receive()
    assert.are.same({"down", a}, {m.verb, m[1]})
    assert.are.equal("ELUA", m[2].code)
    local failures = weir.stats().failures
    local b = on(2)
    weir.monitor(b)
    assert.is_true(weir.kill(b))
    assert.are.equal("EKILLED", weir.receive()[2].code)
    assert.are.equal(failures, weir.stats().failures)
    local c = on(2)
    weir.monitor(c)
    assert.is_true(weir.stop(c))
    assert.is_nil(weir.receive()[2])
  end)

  it("count_deaths_that_nobody_watches", function()
    local code, out, err = helper.shell(("LUA_PATH=%s %s -e %s"):format(helper.quote(package.path), helper.quote(helper.program), helper.quote [[
      local weir = require "weir"
      weir.system {workers = 1}
      weir.send(weir.spawn_with({loop = 1}, "weir_spec_echo"), "fail")
    ]]))
    assert.are.equal("", out)
    assert.are.equal(1, code)
    assert.is_truthy(err:find("broken on loop 1", 1, true))
  end)

  it("lua_L37_what_cannot_travel_is_an_error_of_the_spawner_before_anything_starts", function()
    local before = weir.stats().spawned
    for i, value in ipairs {print, coroutine.create(print), io.stdout, newproxy()} do
      local e = helper.raises("ETYPE", on, 1, 1, value)
      assert.is_truthy(e.text:find("argument 2: a " .. (i > 2 and "userdata" or type(value)), 1, true), e.text)
      e = helper.raises("ETYPE", on, 1, {list = {value}})
      assert.is_truthy(e.text:find("argument 1.list[1]: a ", 1, true), e.text)
    end
    assert.are.equal(before, weir.stats().spawned)
    local many = {}
    for i = 1, 250 do
      many[i] = i
    end
    assert.are.equal(250, select("#", weir.call(on(1, unpack(many)), "first")))
    assert.are.same({}, (weir.call(on(1, {}), "first")))
  end)

  it("lua_L39_functions_cannot_move_and_their_upvalues_are_named", function()
    local logger, count, file = {}, 0, io.stdout
    local e = helper.raises("ETYPE", weir.spawn_with, {loop = 1}, function() count = count + #logger + (file and 1 or 0) end)
    for _, text in ipairs {"logger (table)", "count (number)", "file (userdata)", "loop 1"} do
      assert.is_truthy(e.text:find(text, 1, true), e.text)
    end
    helper.raises("ETYPE", weir.spawn_with, {loop = 1}, function() return _G end)
    helper.raises("ETYPE", weir.spawn_with, {loop = 1}, 5)
  end)

  it("lua_L41_arguments_and_messages_are_copies", function()
    local sent = {1}
    local a = on(1, sent)
    sent[1] = 2
    assert.are.same({1}, (weir.call(a, "first")))
    weir.call(a, "run", "a[1] = 3", sent)
    assert.are.same({2}, sent)
  end)

  it("say_where_spawning_cannot_wait", function()
    local e
    weir.spawn(function()
      string.gsub("a", "a", function() e = select(2, pcall(on, 1)) end)
    end)
    weir.run()
    assert.are.equal("EYIELD", e.code)
    assert.is_truthy(e.text:find("weir.spawn_with cannot wait inside string.gsub", 1, true))
  end)

  it("are_listed_and_traced", function()
    local a = on(1)
    local loops = {}
    for _, row in ipairs(weir.actors()) do
      loops[row.address:id()] = row.loop
    end
    assert.are.equal(1, loops[a:id()])
    assert.are.equal(0, loops[weir.self():id()])
    local counts = weir.trace(function()
      for _ = 1, 50 do
        weir.call(a, "count me")
      end
    end)
    local calls = 0
    for _, row in ipairs(counts) do
      if row.kind == "call" and row.verb == "count me" and row.to == a then
        calls = row.count
      end
    end
    assert.are.equal(50, calls)
  end)

  it("refuse_what_belongs_to_the_main_loops_state", function()
    local a = on(1)
    for _, what in ipairs {"shutdown", "run", "stop_all"} do
      assert.are.equal("EBUSY", (weir.call(a, "run", "return select(2, pcall(weir[a], 1)).code", what)))
    end
    assert.is_false((weir.call(a, "run", "return (pcall(weir.watchdog, 1))")))
  end)

  it("take_guard_mode_over", function()
    weir.guard {limit = 0.1, kill = true}
    local slow = weir.slow
    weir.slow = function() end
    local a = on(1)
    weir.call(a, "run", "weir.slow = function() end weir.uncaught = function() end")
    local e = helper.raises("EEXITED", weir.call, a, "run", "while true do end").cause
    weir.slow = slow
    assert.are.equal("EKILLED", e.code)
    assert.is_truthy(e.text:find("weir_spec_echo", 1, true))
    weir.guard(false)
    assert.are.equal("fine", (weir.call(on(1), "x", "fine")))
  end)

  it("go_on_when_a_host_is_killed", function()
    local a = on(1)
    weir.call(a, "run", "kept = 7")
    for _, row in ipairs(weir.actors()) do
      if row.name == "lua" then
        weir.kill(row.address)
      end
    end
    assert.are.equal("still", (weir.call(a, "x", "still")))
    assert.are.equal(7, (weir.call(on(1), "run", "return kept")))
    assert.are.equal("spawns", (weir.call(a, "run", "local c = weir.spawn(function() weir.receive():reply 'spawns' end) return weir.call(c, 'x')")))
  end)

  it("shutdown_S5_wake_their_sleepers_and_stop_in_order", function()
    local main = weir.self()
    local a = on(1)
    weir.send(a, "run", "local ok, e = pcall(weir.sleep, 3600) weir.names_code = e.code", main)
    on(2)
    weir.call(on(1), "x")
    weir.stop_all(10)
  end)

  it("shutdown_S13_close_their_states_while_their_actors_work", function()
    for round = 1, 10 do
      weir.shutdown()
      weir.system {workers = 3}
      for loop = 1, 3 do
        local a = on(loop)
        weir.send(a, "run", "kept = {} for i = 1, 50 do kept[i] = weir.start(a, 'x') end", on(1 + loop % 3))
        weir.send(a, "run", "while true do weir.sleep(0) end")
        weir.send(a, "x")
        if round % 2 == 0 then
          weir.call(on(loop), "x")
        end
      end
    end
    weir.shutdown()
  end)

  it("shutdown_S13_os_exit_with_other_loops_at_work", function()
    local file = helper.temporary ".lua"
    helper.write(file, [[
      local weir = require "weir"
      weir.system {workers = 2}
      for loop = 1, 2 do
        weir.send(weir.spawn_with({loop = loop}, "weir_spec_echo"), "run", "while true do weir.sleep(0) end")
      end
      weir.sleep(0.01)
      os.exit(4, (...) == "close")
    ]])
    -- os.exit leaves its memory to the kernel: no leak checker.
    local environment = ("ASAN_OPTIONS=detect_leaks=0 LUA_PATH=%s LUA_CPATH=%s "):format(helper.quote(package.path), helper.quote(os.getenv "LUA_CPATH"))
    for _, how in ipairs {"close", "leave", "close", "leave"} do
      assert.are.same({4, "", ""}, {helper.shell(environment .. "luajit " .. file .. " " .. how)})
    end
    assert.are.same({4, "", ""}, {helper.shell(environment .. helper.quote(helper.program) .. " " .. file)})
    os.remove(file)
  end)

  it("loop_E5_os_exit_on_another_loop_ends_the_program", function()
    local code, out, err = helper.shell(("LUA_PATH=%s %s -e %s"):format(helper.quote(package.path), helper.quote(helper.program), helper.quote [[
      local weir = require "weir"
      weir.system {workers = 1}
      weir.on_shutdown(function() print "hook" end)
      weir.send(weir.spawn_with({loop = 1}, "weir_spec_echo"), "run", "os.exit(6)")
      weir.sleep(1000)
    ]]))
    assert.are.same({6, "hook\n", ""}, {code, out, err})
  end)

  it("load_models_whose_actors_live_on_the_main_loop", function()
    helper.smollm2()
    local a = weir.spawn_with({loop = 1}, module("weir_spec_model", [[
      local weir = require "weir"
      return function()
        local m = weir.receive()
        local reports = 0
        local model = weir.load("smollm2", {progress = function() reports = reports + 1 end})
        local pieces = {}
        for piece in model:generate {prompt = "The capital of France is", max_tokens = 4} do
          pieces[#pieces + 1] = piece
        end
        m:reply(table.concat(pieces), weir.loop(), weir.stats(model.generator).loop, reports > 0)
        model:close()
      end
    ]]))
    local text, loop, generator, reported = weir.call_with({to = a, timeout = false}, "go")
    assert.is_truthy(text:find("Paris", 1, true))
    assert.are.same({1, 0, true}, {loop, generator, reported})
  end)

  it("conserve_messages_between_states", function()
    local list = {}
    for i = 1, 9 do
      list[i] = on(i % 3)
    end
    for i = 1, 900 do
      weir.send(list[1 + i % 9], "run", "weir.try_send(a, 'x', b)", list[1 + (i * 7) % 9], i)
    end
    for i = 1, 9 do
      weir.call(list[i], "x")
    end
    weir.stop_all(10)
    local s = weir.stats()
    assert.are.equal(s.sent, s.handled + s.dead + s.queued)
    assert.are.equal(s.calls, s.calls_ended)
  end)
end)
