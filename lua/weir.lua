--- weir: actors and language models.
--
-- In an actor (a coroutine started with `spawn`) the functions that wait suspend that actor and never the loop; in a main chunk they run the loop until the
-- answer is there. Errors are raised as tables with `code`, `text`, `actor`, `cause`, `traceback`; the `try_` functions return nil and the error instead.
--
-- Values in messages: a table is an array if and only if its keys are 1..n, `{}` is an array; other tables are maps; `weir.null` stands for nil in arrays;
-- strings travel as str, `weir.bin(s)` as bin; integers below 2^53 as integers; bytes of 4 KiB and more arrive as a `weir.buffer`; 64-bit integers beyond
-- 2^53 arrive as int64_t or uint64_t cdata. What is sent is copied: later changes of a table are not seen by the receiver.
-- @module weir
local ffi = require "ffi"
local core = require "weir.core"
local errors = require "weir.errors"
local coroutines = require "weir.coroutines"
local await = require "weir.await"
local guard = require "weir.guard"
local loops = require "weir.loops"
local shutdown = require "weir.shutdown"
require "weir.integers"

local weir = {
  _VERSION = core.version,
  null = core.null, -- stands for nil in arrays and maps
  codes = core.codes, -- name of each error code -> number, text, http, retry
  json = core.json, -- decode(text, exact), encode(value, indent)
}

local core_sent = core.sent
local core_send, core_call, core_result = core.send, core.call, core.result
local core_receive, core_take = core.receive, core.take
local core_start, core_sleep, core_slept = core.start, core.sleep, core.slept

-- ---- errors ----

--- Makes an error object to raise with `error`.
-- @function weir.error
-- @tparam string code "EINVAL" and the like
-- @tparam string text
-- @tparam[opt] table fields
weir.error = errors.new

--- Whether a value is an error object (with this code).
-- @function weir.is_error
weir.is_error = errors.is

--- The text, the causes and the tracebacks of an error.
-- @function weir.report
weir.report = errors.report

--- Called with the address and the error of an actor that died of an error while nobody in Lua monitored it. Replace it to log elsewhere.
-- @param address
-- @param e the error
function weir.uncaught(address, e)
  io.stderr:write("weir: ", tostring(address), " died: ", errors.report(e), "\n")
end

core.register("failed", function(co, value)
  return errors.wrap(value, coroutines.traceback(co, value))
end)
core.register("uncaught", function(address, e)
  return weir.uncaught(address, e)
end)

-- ---- code that does not pause ----

--- Guard mode on or off: see weir.guard.
-- @function weir.guard
weir.guard = guard.guard

--- As pcall, for an evaluation of a main chunk that an interrupt or the guard may end.
-- @function weir.guarded
weir.guarded = guard.guarded

--- The runtime's watchdog on or off: see weir.guard.
-- @function weir.watchdog
weir.watchdog = guard.watchdog

--- What the watchdog has reported.
-- @function weir.slow_handlers
weir.slow_handlers = guard.slow_handlers

--- Called once for a stretch of Lua code that runs longer than the guard's limit; replace it to log elsewhere.
-- @param address who runs; nil: the main chunk
-- @tparam string verb the message it handles; "start": none yet; nil: the main chunk
-- @tparam number elapsed seconds
-- @tparam string traceback where it is
function weir.slow(address, verb, elapsed, traceback)
  local what = address and ("%s has been handling \"%s\""):format(tostring(address), verb) or "the main chunk has been running"
  io.stderr:write(("weir: %s for %.1f s without a pause\n%s\n"):format(what, elapsed, traceback))
end

core.register("slow", function(...)
  return weir.slow(...)
end)

-- The first finalizers that run when a Lua state closes are those of cdata: after this one no finalizer of a script can run the loop, whose actors may be
-- half gone already.
core.register("sentinel", ffi.gc(ffi.new "char[1]", function() core.closing() end))

-- ---- the system ----

--- Makes the system of this Lua state with options; without it the first use makes one.
-- @tparam table options workers (loops beside the main one, each with a thread and a Lua state of its own; default 0), driver ("ev" or "test"), seed
function weir.system(options)
  core.system(options)
end

--- Runs what `weir.on_shutdown` was given, then ends the system and all of its actors, so that another can be made.
function weir.shutdown()
  shutdown.run()
  core.shutdown()
end

--- Runs fn once before everything ends. The program weir does so however it ends: by the end of the script or of -e, by Ctrl-D at the prompt, Ctrl-C, SIGTERM or
-- os.exit; elsewhere weir.shutdown does. The newest runs first. It runs as a main chunk and may wait; its errors are told on standard error.
-- @function weir.on_shutdown
-- @tparam function fn
weir.on_shutdown = shutdown.on

--- Asks every actor to stop, waits until all have ended, kills the rest. Sleeping actors are woken with ESTOPPING. Only for main chunks, at the end: nothing can
-- be started afterwards.
-- @tparam[opt=5] number patience seconds; ETIMEOUT then names those that were killed
function weir.stop_all(patience)
  core.stop_all(patience or 5)
end

--- Runs the loop from a main chunk until nothing is left that could happen by itself, or until `weir.quit`.
function weir.run()
  core.run()
end

--- Makes the running loop return.
function weir.quit()
  core.quit()
end

--- The time of the system's clock in seconds.
-- @treturn number
function weir.now()
  return core.now()
end

--- Counters: of the system, or of one actor.
-- @param[opt] a address
-- @treturn table name of the counter -> number; an actor's also has its name
function weir.stats(a)
  if a == nil then
    return core.stats()
  end
  return core.actor_stats(a)
end

--- All living actors: an array of tables with address, name, counters.
-- @treturn table
function weir.actors()
  return core.actors()
end

--- All streams: an array of tables with device, name, owner, state ("open", "draining", "quarantined"), submitted, completed, busy (seconds), tid.
-- @treturn table
function weir.streams()
  return core.streams()
end

--- Counts messages while fn runs.
-- @tparam function fn
-- @treturn table array of {from, to, verb, kind, count, bytes}
-- @param ... its arguments
function weir.trace(fn, ...)
  core.trace(true)
  local ok, e = pcall(fn, ...)
  local counts = core.trace(false)
  if not ok then
    error(e, 0)
  end
  return counts
end

-- ---- actors ----

local function name_of(fn)
  local info = debug.getinfo(fn, "S")
  return (info.short_src:match("[^/]*$") .. ":" .. info.linedefined):sub(1, 60)
end

local function spawn(options, what, ...)
  local name = options.name
  if type(what) == "string" then
    name = name or what
    what = require(what)
  end
  if type(what) ~= "function" then
    error(errors.new("ETYPE", "weir.spawn takes a function, or the name of a module that returns one; got a " .. type(what)), 2)
  end
  return core.spawn({
    name = (name or name_of(what)):sub(1, 63),
    mailbox_messages = options.messages,
    mailbox_bytes = options.bytes,
    full = options.full,
  }, what, ...)
end

--- Starts an actor that runs fn(...), or require(module)(...). It ends when the function returns.
-- @tparam function|string what
-- @param ... arguments, by reference: the actor lives in this Lua state
-- @return its address: comparable, a key of tables, printable, an integer in messages
function weir.spawn(what, ...)
  return spawn({}, what, ...)
end

--- As spawn, with options. With `loop` the actor runs require(what)(...) on that loop, in its Lua state: what is the name of a module then, the arguments are
-- copied as those of a message, the spawner waits until the actor has been started, and the errors of loading the module are raised here.
-- @tparam table options name; messages and bytes (bounds of its mailbox); full (what becomes of a message that a full mailbox cannot take: "refuse", the default:
-- the sender gets EFULL; "await": weir.send and weir.call wait for room, 30 s or the call's timeout; "drop-oldest"; "drop-newest");
-- loop (a number from 0, the main loop; "main"; "any": the workers in turn)
-- @tparam function|string what
-- @param ... arguments
-- @return its address
function weir.spawn_with(options, what, ...)
  if options.loop ~= nil then
    return loops.spawn({
      loop = options.loop, name = options.name, mailbox_messages = options.messages, mailbox_bytes = options.bytes, full = options.full,
    }, what, ...)
  end
  return spawn(options, what, ...)
end

--- How many loops there are: the main loop and the workers.
-- @treturn number
function weir.loops()
  return core.loops()
end

--- The loop that this code runs on, from 0: the main loop.
-- @treturn number
function weir.loop()
  return core.loop()
end

--- The address object of a number that came in a message.
-- @tparam number id
-- @return the address
function weir.address(id)
  return core.address(id)
end

--- The address of the running actor, or of the main chunk.
-- @return the address
function weir.self()
  return core.self()
end

--- Ends the running actor, orderly or with an error. Does not return.
-- @param[opt] e the error
function weir.exit(e)
  core.exit(e)
end

--- Asks an actor to end, in order behind what was sent to it before. False if there is none.
-- @param a address or name
-- @treturn boolean
function weir.stop(a)
  return core.stop(a)
end

--- Ends an actor at once. May be repeated; false if there is none.
-- @param a address or name
-- @treturn boolean
function weir.kill(a)
  return core.kill(a)
end

--- A message "down" [address, error or nil] arrives when the actor ends.
-- @param a address or name
function weir.monitor(a)
  core.monitor(a)
end

--- Takes a monitor back.
-- @param a address or name
function weir.demonitor(a)
  core.demonitor(a)
end

--- Ties the running actor and another together: when one ends with an error or is killed, the other is ended too, with EEXITED and that error as the cause. An
-- orderly end breaks the link. Linking to an actor that has ended ends the running one.
-- @param a address or name
function weir.link(a)
  core.link(a)
end

--- Takes back a link that the running actor made.
-- @param a address or name
function weir.unlink(a)
  core.unlink(a)
end

-- ---- names ----

--- Gives an actor a name: others find it by that, also where an address is wanted. It is free again when the actor ends. Raises EBUSY (another actor has it).
-- @tparam string name 1 to 63 bytes
-- @param[opt] a address; nil: the running actor's
function weir.register(name, a)
  core.name(name, a)
end

--- Takes a name back. False if nobody has it.
-- @tparam string name
-- @treturn boolean
function weir.unregister(name)
  return core.unname(name)
end

--- Who has a name.
-- @tparam string name
-- @return the address; nil: nobody
function weir.whereis(name)
  return core.whereis(name)
end

--- All names.
-- @treturn table name -> address
function weir.names()
  return core.names()
end

--- The last 256 messages that nobody handled, oldest first.
-- @treturn table array of {at (seconds), from, to, verb, why (an error code), bytes, args}; args is nil where the body was not kept: over 4 KiB, or with buffers in it
function weir.dead_letters()
  return core.dead_letters()
end

-- ---- messages ----

--- Waits for the next message: verb, from, [1].., args(), is_call(), reply(...), error(e), defer(). A call that is neither answered nor deferred by the
-- next receive is answered with ENOREPLY.
-- @tparam[opt] number timeout seconds; nil is returned when they pass
-- @return the message
function weir.receive(timeout)
  core_receive(timeout)
  return core_take()
end

--- Sends a message. Raises EFULL, ENOACTOR; waits where the receiver's full mailbox is awaited (weir.spawn_with), 30 s at most, then ETIMEOUT.
-- @param to address or name
-- @tparam string verb
-- @param ... arguments
-- @treturn boolean true
function weir.send(to, verb, ...)
  return core_send(false, to, verb, ...) or core_sent()
end

--- As send, but returns nil and the error.
-- @param to address or name
-- @tparam string verb
-- @param ... arguments
-- @return true, or nil and the error
function weir.try_send(to, verb, ...)
  return core_send(true, to, verb, ...)
end

--- Calls an actor and returns the values of its reply. 30 s at most.
-- @param to address or name
-- @tparam string verb
-- @param ... arguments
-- @return the values of the reply
function weir.call(to, verb, ...)
  core_call("weir.call", nil, to, verb, ...)
  return core_result(false)
end

--- As call, with options: to, timeout (seconds; false: none).
-- @tparam table options
-- @tparam string verb
-- @param ... arguments
-- @return the values of the reply
function weir.call_with(options, verb, ...)
  core_call("weir.call_with", options.timeout, options.to, verb, ...)
  return core_result(false)
end

--- As call, but returns nil and the error.
-- @param to address or name
-- @tparam string verb
-- @param ... arguments
-- @return the values of the reply, or nil and the error
function weir.try_call(to, verb, ...)
  core_call("weir.try_call", nil, to, verb, ...)
  return core_result(true)
end

--- As call_with, but returns nil and the error.
-- @tparam table options
-- @tparam string verb
-- @param ... arguments
-- @return the values of the reply, or nil and the error
function weir.try_call_with(options, verb, ...)
  core_call("weir.try_call_with", options.timeout, options.to, verb, ...)
  return core_result(true)
end

--- Begins a call and does not wait for it.
-- @param to address
-- @tparam string verb
-- @param ... arguments
-- @return a pending object for weir.await and the like: ended(), cancel(). Dropped, or left by its actor, it cancels the call
function weir.start(to, verb, ...)
  return core_start(nil, to, verb, ...)
end

--- As start, with options.
-- @tparam table options to, timeout (seconds; false: none)
-- @tparam string verb
-- @param ... arguments
-- @return a pending object
function weir.start_with(options, verb, ...)
  return core_start(options.timeout, options.to, verb, ...)
end

weir.await, weir.try_await, weir.await_all, weir.await_any = await.await, await.try_await, await.await_all, await.await_any

--- Waits.
-- @tparam number seconds
function weir.sleep(seconds)
  core_sleep(seconds)
  core_slept()
end

--- Whether a wait could suspend here.
-- @treturn boolean
function weir.yieldable()
  return core.yieldable()
end

-- ---- values ----

local bin_meta = {__name = "weir.bin"}
function bin_meta.__tostring(b)
  return b[1]
end
core.register("bin", bin_meta)

local map_meta = {__name = "weir.map"}
core.register("map", map_meta)

--- A string that travels as bin.
-- @tparam string s
-- @return what to send
function weir.bin(s)
  if type(s) ~= "string" then
    error(errors.new("ETYPE", "weir.bin takes a string, got a " .. type(s)), 2)
  end
  return setmetatable({s}, bin_meta)
end

--- Marks a table as a map, whatever its keys are: {} and tables with integer keys that are no 1..n.
-- @tparam table t
-- @treturn table t
function weir.map(t)
  return setmetatable(t, map_meta)
end

--- The msgpack bytes of values, as a message with these arguments has them.
-- @param ... values
-- @treturn string
function weir.pack(...)
  return core.pack(...)
end

--- The values in msgpack bytes: one array of them. Raises EMSGPACK, EDEPTH.
-- @tparam string bytes
-- @return the values
function weir.unpack(bytes)
  return core.unpack(bytes)
end

--- The memory of a buffer as an FFI pointer to bytes; valid as long as the buffer.
function core.buffer.pointer(buffer)
  return ffi.cast("uint8_t *", buffer:address())
end

-- ---- models and tensors, loaded when they are used ----

local parts = {
  load = "weir.model", tensor = "weir.tensor", template = "weir.template", safetensors = "weir.safetensors",
  supervise = "weir.supervise", reload = "weir.reload",
}

return setmetatable(weir, {
  __names = parts, -- for the prompt's completion
  __index = function(t, key)
    local module = parts[key]
    if not module then
      return nil
    end
    local value = require(module)
    if key == "load" or key == "reload" then
      value = value[key]
    elseif key == "tensor" then
      value = value.new
    end
    rawset(t, key, value)
    return value
  end,
})
