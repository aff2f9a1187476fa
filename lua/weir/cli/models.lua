--- weir models: what weir fetch has kept.
local store = require "weir.store"
local info = require "weir.cli.info"

local models = {summary = "list the models that weir fetch has kept", usage = ""}

function models.run()
  local list = store.list()
  for _, model in ipairs(list) do
    io.stdout:write(("%-16s %10s  %s\n"):format(model.name, info.bytes(model.size), model.path))
  end
  if #list == 0 then
    io.stdout:write("none in ", store.folder(), "; weir fetch smollm2 gets one\n")
  end
  return 0
end

return models
