--- Where fetched models are kept: ${XDG_DATA_HOME:-~/.local/share}/weir/models, as NAME.gguf, a folder NAME, or parts NAME-00001-of-00003.gguf.
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

-- Bytes of the files of a folder, and whether it holds a model.
local function measure(folder)
  local size, model = 0, false
  for _, file in ipairs(core.list_folder(folder)) do
    size = size + (core.file_size(folder .. "/" .. file) or 0)
    model = model or file:match "%.gguf$" ~= nil or file:match "%.safetensors$" ~= nil
  end
  return size, model
end

-- The model that an entry of the folder belongs to, its path and bytes; nil: none.
local function model_of(entry)
  local path = store.folder() .. "/" .. entry
  local size = core.file_size(path)
  local part = entry:match "^(.+)%-%d%d%d%d%d%-of%-%d%d%d%d%d%.gguf$"
  if size then
    return part or entry:match "^(.+)%.gguf$", path, size
  end
  local bytes, model = measure(path)
  return model and entry:sub(1, 1) ~= "." and entry or nil, path, bytes
end

--- What is there: an array of {name, path, size}, by name. A model is NAME.gguf, a folder NAME, or the parts of a split file.
-- @treturn table
function store.list()
  local models, known = {}, {}
  local entries = core.list_folder(store.folder())
  table.sort(entries)
  for _, entry in ipairs(entries) do
    local name, path, size = model_of(entry)
    if name and known[name] then
      known[name].size = known[name].size + size
    elseif name then
      known[name] = {name = name, path = path, size = size}
      models[#models + 1] = known[name]
    end
  end
  table.sort(models, function(a, b) return a.name < b.name end)
  return models
end

return store
