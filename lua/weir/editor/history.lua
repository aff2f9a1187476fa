--- What was entered before: a bounded list, kept in a file that is replaced as a whole. An entry is a line of the file; line ends in it are written \n.
-- @module weir.editor.history
local core = require "weir.core"

local history = {}
history.__index = history

local max_entries, max_bytes = 1000, 256 * 1024 -- the file is read and written as a whole at each entry

local function encode(entry)
  return (entry:gsub("[\\\n]", {["\\"] = "\\\\", ["\n"] = "\\n"}))
end

local function decode(line)
  return (line:gsub("\\(.)", {n = "\n", ["\\"] = "\\"}))
end

--- The file of the prompt's history.
function history.place(name)
  local state = os.getenv "XDG_STATE_HOME"
  if not state or state:sub(1, 1) ~= "/" then
    state = (os.getenv "HOME" or "") .. "/.local/state"
  end
  return state .. "/weir/" .. (name or "history")
end

local function read(path)
  local file = path and io.open(path, "rb")
  local entries = {}
  if file then
    local text = file:read "*a" or ""
    file:close()
    for line in text:gmatch "([^\n]+)" do
      entries[#entries + 1] = decode(line)
    end
  end
  return entries
end

-- Forgets the oldest entries beyond the bounds.
local function bounded(entries)
  local bytes, first = 0, #entries + 1
  while first > 1 and #entries - first + 1 < max_entries do
    bytes = bytes + #entries[first - 1] + 1
    if bytes > max_bytes then
      break
    end
    first = first - 1
  end
  return first > 1 and {unpack(entries, first)} or entries
end

--- Opens a history.
-- @tparam ?string path nil: it is kept nowhere
function history.open(path)
  return setmetatable({path = path, entries = bounded(read(path))}, history)
end

--- Adds an entry and writes the file, together with what other programs added meanwhile.
-- @treturn ?string why it could not be written; the entry is there all the same
function history:add(entry)
  if not entry:find "%S" or self.entries[#self.entries] == entry or #entry > max_bytes / 4 then
    return nil
  end
  self.entries[#self.entries + 1] = entry
  self.entries = bounded(self.entries)
  if not self.path then
    return nil
  end
  local all = read(self.path)
  if all[#all] ~= entry then
    all[#all + 1] = entry
  end
  all = bounded(all)
  for i, e in ipairs(all) do
    all[i] = encode(e)
  end
  local ok, reason = core.make_folder(self.path:match "^(.*)/")
  if ok then
    ok, reason = core.replace_file(self.path, table.concat(all, "\n") .. "\n")
  end
  return not ok and reason or nil
end

--- The newest entry before number `before` that contains the text; its number, or nil.
function history:find(text, before)
  for i = before - 1, 1, -1 do
    if self.entries[i]:find(text, 1, true) then
      return i
    end
  end
  return nil
end

return history
