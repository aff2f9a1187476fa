--- Times of tokenisers on long texts that are hard for some: a table per vocabulary, of texts of 1, 2 and 4 MB.
local core = require "weir.core"
local quote = require "weir.shell".quote

local bench = {}

local MB = 1024 * 1024
local REFERENCE = "ggml-vocab-%s.gguf"
local NAMES = {"llama-spm", "gpt-2", "starcoder", "llama-bpe", "qwen2", "deepseek-llm", "bert-bge"}

-- What is repeated, and what stands behind it.
local TEXTS = {
  {"one letter", "x"},
  {"Z", "Z"},
  {"spaces", " "},
  {"spaces, then 1", " ", "1"},
  {"newlines", "\n"},
  {"newline, space", "\n "},
  {"emoji", "\240\159\153\130"},
  {"digits", "7"},
  {"a b", "a b "},
  {"CJK", "\228\184\173\230\150\135"},
  {"combining marks", "\204\129\204\163"},
  {"signs", "-"},
  {"prose", "The quick brown fox jumps over the lazy dog, and then it's gone. "},
}

-- Bytes of no meaning, the same in every run.
local function random_bytes(size)
  local state, parts = 1, {}
  for i = 1, size / 8 do
    local eight = {}
    for k = 1, 8 do
      state = (state * 1103515245 + 12345) % 2147483648
      eight[k] = math.floor(state / 8388608)
    end
    parts[i] = string.char(unpack(eight))
  end
  return table.concat(parts)
end

local function make(row, size)
  if not row[2] then
    return random_bytes(size)
  end
  return row[2]:rep(math.floor(size / #row[2])) .. (row[3] or "")
end

local function print_row(path, row, sizes)
  local texts, line = {}, ("  %-16s"):format(row[1])
  for i, size in ipairs(sizes) do
    texts[i] = make(row, size)
  end
  local times = core.tokenize_times(path, texts)
  for _, time in ipairs(times) do
    line = line .. ("  %8.3f s %8d"):format(time.seconds, time.tokens)
  end
  io.stdout:write(line, ("  x%.2f x%.2f\n"):format(times[2].seconds / times[1].seconds, times[3].seconds / times[2].seconds))
  io.stdout:flush()
end

local function vocabularies(given)
  if #given > 0 then
    return given
  end
  local folder, paths = os.getenv "WEIR_REFERENCE" or "../shared", {}
  for _, name in ipairs(NAMES) do
    table.insert(paths, folder .. "/vectors/" .. REFERENCE:format(name))
  end
  return paths
end

--- Prints the tables. `given`: paths of GGUF files; o.small: a sixteenth of the sizes.
function bench.run(given, o)
  local unit = o.small and MB / 16 or MB
  io.stdout:write(("processor seconds and tokens of texts of %g, %g and %g MB; x: each over the one before\n"):format(unit / MB, 2 * unit / MB, 4 * unit / MB))
  for _, path in ipairs(vocabularies(given)) do
    local located = core.model_locate(path)
    io.stdout:write(quote(located), "\n")
    for _, row in ipairs(TEXTS) do
      print_row(located, row, {unit, 2 * unit, 4 * unit})
    end
    print_row(located, {"random bytes"}, {unit, 2 * unit, 4 * unit})
  end
  return 0
end

return bench
