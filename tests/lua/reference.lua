-- reference.lua: what the specs that compare with other programs' answers share: differences of arrays, logits and greedy continuations of a model.
local safetensors = require "weir.safetensors"
local weir = require "weir"

local reference = {}

--- All values of a tensor of a safetensors file; nil if it is not there.
function reference.numbers(file, name)
  local t = file:tensor(name)
  return t and t:table()
end

--- Mean and largest difference of two arrays, and the largest absolute value of the second.
function reference.differences(got, want)
  assert(#got == #want, ("%d values, wanted %d"):format(#got, #want))
  local sum, most, largest = 0, 0, 0
  for i = 1, #want do
    local d = math.abs(got[i] - want[i])
    assert(d == d, "not a number")
    sum, most, largest = sum + d, math.max(most, d), math.max(largest, math.abs(want[i]))
  end
  return sum / #want, most, largest
end

local function best_of(row, vocab)
  local best, id = -math.huge, nil
  for v = 0, vocab - 1 do
    local l = row:get(v)
    if l > best then
      best, id = l, v
    end
  end
  return id
end

--- Feeds the reference's own continuation and compares each step whose margin is above the noise. Returns the number of steps compared.
function reference.check_greedy(m, ids, greedy, margin, noise)
  local tokens = {}
  for _, id in ipairs(ids) do
    tokens[#tokens + 1] = id
  end
  for i = 1, #greedy - 1 do
    tokens[#tokens + 1] = greedy[i]
  end
  local logits, checked = m:forward {tokens = tokens}.logits, 0
  for i = 1, #greedy do
    if margin[i] > noise then
      local id = best_of(logits:row(#ids + i - 2), m.info.vocab)
      assert(greedy[i] == id, ("step %d: token %d, wanted %d"):format(i, id, greedy[i]))
      checked = checked + 1
    end
  end
  return checked
end

local function within(what, got, want, bound)
  local _, most, largest = reference.differences(got, want)
  assert(most <= bound * largest, ("%s: largest difference %g, wanted %g"):format(what, most, bound * largest))
end

--- Compares logits, hidden states and the greedy continuation of a family's model. `answers`: its reference.safetensors.
function reference.check_family(path, answers, options, bound)
  weir.shutdown()
  local numbers, file = reference.numbers, safetensors.open(answers)
  local m = weir.load(path, options)
  local ids = numbers(file, "input_ids")
  local forward = m:forward {tokens = ids, hidden = true}
  within("logits", forward.logits:table(), numbers(file, "logits"), bound)
  for k = 0, m.info.layers do
    within("hidden." .. k, forward.hidden[k]:table(), numbers(file, "hidden." .. k), bound)
  end
  local checked = reference.check_greedy(m, ids, numbers(file, "greedy"), numbers(file, "greedy_margin"), bound > 1e-3 and 0.02 or 1e-3)
  assert(checked > 10, "only " .. checked .. " steps are above the noise")
  file:close()
  m:close()
end

return reference
