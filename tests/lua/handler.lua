-- handler.lua: busted's results in the form of the C tests: a line a test, skips with their reason, and a failure if there was no test at all.
local busted = require "busted"

local function write(...)
  io.stdout:write(...)
  io.stdout:write("\n")
  io.stdout:flush()
end

local function describe(failure)
  local message = failure.message
  if type(message) ~= "string" then
    local ok, text = pcall(tostring, message)
    message = ok and text or type(message)
  end
  local trace = failure.trace or {}
  write(("    %s:%s: %s"):format(tostring(trace.short_src), tostring(trace.currentline), (message:gsub("\n", "\n    "))))
  if failure.isError and trace.traceback then
    write("    ", (trace.traceback:gsub("\n", "\n    ")))
  end
end

return function(options)
  local handler = require "busted.outputHandlers.base"()
  local counts = {success = 0, failure = 0, pending = 0}

  local function test_start(element)
    write("[ RUN      ] ", handler.getFullName(element))
    return nil, true
  end

  local function test_end(element, _, status)
    local name = handler.getFullName(element)
    if status == "success" then
      counts.success = counts.success + 1
      write("[       OK ] ", name)
    elseif status == "pending" then
      local last = handler.pendings[#handler.pendings]
      counts.pending = counts.pending + 1
      local reason = tostring(last and last.message or "pending"):gsub("^%S+helper%.lua:%d+: ", "")
      write("SKIP ", name, ": ", reason)
      write("[  SKIPPED ] ", name)
    else
      local list = status == "failure" and handler.failures or handler.errors
      counts.failure = counts.failure + 1
      describe(list[#list])
      write("[  FAILED  ] ", name)
    end
    return nil, true
  end

  local function outside_error(element)
    if element.descriptor ~= "it" then
      counts.failure = counts.failure + 1
      describe(handler.errors[#handler.errors])
      write("[  FAILED  ] ", tostring(element.name or element.descriptor))
    end
    return nil, true
  end

  local function suite_end()
    write(("%d passed, %d failed, %d skipped"):format(counts.success, counts.failure, counts.pending))
    if counts.success + counts.failure + counts.pending == 0 then
      write("no tests were run")
      os.exit(1)
    end
    return nil, true
  end

  busted.subscribe({"test", "start"}, test_start, {predicate = handler.cancelOnPending})
  busted.subscribe({"test", "end"}, test_end, {predicate = handler.cancelOnPending})
  busted.subscribe({"error"}, outside_error)
  busted.subscribe({"failure"}, outside_error)
  busted.subscribe({"suite", "end"}, suite_end)
  handler.options = options
  return handler
end
