-- Waiting for descriptors: core.wait_fd in actors and in the main chunk.
local ffi = require "ffi"
local core = require "weir.core"
local weir = require "weir"
local helper = require "helper"

ffi.cdef [[
int pipe(int descriptors[2]);
int close(int descriptor);
long write(int descriptor, const void *bytes, size_t n);
]]

describe("wait_fd", function()
  local from, to

  before_each(function()
    local ends = ffi.new "int[2]"
    assert.are.equal(0, ffi.C.pipe(ends))
    from, to = ends[0], ends[1]
  end)
  after_each(function()
    ffi.C.close(from)
    ffi.C.close(to)
  end)

  local function put(text)
    assert.are.equal(#text, tonumber(ffi.C.write(to, text, #text)))
  end

  -- Waits; what core.waited says.
  local function wait(...)
    core.wait_fd(...)
    return core.waited()
  end

  it("suspends_the_actor_and_not_the_loop", function()
    local log = {}
    local reader = weir.spawn(function()
      log[#log + 1] = "waits"
      assert(wait(from, "r"))
      log[#log + 1] = core.read(from, 100)
    end)
    weir.monitor(reader)
    weir.spawn(function()
      weir.sleep(0.01)
      log[#log + 1] = "others go on"
      put "hello"
    end)
    weir.receive(10)
    assert.are.same({"waits", "others go on", "hello"}, log)
  end)

  it("runs_the_loop_in_a_main_chunk", function()
    weir.spawn(function()
      weir.sleep(0.01)
      put "x"
    end)
    assert.is_true(wait(from, "r"))
    assert.is_true(wait(to, "w"))
    assert.are.equal("x", core.read(from, 1))
  end)

  it("ends_with_its_timeout", function()
    assert.is_false(wait(from, "r", 0.01))
    put "x"
    assert.is_true(wait(from, "r", 10))
    assert.is_true(wait(from, "r", 10))
  end)

  it("leaves_nothing_behind_when_its_actor_dies", function()
    local a = weir.spawn(function() wait(from, "r", 1000) end)
    weir.sleep(0.01)
    assert.is_true(weir.kill(a))
    weir.run() -- ends: nothing is watched any more
    put "x"
    assert.is_true(wait(from, "r", 10))
  end)

  it("tells_the_end_and_refuses_what_cannot_be_waited_for", function()
    ffi.C.close(to)
    assert.is_true(wait(from, "r", 10))
    assert.are.same({nil, "end"}, {core.read(from, 10)})
    to = -1
    assert.is_false((pcall(wait, 987654, "r")))
    helper.raises("EINVAL", wait, from, "x")
    assert.is_true(wait(from, "r", 10))
  end)

  it("keeps_the_mail_of_who_waits", function()
    local a = weir.spawn(function()
      wait(from, "r")
      local m = weir.receive()
      m:reply(core.read(from, 10) .. m[1])
    end)
    local p = weir.start(a, "mail", " and mail")
    weir.sleep(0.01)
    assert.is_false(p:ended())
    put "bytes"
    assert.are.equal("bytes and mail", weir.await(p, 10))
  end)
end)
