--- Where fetched models are kept: ${XDG_DATA_HOME:-~/.local/share}/weir/models/NAME.gguf.
-- @module weir.store
local core = require "weir.core"

local store = {}

--- The folder.
-- @treturn string
function store.folder()
  local data = os.getenv "XDG_DATA_HOME"
  if not data or data == "" then
    data = (os.getenv "HOME" or "") .. "/.local/share"
  end
  return data .. "/weir/models"
end

--- The path of a name.
-- @tparam string name
-- @treturn string
function store.path(name)
  return store.folder() .. "/" .. name .. ".gguf"
end

--- What is there: an array of {name, path, size}, by name.
-- @treturn table
function store.list()
  local models = {}
  for _, file in ipairs(core.list_folder(store.folder())) do
    local name = file:match "^(.+)%.gguf$"
    local size = name and core.file_size(store.path(name))
    if size then
      models[#models + 1] = {name = name, path = store.path(name), size = size}
    end
  end
  table.sort(models, function(a, b) return a.name < b.name end)
  return models
end

return store
