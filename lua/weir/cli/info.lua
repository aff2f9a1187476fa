--- weir info: what is in a model's files, and whether weir runs it. Reads headers only.
local core = require "weir.core"

local info = {
  summary = "say what is in a model's files, and whether weir runs it; or what devices there are",
  usage = "MODEL [--tensors] [--json] | devices [--json]",
  help = "MODEL is a GGUF file (any part of a split one), a safetensors file, a folder, or a name kept by weir fetch. Only headers are read.\n"
    .. "devices: what models can be loaded to (--device), and what is missing where one cannot be used; ./devices is a file of that name.",
  positional = {"MODEL"},
  options = {
    {flags = "--tensors", type = "flag", text = "list every tensor"},
    {flags = "--json", type = "flag", text = "print JSON"},
  },
}

local FORMATS = {gguf = "GGUF", safetensors = "safetensors"}

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

local function count(n)
  for _, unit in ipairs {"", " K", " M"} do
    if n < 1000 then
      return (unit == "" and "%d%s" or "%.4g%s"):format(n, unit)
    end
    n = n / 1000
  end
  return ("%.4g B"):format(n)
end

local function printable(text)
  text = text:gsub("%c", function(c) return ("\\x%02x"):format(c:byte()) end)
  return #text > 60 and text:sub(1, 60) .. "..." or text
end

-- Types in use, the one with most bytes first.
local function types_of(tensors)
  local types, order = {}, {}
  for _, t in ipairs(tensors) do
    local row = types[t.type]
    if not row then
      row = {type = t.type, tensors = 0, bytes = 0}
      types[t.type] = row
      order[#order + 1] = row
    end
    row.tensors = row.tensors + 1
    row.bytes = row.bytes + t.size
  end
  table.sort(order, function(a, b) return a.bytes > b.bytes or a.bytes == b.bytes and a.type < b.type end)
  return order
end

-- What the weights come to, whether weir runs them or not.
local function elements_of(tensors)
  local n = 0
  for _, t in ipairs(tensors) do
    n = n + t.elements
  end
  return n
end

local function setting(model, name)
  for _, s in ipairs(model.settings) do
    if s.name == name then
      return s.value
    end
  end
end

local function tokenizer_kind(model)
  local kind, pre = setting(model, "tokenizer.ggml.model"), setting(model, "tokenizer.ggml.pre")
  if kind then
    return printable(tostring(kind)) .. (pre and ", " .. printable(tostring(pre)) or "")
  end
  return "tokenizer.json"
end

-- ---- for people ----

local function out(text, ...)
  io.stdout:write(text:format(...), "\n")
end

local function shown(value)
  return type(value) == "string" and printable(value) or type(value) == "userdata" and "null" or tostring(value)
end

local function show_value(s)
  if type(s.value) ~= "table" then
    return shown(s.value)
  end
  if s.kind == "map" then
    return "{}"
  end
  local elements = {}
  for i, element in ipairs(s.value) do
    elements[i] = shown(element)
  end
  return ("[%s%s] (%d)"):format(table.concat(elements, ", "), s.count > #s.value and ", ..." or "", s.count)
end

local function show_files(model)
  out("%s: %s, %d file%s, %s", model.path, FORMATS[model.format], #model.files, #model.files == 1 and "" or "s", info.bytes(model.size))
  for _, path in ipairs(#model.files > 1 and model.files or {}) do
    out("  file %s, %s", path, info.bytes(core.file_size(path) or 0))
  end
end

local function show_piece(name, piece)
  return piece and ("; %s %d %s"):format(name, piece.id, printable(piece.piece)) or ""
end

local function show_tokenizer(model)
  local t = model.tokenizer
  if t then
    out("tokeniser: %s; %d pieces%s%s", tokenizer_kind(model), t.pieces, show_piece("begin", t.bos), show_piece("end", t.eos))
  elseif model.tokenizer_error then
    out("tokeniser: not known: %s", tostring(model.tokenizer_error))
  else
    out "tokeniser: none"
  end
  local names = {}
  for i, name in ipairs(model.templates) do
    names[i] = printable(name)
  end
  out("chat template: %s", #names > 0 and table.concat(names, ", ") or "none")
end

local function show_verdict(model)
  if model.error then
    out("runs: no: %s", tostring(model.error))
    return
  end
  out("runs: yes: %s parameters, %s in memory", count(model.parameters), info.bytes(model.bytes))
  if model.warning then
    out("warning: %s", model.warning)
  end
end

local function show(model, with_tensors)
  show_files(model)
  out("family: %s", model.family and printable(model.family) or "not said")
  out("parameters: %s in %d tensors", count(elements_of(model.tensors)), #model.tensors)
  for _, row in ipairs(types_of(model.tensors)) do
    out("  %-8s %5d tensors %12s", row.type, row.tensors, info.bytes(row.bytes))
  end
  out("settings: %d", #model.settings)
  for _, s in ipairs(model.settings) do
    out("  %s = %s", printable(s.name), show_value(s))
  end
  for _, t in ipairs(with_tensors and model.tensors or {}) do
    out("  %-40s %-8s [%s] %s", printable(t.name), t.type, table.concat(t.dims, ", "), info.bytes(t.size))
  end
  show_tokenizer(model)
  show_verdict(model)
end

-- ---- for programs ----

-- JSON has no bytes that are no UTF-8 and no infinities: they are shown as they are for people.
local function plain(value)
  local kind = type(value)
  if kind == "table" then
    local copy = {}
    for i, element in ipairs(value) do
      copy[i] = plain(element)
    end
    return copy
  elseif kind == "number" and (value ~= value or value == math.huge or value == -math.huge) then
    return tostring(value)
  elseif kind == "string" and not pcall(core.json.encode, value) then
    return (value:gsub("[^\32-\126]", function(c) return ("\\x%02x"):format(c:byte()) end))
  end
  return value
end

local function document(model, with_tensors)
  local doc = {
    path = plain(model.path), format = model.format, family = plain(model.family), size = model.size, files = plain(model.files),
    parameters = elements_of(model.tensors), types = types_of(model.tensors), templates = plain(model.templates), warning = model.warning,
    runs = not model.error, reason = model.error and plain(tostring(model.error)), bytes = model.bytes, settings = {},
  }
  for i, s in ipairs(model.settings) do
    doc.settings[i] = {name = plain(s.name), kind = s.kind, count = s.count, value = plain(s.value)}
  end
  if model.tokenizer then
    local t = model.tokenizer
    doc.tokenizer = {
      kind = plain(tokenizer_kind(model)), pieces = t.pieces,
      begin = t.bos and {id = t.bos.id, piece = plain(t.bos.piece)}, ["end"] = t.eos and {id = t.eos.id, piece = plain(t.eos.piece)},
    }
  end
  for i, t in ipairs(with_tensors and model.tensors or {}) do
    doc.tensors = doc.tensors or {}
    doc.tensors[i] = {name = plain(t.name), type = t.type, dims = t.dims, size = t.size, offset = t.offset, file = t.file}
  end
  return doc
end

local function run_devices(o)
  local devices = core.devices()
  if o.json then
    out("%s", core.json.encode(devices))
    return 0
  end
  for _, d in ipairs(devices) do
    out("%-8s %-4s %s", d.name, d.usable and "yes" or "no", d.detail)
  end
  return 0
end

function info.run(o, program)
  program.interrupts(nil, nil, nil) -- nothing is to be put in order: Ctrl-C and SIGTERM end it though a disk or a driver does not answer
  if o[1] == "devices" then
    return run_devices(o)
  end
  local model = core.source_info(core.model_locate(o[1]))
  if o.json then
    io.stdout:write(core.json.encode(document(model, o.tensors), 2), "\n")
  else
    show(model, o.tensors)
  end
  return 0
end

return info
