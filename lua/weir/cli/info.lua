--- weir info: what is in a model's file.
local core = require "weir.core"

local info = {
  summary = "say what is in a model's file, and whether weir runs it",
  usage = "FILE [--tensors]",
  positional = {"FILE"},
  options = {
    {flags = "--tensors", type = "flag", text = "list every tensor"},
  },
}

--- A number of bytes for people.
function info.bytes(n)
  for _, unit in ipairs {"B", "KB", "MB"} do
    if n < 1000 then
      return (unit == "B" and "%d %s" or "%.1f %s"):format(n, unit)
    end
    n = n / 1000
  end
  return ("%.2f GB"):format(n)
end

local function printable(text)
  text = text:gsub("%c", function(c) return ("\\x%02x"):format(c:byte()) end)
  return #text > 60 and text:sub(1, 60) .. "..." or text
end

local function show_value(key)
  local value = key.value
  if type(value) ~= "table" then
    return type(value) == "string" and printable(value) or tostring(value)
  end
  local shown = {}
  for i, element in ipairs(value) do
    shown[i] = type(element) == "string" and printable(element) or tostring(element)
  end
  return ("%d x %s: %s%s"):format(key.count, key.element, table.concat(shown, ", "), key.count > #value and ", ..." or "")
end

local function show_types(tensors)
  local types, order = {}, {}
  for _, t in ipairs(tensors) do
    if not types[t.type] then
      types[t.type] = {count = 0, size = 0}
      order[#order + 1] = t.type
    end
    types[t.type].count = types[t.type].count + 1
    types[t.type].size = types[t.type].size + t.size
  end
  table.sort(order)
  for _, name in ipairs(order) do
    io.stdout:write(("  %-8s %5d tensors %12s\n"):format(name, types[name].count, info.bytes(types[name].size)))
  end
end

local function show_verdict(file)
  if file.error then
    io.stdout:write("weir does not run it: ", tostring(file.error), "\n")
  else
    io.stdout:write(("weir runs it: %.1f M parameters, %s in memory\n"):format(file.parameters / 1e6, info.bytes(file.bytes)))
  end
end

function info.run(o)
  local file = core.gguf_info(core.model_locate(o[1]))
  io.stdout:write(("%s: %s, %d keys, %d tensors\n"):format(file.path, info.bytes(file.size), #file.keys, #file.tensors))
  for _, key in ipairs(file.keys) do
    io.stdout:write(("  %s = %s\n"):format(printable(key.name), show_value(key)))
  end
  show_types(file.tensors)
  for _, t in ipairs(o.tensors and file.tensors or {}) do
    io.stdout:write(("  %-40s %-8s [%s] %s\n"):format(printable(t.name), t.type, table.concat(t.dims, ", "), info.bytes(t.size)))
  end
  show_verdict(file)
  return 0
end

return info
