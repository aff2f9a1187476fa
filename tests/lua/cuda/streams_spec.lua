-- One load and one token in the launch log: each actor's work is on streams of its own, and streams meet only in events. The checker must be able to refuse: it is
-- given the same log with two lines exchanged between streams.
local weir = require "weir"
local helper = require "helper"
local emulated = require "cuda.emulated"

-- ---- the checker ----

-- Whose a line is; nil: anybody's.
local function owner_of(line)
  if line:match "^launch weir_pack" then
    return "residency"
  elseif line:match "^launch " or line:match "^capture " or line:match "^graph " or line:match "^library " or line:match "^copy DtoH" then
    return "stepper"
  elseif line:match "^memset" then
    return "memory"
  elseif line:match "^host" then
    return "notices"
  end
end

-- Of each stream, its owner; nil and why: two would share it, or there are not those that there must be.
local function owners(lines)
  local owner, streams = {}, {residency = 0, stepper = 0, memory = 0, notices = 0}
  for _, line in ipairs(lines) do
    local stream, own = line:match "%f[%w](s%d+)%f[%W]", owner_of(line)
    if own and owner[stream] and owner[stream] ~= own then
      return nil, ("%s is %s's and %s's"):format(stream, owner[stream], own)
    elseif own and not owner[stream] then
      owner[stream], streams[own] = own, streams[own] + 1
    end
  end
  for own, n in pairs(streams) do
    if n ~= (own == "notices" and 2 or 1) then
      return nil, ("%s has %d streams"):format(own, n)
    end
  end
  return owner
end

local function allocations(line)
  return line:gmatch "(#%d+)%+"
end

-- What residency copies to the device is read by a launch of its own: number of a copy of which that is not so.
local function lost_copy(lines, owner)
  local waiting = {}
  for i, line in ipairs(lines) do
    local stream = line:match "%f[%w](s%d+)%f[%W]"
    local to = line:match "^copy HtoD s%d+ (#%d+)"
    if to and owner[stream] == "residency" then
      waiting[stream .. to] = waiting[stream .. to] or i
    elseif line:match "^launch" then
      for name in allocations(line) do
        waiting[stream .. name] = nil
      end
    end
  end
  local _, i = next(waiting)
  return i
end

-- Work on memory that was zeroed on its own stream comes after a wait for the event behind that.
local function before_zeroing(lines)
  local event, pending, zeroed, seen = nil, {}, {}, {}
  for i, line in ipairs(lines) do
    local stream, what = line:match "%f[%w](s%d+)%f[%W]", line:match "^%a+"
    if what == "memset" then
      local name = line:match "#%d+"
      pending[stream], zeroed[name] = name, math.huge
    elseif what == "record" and pending[stream] then
      event, zeroed[pending[stream]], pending[stream] = line:match "e%d+$", i, nil
    elseif what == "wait" and line:match "e%d+$" == event then
      seen[stream] = i
    elseif what == "launch" or what == "copy" then
      for name in allocations(line) do
        if (zeroed[name] or 0) > (seen[stream] or 0) then
          return i
        end
      end
    end
  end
end

-- Waits are for events that another stream has recorded before, always the same stream; those that tell the host only do so, and each tells of one stream.
local function wrong_meeting(lines, owner)
  local recorded, told, before = {}, {}, {}
  for i, line in ipairs(lines) do
    local what, stream, event = line:match "^(%a+) .-(s%d+) ?(e?%d*)"
    local notices = owner[stream] == "notices"
    if what == "record" then
      if notices or recorded[event] and recorded[event] ~= stream then
        return i
      end
      recorded[event] = stream
    elseif what == "wait" then
      local from = recorded[event]
      if not from or from == stream or owner[from] ~= "memory" and not notices or owner[from] == "memory" and notices then
        return i
      elseif notices and (before[stream] == "wait" or told[stream] and told[stream] ~= from) then
        return i
      end
      told[stream] = notices and from or nil
    elseif notices and not (what == "host" and before[stream] == "wait") then
      return i
    end
    before[stream] = what
  end
end

-- nil: the log is as it should be; else what is wrong.
local function check(lines)
  local owner, why = owners(lines)
  if not owner then
    return why
  end
  for _, line in ipairs(lines) do
    local stream = line:match "%f[%w](s%d+)%f[%W]"
    if not owner[stream] then
      return stream .. " is nobody's: " .. line
    elseif line:match "^copy HtoD" and owner[stream] ~= "residency" and owner[stream] ~= "stepper" then
      return "not its work: " .. line
    end
  end
  for name, find in pairs {lost_copy = lost_copy, before_zeroing = before_zeroing, wrong_meeting = wrong_meeting} do
    local i = find(lines, owner)
    if i then
      return ("%s: line %d: %s"):format(name, i, lines[i])
    end
  end
end

-- ---- what is checked ----

-- The log with the streams of two of its lines exchanged; nil where that would change nothing.
local function exchanged(lines, i, j)
  local a, b = lines[i]:match "%f[%w]s%d+%f[%W]", lines[j]:match "%f[%w]s%d+%f[%W]"
  local copy = {unpack(lines)}
  copy[i], copy[j] = lines[i]:gsub("%f[%w]" .. a .. "%f[%W]", b, 1), lines[j]:gsub("%f[%w]" .. b .. "%f[%W]", a, 1)
  local same = copy[i] == lines[j] and copy[j] == lines[i] -- two waits, two notices: another order, or none
  return a ~= b and not same and copy or nil
end

local function load_and_one_token(path)
  weir.shutdown()
  collectgarbage()
  local streams = emulated.count "cuStreamCreate"
  emulated.driver.cuemu_log_clear()
  local m = weir.load(path, {device = "cuda"})
  m:complete {tokens = {1, 403, 407}, max_tokens = 1, temperature = 0, ignore_end = true}
  local lines = emulated.log()
  m:close()
  return lines, emulated.count "cuStreamCreate" - streams
end

describe("streams", function()
  local path, lines, made
  setup(function()
    path = emulated.stories()
    lines, made = load_and_one_token(path)
  end)
  teardown(function()
    os.remove(path)
    weir.shutdown()
  end)

  it("are_each_actors_own_and_meet_only_in_events", function()
    assert.is_nil(check(lines))
    assert.equal(1 + 2 * 4, made) -- one that zeroes memory; four actors with a stream of work and one of notices: those of policy and experts have nothing to do
    assert.is_true(#lines > 100)
    emulated.ends_clean()
  end)

  it("are_refused_when_two_lines_are_exchanged", function()
    local tried, missed = 0, {}
    for i = 1, #lines do
      for j = i + 1, #lines, 1 + (i * 7) % 5 do
        local copy = exchanged(lines, i, j)
        if copy then
          tried = tried + 1
          missed[#missed + 1] = not check(copy) and ("%d %s | %d %s"):format(i, lines[i], j, lines[j]) or nil
        end
      end
    end
    assert.is_true(tried > 1000)
    assert.equal("", table.concat(missed, "\n"))
  end)

  it("are_listed_by_weir_streams", function()
    local code, out, err = helper.weir {"streams", path, "--device", "cuda"}
    assert.equal(0, code, err)
    for _, name in ipairs {"stepper", "residency", "policy", "experts"} do
      assert.is_truthy(out:match("cuda:0%s+" .. name .. "%s+actor %d+ %(" .. name .. "%)%s+open"), name)
    end
    local submitted = {}
    for name, n in out:gmatch "cuda:0%s+(%a+)%s.-open%s+(%d+)" do
      submitted[name] = tonumber(n)
    end
    assert.is_true(submitted.stepper > 0 and submitted.residency > 0)
    assert.same({0, 0}, {submitted.policy, submitted.experts})
  end)
end)
