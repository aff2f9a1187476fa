-- weir scripts/gpu/table.lua WITH.json WITHOUT.json: rows of Markdown of what `weir bench device --json` said with graphs and without.
local weir = require "weir"

local function read(path)
  local file = assert(io.open(path))
  local text = file:read "*a"
  file:close()
  return weir.json.decode(text)
end

local with, without = read(arg[1]), read(arg[2])
local a, b = with.decode, without.decode

local function row(name, format, ...)
  io.stdout:write("| ", name, " | ", format:format(...), " |\n")
end

row("copy inside of the device, read and written", "%.1f GB/s", with.traffic / 1e9)
row("copy from pinned memory to the device", "%.1f GB/s", with.upload / 1e9)
row("copy from the device to pinned memory", "%.1f GB/s", with.download / 1e9)
row("decode", "%.1f tokens/s", a.tokens_per_second)
row("weights read by decode", "%.1f GB/s, %.0f %% of the copy's bandwidth", a.bandwidth / 1e9, a.bandwidth / with.traffic * 100)
row("decode without graphs", "%.1f tokens/s, %.1f GB/s", b.tokens_per_second, b.bandwidth / 1e9)
row("a token's time that graphs save", "%.1f us", 1e6 / b.tokens_per_second - 1e6 / a.tokens_per_second)
row("from one smallest kernel to the next, with graphs", "%.2f us", with.replay / 1e3)
row("from one smallest kernel to the next, launched one by one", "%.2f us", without.replay / 1e3)
row("kernels alone", "%.2f ms", with.work * 1e3)
row("an upload alone", "%.2f ms", with.sending * 1e3)
row("both at once", "%.2f ms: %.0f %% of the shorter one hidden", with.both * 1e3, with.overlap * 100)
