-- Cases of waits, by their ids: where one may wait and where not, and what ends a wait.
local weir = require "weir"
local core = require "weir.core"
local Model = require "weir.model"
local helper = require "helper"

local function echo()
  while true do
    local m = weir.receive()
    m:reply(m:args())
  end
end

local function silent()
  while true do
    weir.receive():defer()
  end
end

-- A model whose generator never has a next piece.
local function mute_model()
  local generator = weir.spawn(function()
    while true do
      local m = weir.receive()
      if m.verb == "generate" then
        m:reply(1)
      elseif m.verb == "next" then
        m:defer()
      end
    end
  end)
  return setmetatable({info = {}, generator = generator}, Model)
end

-- Every wait there is: what may suspend an actor. Each gets an actor that never answers.
local waits = {
  {"receive", function() weir.receive() end},
  {"receive_with_a_timeout", function() weir.receive(3600) end},
  {"call", function(peer) weir.call_with({to = peer, timeout = false}, "x") end},
  {"try_call", function(peer) weir.try_call_with({to = peer, timeout = false}, "x") end},
  {"sleep", function() weir.sleep(3600) end},
  {"await", function(peer) weir.await(weir.start_with({to = peer, timeout = false}, "x")) end},
  {"await_with_a_timeout", function(peer) weir.await(weir.start(peer, "x"), 3600) end},
  {"await_all", function(peer) weir.await_all {weir.start(peer, "x"), weir.start(peer, "y")} end},
  {"await_any", function(peer) weir.await_any {weir.start(peer, "x"), weir.start(peer, "y")} end},
  {"generate", function() for _ in mute_model():generate {prompt = "x"} do error "a piece" end end},
}

describe("cases of waits", function()
  local uncaught = weir.uncaught
  before_each(function()
    weir.shutdown()
    weir.uncaught = function() end
  end)
  after_each(function()
    weir.guard(false)
    weir.uncaught = uncaught
  end)

  -- One rule: kill ends any wait at once, nothing of the actor's code runs any more, and what it waited for is forgotten.
  for _, wait in ipairs(waits) do
    it("actors_A35_kill_during_" .. wait[1], function()
      local peer, after = weir.spawn(silent), false
      local a = weir.spawn(function()
        pcall(wait[2], peer)
        after = true
      end)
      weir.sleep(0.001)
      local timers = weir.stats().timers
      assert.is_true(weir.kill(a))
      assert.is_false(weir.kill(a))
      helper.raises("ENOACTOR", weir.stats, a)
      weir.sleep(0.001)
      assert.is_false(after)
      assert.is_true(weir.stats().timers <= timers)
      local s = weir.stats()
      assert.are.equal(s.calls, s.calls_ended)
    end)

    it("actors_A35_kill_before_" .. wait[1], function()
      local peer, after = weir.spawn(silent), false
      local a = weir.spawn(function()
        weir.receive()
        pcall(wait[2], peer)
        after = true
      end)
      weir.sleep(0.001)
      weir.send(a, "go")
      weir.kill(a)
      weir.sleep(0.001)
      assert.is_false(after)
    end)

    -- The other half of the rule: stop is taken in receive only. Other waits end by what they wait for; the next receive ends the actor.
    it("actors_A35_stop_during_" .. wait[1], function()
      local peer, after = weir.spawn(silent), false
      local a = weir.spawn(function()
        pcall(wait[2], peer)
        after = true
        weir.receive()
        after = "received"
      end)
      weir.sleep(0.001)
      assert.is_true(weir.stop(a))
      weir.sleep(0.001)
      local alive = pcall(weir.stats, a)
      assert.are.equal(wait[1]:match "^receive" == nil, alive)
      assert.is_false(after)
      weir.kill(a)
    end)
  end

  it("actors_A35_stop_before_a_wait_ends_the_actor_in_its_next_receive", function()
    local steps = {}
    local a = weir.spawn(function()
      weir.receive()
      steps[1] = weir.call(weir.spawn(echo), "x", "call")
      weir.sleep(0.001)
      steps[2] = weir.await(weir.start(weir.spawn(echo), "x", "await"))
      weir.receive()
      steps[3] = "not reached"
    end)
    weir.send(a, "go")
    weir.stop(a)
    weir.run()
    assert.are.same({"call", "await"}, steps)
    helper.raises("ENOACTOR", weir.stats, a)
  end)

  it("actors_A37_what_is_dead_can_be_printed_asked_and_sent_to", function()
    for _, fn in ipairs {function() end, function() error "dies" end, function() weir.kill(weir.self()) end, function() weir.exit() end} do
      local a = weir.spawn(fn)
      weir.run()
      assert.are.equal("actor " .. ("%.0f"):format(a:id()), tostring(a))
      local stats = select(2, pcall(weir.stats, a))
      assert.are.equal("ENOACTOR", stats.code)
      helper.raises("ENOACTOR", weir.send, a, "x")
      helper.raises("ENOACTOR", weir.call, a, "x")
      helper.raises("ENOACTOR", weir.await, weir.start(a, "x"))
      assert.are.equal("ENOACTOR", select(2, weir.try_send(a, "x")).code)
      assert.is_false(weir.kill(a))
      assert.is_false(weir.stop(a))
      weir.monitor(a)
      assert.are.equal("ENOACTOR", weir.receive()[2].code)
      for _, row in ipairs(weir.actors()) do
        assert.are_not.equal(a, row.address)
      end
    end
    local code, out, err = helper.weir {"-e", [[
      local weir = require "weir"
      local a = weir.spawn(function() end)
      weir.run()
      print(a, weir.kill(a), weir.try_send(a, "x"))
    ]]}
    assert.are.equal("", err)
    assert.are.equal(0, code)
    assert.is_truthy(out:find "^actor %d+\tfalse\tnil\tENOACTOR")
  end)

  -- Every kind of function that somebody else calls: whether it may wait in an actor. false: the name that the error blames.
  local function main(fn) fn() end
  local places = {
    {"the_actor_itself", main, true},
    {"pcall", function(fn) assert(pcall(fn)) end, true},
    {"xpcall", function(fn) assert(xpcall(fn, print)) end, true},
    {"an_iterator", function(fn) for _ in function(_, last) if not last then fn() return true end end do end end, true},
    {"a_coroutine_that_was_wrapped", function(fn) coroutine.wrap(fn)() end, true},
    {"a_coroutine_that_was_resumed", function(fn) assert(coroutine.resume(coroutine.create(fn))) end, true},
    {"a_coroutine_in_a_coroutine", function(fn) coroutine.wrap(function() coroutine.wrap(fn)() end)() end, true},
    {"an_index_metamethod", function(fn) local _ = setmetatable({}, {__index = function() fn() end}).x end, true},
    {"an_arithmetic_metamethod", function(fn) local _ = setmetatable({}, {__add = function() fn() end}) + 1 end, true},
    {"a_call_metamethod", function(fn) setmetatable({}, {__call = function() fn() end})() end, true},
    {"tostring", function(fn) tostring(setmetatable({}, {__tostring = function() fn() return "" end})) end, true},
    {"a_function_that_was_loaded", function(fn) assert(loadstring "(...)()")(fn) end, true},
    {"a_spawned_function", function(fn)
      local a = weir.spawn(function() weir.receive() fn() end)
      weir.monitor(a)
      weir.send(a, "x")
      weir.receive()
    end, true},
    {"string_gsub", function(fn) string.gsub("a", "a", function() fn() end) end, "string.gsub"},
    {"table_sort", function(fn) table.sort({2, 1}, function(a, b) fn() return a < b end) end, "table.sort"},
    {"string_format", function(fn) string.format("%s", setmetatable({}, {__tostring = function() fn() return "" end})) end, "string.format"},
    {"load_readers", function(fn) load(function() fn() end) end, "load"},
    {"require", function(fn)
      package.preload.weir_spec_place = function() fn() return true end
      package.loaded.weir_spec_place = nil
      require "weir_spec_place"
    end, "require"},
    {"an_error_handler", function(fn) xpcall(function() error "x" end, function() fn() end) end, "an error handler (xpcall)"},
    {"a_finalizer", function(fn)
      getmetatable(newproxy(true)).__gc = fn
      collectgarbage()
      collectgarbage()
    end, "__gc"},
    {"a_hook", function(fn) debug.sethook(function() debug.sethook() fn() end, "l") local x = 1 return x end, "hook"},
    {"table_foreach", function(fn) table.foreach({1}, function() fn() return true end) end, true},
    {"dofile", function(fn)
      local file = helper.temporary ".lua"
      helper.write(file, "weir_spec_place()")
      rawset(_G, "weir_spec_place", fn)
      local ok, e = pcall(dofile, file)
      rawset(_G, "weir_spec_place", nil)
      os.remove(file)
      assert(ok, e)
    end, "dofile"},
  }
  local settings = {
    {"plainly", function() end, function() end},
    {"without_the_compiler", jit.off, jit.on},
    {"in_guard_mode", function() weir.guard {limit = 30} end, function() weir.guard(false) end},
    {"under_the_test_driver", function() weir.system {driver = "test", seed = 5} end, function() end},
  }

  for _, setting in ipairs(settings) do
    it("loop_E27_each_place_may_wait_or_says_so_" .. setting[1], function()
      for _, place in ipairs(places) do
        weir.shutdown()
        setting[2]()
        local peer, done, text = weir.spawn(echo), false, nil
        weir.spawn(function()
          local function wait()
            local ok, e = pcall(function()
              assert(weir.call(peer, "x", 7) == 7)
              weir.sleep(0)
              assert(weir.await(weir.start(peer, "x", 8)) == 8)
            end)
            done = ok
            text = text or not ok and tostring(e)
          end
          pcall(place[2], wait)
        end)
        weir.run()
        setting[3]()
        if place[3] == true then
          assert.is_true(done, place[1] .. ": " .. tostring(text))
        else
          assert.is_false(done, place[1])
          assert.is_truthy(text and text:find("EYIELD", 1, true) and text:find(place[3], 1, true), place[1] .. ": " .. tostring(text))
        end
      end
    end)

    it("loop_E27_each_function_that_weir_calls_may_wait_or_says_so_" .. setting[1], function()
      setting[2]()
      local peer, seen = weir.spawn(echo), {}
      local function wait(name)
        local ok, e = pcall(weir.call, peer, "x", 7)
        seen[name] = ok or e.code
      end
      weir.uncaught = function() wait "uncaught" end
      weir.spawn(function() error "dies" end)
      weir.run()
      weir.trace(function() wait "trace" end)
      weir.on_shutdown(function() peer = weir.spawn(echo) wait "on_shutdown" end)
      weir.shutdown()
      setting[3]()
      assert.are.same({uncaught = "EBUSY", trace = true, on_shutdown = true}, seen)
    end)
  end

  it("loop_E27_a_report_of_the_guard_says_that_it_cannot_wait", function()
    local slow, seen = weir.slow, nil
    weir.guard {limit = 0.01}
    local a = weir.spawn(function()
      weir.receive()
      local start = weir.now()
      while not seen and weir.now() - start < 5 do end
    end)
    local peer = weir.spawn(echo)
    weir.slow = function(address)
      if address == a then
        local ok, e = pcall(weir.call, peer, "x")
        seen = ok or e.code
      end
    end
    weir.send(a, "x")
    weir.run()
    weir.slow = slow
    assert.is_truthy(seen == "EYIELD" or seen == "EBUSY", tostring(seen))
  end)

  it("main_chunks_may_wait_anywhere_but_in_the_loop", function()
    local peer = weir.spawn(echo)
    for _, place in ipairs(places) do
      if place[1] ~= "a_finalizer" and place[1] ~= "a_hook" and place[1] ~= "a_spawned_function" then
        local done
        pcall(place[2], function() done = weir.call(peer, "x", 7) end)
        assert.are.equal(7, done, place[1])
      end
    end
  end)

  -- ---- the compiler, FFI, the collector ----

  it("lua_L1_a_compiled_loop_whose_C_function_rarely_runs_Lua", function()
    local count = 0
    local a = weir.spawn(function()
      while true do
        weir.receive()
        count = count + 1
      end
    end)
    for i = 1, 5000 do
      weir.send(a, "x", i)
      if i % 1000 == 0 then
        weir.sleep(0)
        weir.run()
      end
    end
    assert.are.equal(5000, count)
  end)

  it("lua_L3_an_actor_outlives_the_coroutine_that_spawned_it", function()
    local a
    coroutine.wrap(function() a = weir.spawn(function() while true do weir.receive():reply "here" end end) end)()
    collectgarbage()
    collectgarbage()
    assert.are.equal("here", weir.call(a, "x"))
  end)

  it("lua_L5_no_Lua_runs_inside_a_send", function()
    local inside, nested = false, false
    weir.uncaught = function() nested = nested or inside end
    for i = 1, 300 do
      local a = weir.spawn(function() weir.receive() nested = nested or inside error "dies" end)
      inside = true
      weir.send(a, "x", i)
      weir.try_send(a, "x")
      weir.kill(i % 2 == 0 and a or 4242)
      inside = false
    end
    weir.run()
    assert.is_false(nested)
  end)

  -- Between Lua and weir there are lua_CFunctions only: nothing that FFI calls can switch coroutines, and no C code calls Lua through an FFI callback.
  local function sources(pattern)
    local list = {}
    for name in io.popen(("find %s -name %s"):format(helper.quote(helper.root .. "/lua/"), helper.quote(pattern))):lines() do
      list[name] = helper.read(name)
    end
    assert(next(list))
    return list
  end

  it("lua_L7_no_FFI_call_leads_into_weir", function()
    local harmless = {fread = true, fwrite = true} -- of the C library: they know no Lua
    for name, text in pairs(sources "*.lua") do
      assert.is_nil(text:find "ffi%.load", name)
      for called in text:gmatch "ffi%.C%.([%w_]+)" do
        assert.is_true(harmless[called], name .. " calls " .. called)
      end
    end
  end)

  it("lua_L9_no_FFI_callback_is_made", function()
    for name, text in pairs(sources "*.lua") do
      assert.is_nil(text:find "ffi%.cast%s*%(?%s*[\"'][^\"']*%(%*%)", name)
      assert.is_nil(text:find "ffi%.typeof%s*%(?%s*[\"'][^\"']*%(%*%)", name)
    end
  end)

  it("lua_L9_functions_that_weir_keeps_are_kept", function()
    local ran = {}
    local a = weir.spawn(function() weir.receive() ran.spawned = true error "dies" end)
    weir.on_shutdown(function() ran.hook = true end)
    weir.uncaught = function() ran.uncaught = true end
    collectgarbage()
    collectgarbage()
    weir.send(a, "x")
    weir.run()
    weir.shutdown()
    assert.are.same({spawned = true, hook = true, uncaught = true}, ran)
  end)

  it("lua_L31_ten_thousand_pending_calls_and_iterators_are_collected", function()
    local peer, seen = weir.spawn(echo), setmetatable({}, {__mode = "k"})
    for _ = 1, 10 do
      for _ = 1, 1000 do
        local p = weir.start(peer, "x", "y")
        seen[p] = true
      end
      weir.run()
      collectgarbage()
    end
    collectgarbage()
    assert.is_nil(next(seen))
    assert.are.equal(weir.stats().calls, weir.stats().calls_ended)
  end)

  -- ---- generations ----

  -- A model whose generator counts upwards and notes what it is told.
  local function counting_model(log)
    local last = 0
    local generator = weir.spawn(function()
      while true do
        local m = weir.receive()
        log[#log + 1] = m.verb
        if m.verb == "generate" then
          m:reply(1)
        elseif m.verb == "next" then
          last = last + 1
          m:reply {text = tostring(last), tokens = weir.bin "", done = last == 5, reason = "length", prompt_tokens = 1, generated = last, prefill_s = 0, decode_s = 0}
        end
      end
    end)
    return setmetatable({info = {}, generator = generator}, Model)
  end

  local function cancels(log)
    local n = 0
    for _, verb in ipairs(log) do
      n = n + (verb == "cancel" and 1 or 0)
    end
    return n
  end

  it("a_generation_left_by_break_stalls_and_goes_on_when_it_is_asked", function()
    local log, pieces = {}, {}
    local it = counting_model(log):generate {prompt = "x"}
    for piece in it do
      pieces[#pieces + 1] = piece
      if piece == "2" then
        break
      end
    end
    weir.sleep(0.001)
    assert.are.same({"generate", "next", "next"}, log)
    for piece in it do
      pieces[#pieces + 1] = piece
    end
    assert.are.equal("12345", table.concat(pieces))
    assert.are.equal("length", it.finish.reason)
    assert.are.equal(0, cancels(log))
    assert.is_nil(it())
  end)

  it("a_generation_is_cancelled_by_close_and_by_collection_once", function()
    local log = {}
    local model = counting_model(log)
    local it = model:generate {prompt = "x"}
    it()
    it:close()
    it:close()
    weir.run()
    assert.are.equal(1, cancels(log))
    assert.is_nil(it())
    it = model:generate {prompt = "x"}
    it()
    it = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    weir.run()
    assert.are.equal(2, cancels(log))
  end)

  it("a_generation_is_cancelled_when_its_actor_has_ended_and_is_collected", function()
    local log = {}
    local model = counting_model(log)
    local a = weir.spawn(function()
      for _ in model:generate {prompt = "x"} do
        weir.sleep(3600)
      end
    end)
    weir.sleep(0.001)
    weir.kill(a)
    collectgarbage()
    collectgarbage()
    weir.sleep(0.001)
    assert.are.equal(1, cancels(log))
  end)

  it("waits_in_a_generation_s_loop", function()
    local log, peer, got = {}, weir.spawn(echo), {}
    local model = counting_model(log)
    local function use()
      for piece in model:generate {prompt = "x"} do
        got[#got + 1] = weir.await(weir.start(peer, "x", piece))
        weir.sleep(0)
      end
    end
    weir.spawn(use)
    weir.run()
    assert.are.equal("12345", table.concat(got))
    assert.is_true(core.made() ~= nil)
  end)
end)
