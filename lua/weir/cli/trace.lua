--- weir trace: the messages of a short generation, and which threads worked.
local args = require "weir.args"
local core = require "weir.core"
local weir = require "weir"

local trace = {
  summary = "show the messages of a short generation and the threads that worked",
  usage = "MODEL [--prompt TEXT] [-n 16]",
  positional = {"MODEL"},
  options = args.join({
    {flags = "--prompt", type = "string", value = "TEXT", text = "text to go on from", default = "Once upon a time"},
    {flags = "-n", type = "positive", text = "tokens (default: 16)", default = 16},
  }, args.load),
}

--- Processor time of each thread of this process: array of {id, name, seconds}.
function trace.threads()
  local threads = {}
  for _, id in ipairs(core.list_folder "/proc/self/task") do
    local file = id:match "^%d+$" and io.open("/proc/self/task/" .. id .. "/stat")
    local line = file and file:read "*a" or ""
    if file then
      file:close()
    end
    local name, rest = line:match "%((.*)%) (.*)"
    if name then
      local fields = {}
      for word in rest:gmatch "%S+" do
        fields[#fields + 1] = word
      end
      threads[#threads + 1] = {id = tonumber(id), name = name, seconds = (fields[12] + fields[13]) / 100}
    end
  end
  table.sort(threads, function(a, b) return a.id < b.id end)
  return threads
end

local function name_of(names, address)
  local id = address:id()
  return id == 0 and "nobody" or names[address] or tostring(address)
end

local function show_messages(counts, names)
  local rows = {}
  for _, row in ipairs(counts) do
    rows[#rows + 1] = ("%-12s %-12s %-6s %-12s %8d %12d"):format(name_of(names, row.from), name_of(names, row.to), row.kind, row.verb, row.count, row.bytes)
  end
  table.sort(rows)
  io.stdout:write(("%-12s %-12s %-6s %-12s %8s %12s\n"):format("from", "to", "kind", "verb", "count", "bytes"))
  io.stdout:write(table.concat(rows, "\n"), "\n")
end

local function show_threads(before, after)
  local was = {}
  for _, thread in ipairs(before) do
    was[thread.id] = thread.seconds
  end
  io.stdout:write "\nprocessor time of the threads while generating\n"
  for _, thread in ipairs(after) do
    local role = thread.id == core.pid() and "the loop: actors and messages, no kernels" or ""
    io.stdout:write(("  %8d %-16s %7.2f s  %s\n"):format(thread.id, thread.name, thread.seconds - (was[thread.id] or 0), role))
  end
end

function trace.run(o)
  local model = args.load_model(o)
  local names = {}
  for _, actor in ipairs(weir.actors()) do
    names[actor.address] = actor.name
  end
  local before = trace.threads()
  local finish
  local counts = weir.trace(function()
    finish = select(2, model:complete {prompt = o.prompt, max_tokens = o.n})
  end)
  show_messages(counts, names)
  show_threads(before, trace.threads())
  io.stdout:write(("\n%d prompt tokens, %d generated\n"):format(finish.prompt_tokens, finish.tokens))
  return 0
end

return trace
