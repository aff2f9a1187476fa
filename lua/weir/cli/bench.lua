--- weir bench: speeds of models, beside other programs if wanted, and of actors.
local args = require "weir.args"
local core = require "weir.core"
local quote = require "weir.shell".quote
local weir = require "weir"

local bench = {
  summary = "measure a model (also against llama-bench programs), actors, the loop, tokenisers, or a device",
  usage = "model MODEL... [--vs LLAMA-BENCH]... [--threads 1,2] [--runs 5] | actors [NAME...] [--small] [--lang c|lua] [--workers N]" ..
    " | loop MODEL [--threads N] [--device NAME] | tokenize [VOCABULARY...] [--small] | device [MODEL] [--device NAME] [--small] [--json]",
  help = [[
weir bench model measures prefill (512 tokens) and decode (128 tokens), and what a process needs that
loads the model and runs one token: time and memory. With --vs it runs that llama-bench on the same
file in between, run by run, and prints ratios. weir bench actors runs the
benchmarks of the Savina suite in C and in Lua, checks what they come to, and measures what single
messages, calls and switches cost ("rates"); spawntree needs 1.1 GB. weir bench loop measures how
late a 5 ms timer is while a long prefill runs, and what ten idle seconds cost. weir bench tokenize
measures how long texts of 1, 2 and 4 MB of the hard kinds take (default: the vocabularies of the
reference folder, WEIR_REFERENCE or ../shared). weir bench device measures a device: copies, the time
from one small kernel to the next, copies beside kernels, and the decoding of a model beside these.]],
  positional = {"WHAT", "[MODEL or NAME...]"},
  options = {
    {flags = "--vs", type = "string", value = "PATH", text = "a llama-bench to compare with, also with arguments (\"PATH -rtr 1\"); may be repeated", many = true},
    {flags = "--threads", type = "counts", text = "numbers of threads to measure (default: the processors)"},
    {flags = "--device", type = "string", value = "NAME", text = "device: what is measured; loop: where the model runs (default: cpu)"},
    {flags = "--runs", type = "positive", text = "runs of each; the median and the best are printed (default: 5)", default = 5},
    {flags = "--small", type = "flag", text = "actors: small parameters instead of the suite's; tokenize: a sixteenth of the texts; device: little work"},
    {flags = "--json", type = "flag", text = "device: print JSON"},
    {flags = "--lang", type = "c|lua", text = "actors: only those in this language"},
    {flags = "--workers", type = "count", text = "actors: spread those in C over so many worker loops (default: 0)"},
    {flags = "--child", type = "speed|start", text = "one run, as JSON (used by bench itself)"},
  },
}

local PREFILL, DECODE, BANDWIDTH_ROUNDS = 512, 128, 50

local function median(values)
  local sorted = {unpack(values)}
  table.sort(sorted)
  local middle = (#sorted + 1) / 2
  return (sorted[math.floor(middle)] + sorted[math.ceil(middle)]) / 2
end

-- ---- one run ----

-- Prefill and decode of a loaded model, tokens per second.
local function measure(model)
  local tokens = {}
  for i = 1, PREFILL do
    tokens[i] = (i * 7919) % model.info.vocab
  end
  local _, warm = model:complete {tokens = {1, 2, 3}, max_tokens = 4, ignore_end = true}
  local _, prefill = model:complete {tokens = tokens, max_tokens = 1, ignore_end = true}
  local _, decode = model:complete {tokens = {1}, max_tokens = DECODE + 1, ignore_end = true}
  return {prefill = PREFILL / prefill.prefill, decode = decode.tokens_per_second, warm = warm.tokens, bytes = model.info.bytes, device = model.info.device}
end

local function child(path, threads, what)
  local model = weir.load(path, {threads = threads, context = 1024})
  if what == "start" then
    model:complete {tokens = {1}, max_tokens = 1, ignore_end = true}
    return 0
  end
  io.stdout:write(weir.json.encode(measure(model)), "\n")
  return 0
end

local function read_json(line)
  local pipe = assert(io.popen(line))
  local text = pipe:read "*a"
  pipe:close()
  local ok, value = pcall(weir.json.decode, text)
  return ok and value or nil
end

-- A peer may be given with arguments of its own: "PATH -rtr 1".
local function peer_path(peer)
  return peer:match "^(.-)%s+%-" or peer
end

-- A process of its own for each run: the number of threads belongs to the device, and peers run so too.
local function run_weir(path, threads, program)
  return read_json(("%s/bin/weir bench model %s --threads %d --child speed"):format(quote(program.prefix), quote(path), threads))
end

local function run_peer(peer, path, threads)
  local program = peer_path(peer)
  local rows = read_json(("%s -m %s -t %d -p %d -n %d -r 1 -o json %s 2>/dev/null"):format(quote(program), quote(path), threads, PREFILL, DECODE,
    peer:sub(#program + 1)))
  local result = {}
  for _, row in ipairs(rows or {}) do
    local speed = row.avg_ts
    if row.n_prompt > 0 and row.n_gen == 0 then
      result.prefill = speed
    elseif row.n_gen > 0 and row.n_prompt == 0 then
      result.decode = speed
    end
  end
  return result.prefill and result.decode and result or nil
end

-- ---- what a process needs ----

-- Runs a command line in a shell; its seconds and the most memory (KiB) that one of its processes held.
local MEASURE = [[import resource,subprocess,sys,time
t=time.time(); code=subprocess.call(sys.argv[1],shell=True,stdout=subprocess.DEVNULL,stderr=subprocess.DEVNULL)
print('{"seconds":%.3f,"peak":%d,"code":%d}'%(time.time()-t,resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss,code))]]

local function process(line)
  return read_json("env -u LD_PRELOAD python3 -c " .. quote(MEASURE) .. " " .. quote(line))
end

local function show_start(name, results, base)
  local seconds, peak = {}, {}
  for i, r in ipairs(results) do
    seconds[i], peak[i] = r.seconds, r.peak / 1024
  end
  if #seconds == 0 then
    return
  end
  local line = ("  %-40s  load and 1 token %6.2f s  memory %7.1f MiB"):format(name, median(seconds), median(peak))
  if base then
    line = line .. (" x%.2f x%.2f"):format(base[1] / median(seconds), base[2] / median(peak))
  end
  io.stdout:write(line, "\n")
  return {median(seconds), median(peak)}
end

-- Interleaved, as the speeds are.
local function compare_start(path, threads, o, program)
  local lines = {{"weir", ("%s/bin/weir bench model %s --threads %d --child start"):format(quote(program.prefix), quote(path), threads)}}
  for _, peer in ipairs(o.vs or {}) do
    local bare = peer_path(peer)
    lines[#lines + 1] = {peer:match "[^/]*$", ("%s -m %s -t %d -p 1 -n 0 -r 1%s"):format(quote(bare), quote(path), threads, peer:sub(#bare + 1))}
  end
  local results = {}
  for _ = 1, math.min(o.runs, 3) do
    for i, line in ipairs(lines) do
      results[i] = results[i] or {}
      local r = process(line[2])
      if r and r.code == 0 then
        table.insert(results[i], r)
      end
    end
  end
  local base
  for i, line in ipairs(lines) do
    local own = show_start(line[1], results[i], i > 1 and base or nil)
    base = base or own
  end
end

-- ---- models ----

local function processor()
  for line in io.lines "/proc/cpuinfo" do
    local name = line:match "^model name%s*:%s*(.*)"
    if name then
      return name
    end
  end
  return "unknown processor"
end

local function processors()
  local pipe = io.popen "nproc"
  local n = pipe and tonumber(pipe:read "*l")
  if pipe then
    pipe:close()
  end
  return n or 1
end

local function read_note(path)
  local file = io.open(path .. ".txt")
  local text = file and file:read "*a" or ""
  if file then
    file:close()
  end
  return (text:gsub("%s+", " "))
end

local function add(results, name, run)
  results[name] = results[name] or {prefill = {}, decode = {}}
  if not run then
    io.stderr:write("weir bench: a run of ", name, " failed\n")
    return
  end
  table.insert(results[name].prefill, run.prefill)
  table.insert(results[name].decode, run.decode)
end

local function show(name, result, base)
  if #result.prefill == 0 then
    return
  end
  local line = ("  %-40s"):format(name)
  for _, what in ipairs {"prefill", "decode"} do
    local best = math.max(unpack(result[what]))
    local worst = math.min(unpack(result[what]))
    line = line .. ("  %s %8.1f (%.1f to %.1f)"):format(what, median(result[what]), worst, best)
    if base and #base[what] > 0 then
      line = line .. (" x%.2f"):format(median(base[what]) / median(result[what]))
    end
  end
  io.stdout:write(line, "\n")
end

local function compare(path, threads, o, program)
  local results, info = {}, nil
  for _ = 1, o.runs do
    local run = run_weir(path, threads, program)
    info = info or run
    add(results, "weir", run)
    for _, peer in ipairs(o.vs or {}) do
      add(results, peer, run_peer(peer, path, threads))
    end
  end
  if not info then
    error(weir.error("EIO", "no run of weir succeeded"), 0)
  end
  io.stdout:write(("\n%d threads (%s), reading %.1f MB of weights: %.1f GB/s\n"):format(
    threads, info.device, info.bytes / 1e6, core.bandwidth(info.bytes, threads, BANDWIDTH_ROUNDS) / 1e9))
  show("weir", results.weir)
  for _, peer in ipairs(o.vs or {}) do
    show((peer:match "[^/]*$"), results[peer], results.weir)
  end
  compare_start(path, threads, o, program)
end

-- Which weight types a file really has, the most bytes first.
local function types_of(path)
  local types, names = {}, {}
  for _, t in ipairs(core.source_info(path).tensors) do
    if not types[t.type] then
      types[t.type] = {0, 0}
      names[#names + 1] = t.type
    end
    types[t.type] = {types[t.type][1] + 1, types[t.type][2] + t.size}
  end
  table.sort(names, function(a, b) return types[a][2] > types[b][2] end)
  for i, name in ipairs(names) do
    names[i] = ("%s (%d tensors, %.1f MB)"):format(name, types[name][1], types[name][2] / 1e6)
  end
  return table.concat(names, ", ")
end

local function bench_model(o, program)
  local threads = o.threads or {processors()}
  if o.child then
    return child(core.model_locate(o[2]), threads[1], o.child)
  end
  io.stdout:write(processor(), "\n")
  io.stdout:write(("tokens per second: prefill %d, decode %d; median of %d runs (worst to best); x: weir over the other\n"):format(PREFILL, DECODE, o.runs))
  for _, peer in ipairs(o.vs or {}) do
    io.stdout:write("  ", peer, ": ", read_note(peer_path(peer)), "\n")
  end
  for i = 2, #o do
    local path = core.model_locate(o[i])
    io.stdout:write(("\n%s: %s\n"):format(path, types_of(path)))
    for _, n in ipairs(threads) do
      compare(path, n, o, program)
    end
  end
  return 0
end

function bench.run(o, program)
  if o[1] == "actors" then
    return require "weir.bench_actors".run({unpack(o, 2)}, o)
  elseif o[1] == "model" and o[2] then
    if o.device then
      args.fail "model measures the cpu; bench device MODEL --device NAME measures decoding on another device"
    end
    return bench_model(o, program)
  elseif o[1] == "loop" and o[2] and not o[3] then
    return require "weir.bench_loop".run(core.model_locate(o[2]), {threads = o.threads and o.threads[1], device = o.device})
  end
  if o[1] == "tokenize" then
    return require "weir.bench_tokenize".run({unpack(o, 2)}, o)
  end
  if o[1] == "device" and not o[3] then
    return require "weir.bench_device".run(o[2] and core.model_locate(o[2]), o)
  end
  args.fail "wanted: model MODEL..., actors [NAME...], loop MODEL, tokenize [VOCABULARY...], or device [MODEL]"
end

return bench
