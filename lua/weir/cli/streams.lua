--- weir streams: who owns which stream once a model is loaded.
local args = require "weir.args"
local weir = require "weir"

local streams = {
  summary = "load a model and list the streams of its actors",
  usage = "MODEL [option...]",
  positional = {"MODEL"},
  options = args.load,
}

function streams.run(o)
  local model = args.load_model(o)
  model:complete {tokens = {0}, max_tokens = 1}
  io.stdout:write(("%-8s %-16s %-36s %-11s %9s %9s %9s\n"):format("device", "stream", "owner", "state", "submitted", "completed", "busy"))
  for _, stream in ipairs(weir.streams()) do
    io.stdout:write(("%-8s %-16s %-36s %-11s %9d %9d %7.2f s\n"):format(
      stream.device, stream.name, tostring(stream.owner), stream.state, stream.submitted, stream.completed, stream.busy))
  end
  return 0
end

return streams
