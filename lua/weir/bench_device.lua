--- What a device can do: copies, how soon one small kernel follows another, copies beside kernels, and what a model's decoding makes of it.
-- @module weir.bench_device
local core = require "weir.core"
local weir = require "weir"

local bench_device = {}

local BYTES, ROUNDS, SMALL_BYTES, SMALL_ROUNDS, DECODE, SMALL_DECODE = 256 * 2 ^ 20, 10, 2 ^ 20, 2, 128, 8

-- Tokens per second of a model alone, and the bytes of weights that each token reads.
local function decode(path, device, tokens)
  local model = weir.load(path, {device = device, context = tokens + 64})
  model:complete {tokens = {1, 2, 3}, max_tokens = 4, ignore_end = true}
  local _, finish = model:complete {tokens = {1}, max_tokens = tokens + 1, ignore_end = true}
  local bytes, name = model.info.bytes, model.info.device
  model:close()
  return {tokens_per_second = finish.tokens_per_second, weight_bytes = bytes, bandwidth = bytes * finish.tokens_per_second, device = name}
end

--- Measures a device, and a model on it.
-- @tparam string device "cpu", "cuda"
-- @tparam[opt] string path of a model
-- @tparam[opt] boolean small little work, for a look at whether it runs
-- @treturn table bytes, and bytes per second: traffic (of a copy inside of the device, read and written), upload, download; ns from one smallest kernel of a list to
-- the next: launch (in a shape that is new), replay (in one that is not); seconds: work (kernels alone), sending (an upload alone), both (at once), and overlap, the
-- share of the shorter one that the other hid; with a model decode: tokens_per_second, weight_bytes, bandwidth (bytes of weights per second), device
function bench_device.measure(device, path, small)
  local bytes = small and SMALL_BYTES or BYTES
  local m = core.bench_device(device, bytes, small and SMALL_ROUNDS or ROUNDS)
  local hidden = (m.work + m.sending - m.both) / math.min(m.work, m.sending)
  return {
    bytes = bytes, traffic = 2 * m.copy, upload = m.upload, download = m.download, launch = m.launch, replay = m.replay,
    work = m.work / 1e9, sending = m.sending / 1e9, both = m.both / 1e9, overlap = math.max(0, math.min(1, hidden)),
    decode = path and decode(path, device, small and SMALL_DECODE or DECODE) or nil,
  }
end

local function print_lines(m)
  local function line(text, ...)
    io.stdout:write(text:format(...), "\n")
  end
  line("copies of %.0f MB: inside of the device %.1f GB/s (read and written), to it from pinned memory %.1f GB/s, from it %.1f GB/s",
    m.bytes / 1e6, m.traffic / 1e9, m.upload / 1e9, m.download / 1e9)
  line("from one smallest kernel of a list to the next: %.2f us launched one by one, %.2f us when the list has run before", m.launch / 1e3, m.replay / 1e3)
  line("kernels alone %.2f ms, an upload alone %.2f ms, both at once %.2f ms: %.0f %% of the shorter one hidden", m.work * 1e3, m.sending * 1e3,
    m.both * 1e3, m.overlap * 100)
  if m.decode then
    line("decode %.1f tokens/s, %.1f MB of weights each: %.1f GB/s, %.0f %% of a copy's bandwidth (%s)", m.decode.tokens_per_second, m.decode.weight_bytes / 1e6,
      m.decode.bandwidth / 1e9, m.decode.bandwidth / m.traffic * 100, m.decode.device)
  end
end

--- Measures and prints.
-- @tparam[opt] string path of a model
-- @tparam table o options: device, small, json
function bench_device.run(path, o)
  local m = bench_device.measure(o.device or "cpu", path, o.small)
  if o.json then
    io.stdout:write(weir.json.encode(m), "\n")
  else
    print_lines(m)
  end
  return 0
end

return bench_device
