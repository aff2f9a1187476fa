-- weir scripts/gpu/compare.lua MODEL DEVICE TOKENS: the logits of a device beside the cpu's, for the same prompts and the cpu's greedy continuation of TOKENS. Prints
-- a line; fails if a difference exceeds 1e-3 of the largest logit, or a next token differs though the cpu's choice is clearer than that.
local weir = require "weir"

local path, device, count = arg[1], arg[2], tonumber(arg[3])
local BOUND = 1e-3

local function load(name)
  return weir.load(path, {device = name, activations = "f32", kv = "f32", context = 256})
end

local function prompts(vocab)
  local list = {{1}, {}, {}}
  for i = 1, 40 do
    list[2][i] = i * 7 % vocab
    list[3][i] = i * 7919 % vocab
  end
  return list
end

-- The two largest values of a row: the token of the first, and by how much it leads.
local function leader(row, vocab)
  local best, second, id = -math.huge, -math.huge, nil
  for v = 0, vocab - 1 do
    local l = row:get(v)
    if l > best then
      best, second, id = l, best, v
    elseif l > second then
      second = l
    end
  end
  return id, best - second
end

-- The prompt and the cpu's greedy continuation.
local function continued(model, prompt)
  local tokens = {unpack(prompt)}
  for _ = 1, count do
    local logits = model:forward {tokens = tokens}.logits
    tokens[#tokens + 1] = leader(logits:row(#tokens - 1), model.info.vocab)
  end
  return tokens
end

-- Largest difference and largest value; rows whose leader differs, and those where it matters.
local function compare(want, got, rows, vocab, sum)
  for i = 0, rows - 1 do
    local a, b = want:row(i), got:row(i)
    for v = 0, vocab - 1 do
      local d = math.abs(a:get(v) - b:get(v))
      sum.worst = d == d and math.max(sum.worst, d) or math.huge
      sum.largest = math.max(sum.largest, math.abs(a:get(v)))
    end
    local id, lead = leader(a, vocab)
    local equal = id == leader(b, vocab)
    sum.rows, sum.equal = sum.rows + 1, sum.equal + (equal and 1 or 0)
    sum.clearest = equal and sum.clearest or math.max(sum.clearest, lead)
  end
end

local cpu, other = load "cpu", load(device)
local sum = {worst = 0, largest = 0, rows = 0, equal = 0, clearest = 0}
for _, prompt in ipairs(prompts(cpu.info.vocab)) do
  local tokens = continued(cpu, prompt)
  compare(cpu:forward {tokens = tokens}.logits, other:forward {tokens = tokens}.logits, #tokens, cpu.info.vocab, sum)
end
local good = sum.worst <= BOUND * sum.largest and sum.clearest <= 2 * BOUND * sum.largest
io.stdout:write(("largest difference %.2g of the largest logit; next token equal at %d of %d positions\n"):format(sum.worst / sum.largest, sum.equal, sum.rows))
os.exit(good and 0 or 1)
