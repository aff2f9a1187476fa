-- stories260K from the command line: conversion, greedy text, the messages and threads of a generation, streams.
local helper = require "helper"

local model

local function weir(arguments)
  local code, out, err = helper.weir(arguments)
  assert(code == 0, table.concat(arguments, " ") .. ": " .. err)
  return out
end

-- Messages that `weir trace` printed, as {["from to verb"] = count}, replies left out.
local function traced(out)
  local rows = {}
  for from, to, kind, verb, count in out:gmatch "(%S+)%s+(%S+)%s+(%a+)%s+([%w_]+)%s+(%d+)%s+%d+\n" do
    if kind == "call" or kind == "send" then
      rows[from .. " " .. to .. " " .. verb] = tonumber(count)
    end
  end
  return rows
end

-- The table of actors/README.md for G generated tokens, in the same form; "up to" counts as {most}.
local function promised(tokens)
  local text = helper.read(helper.root .. "/actors/README.md"):match "## A generation in messages(.-)\n## "
  local rows, n = {}, 0
  for from, to, verb, count in text:gmatch "\n| (%w+) | (%w+) | ([%w_]+) | ([^|]-) |" do
    local most = count:match "^up to G %+ 1$"
    rows[from .. " " .. to .. " " .. verb] = most and {tokens + 1} or count == "G" and tokens or tonumber(count)
    n = n + 1
  end
  assert(n >= 8, "the table of actors/README.md was not found")
  return rows
end

describe("stories260K", function()
  setup(function()
    model = helper.temporary ".gguf"
  end)
  teardown(function()
    os.remove(model)
  end)

  local function converted()
    local checkpoint = helper.reference "models/stories260K/stories260K.bin"
    weir {"convert", checkpoint, model}
    return model
  end

  it("greedy_200_steps_equal_the_reference", function()
    local want = helper.read(helper.reference "models/stories260K/greedy-200.txt")
    local path = converted()
    assert.are.equal(want .. "\n", weir {"generate", path, "--tokens", "1", "-n", "200", "--greedy"})
    assert.are.equal(want .. "\n", weir {"generate", path, "--tokens", "1", "-n", "200", "--greedy", "--activations", "f32", "--kv", "f32"})
  end)

  it("trace_of_16_tokens_equals_the_readme", function()
    local out = weir {"trace", converted(), "-n", "16", "--prompt", "Once upon a time"}
    local want, got = promised(16), traced(out)
    for key, count in pairs(want) do
      if type(count) == "table" then
        assert.is_true(got[key] ~= nil and got[key] <= count[1], key .. ": " .. tostring(got[key]))
      else
        assert.are.equal(count, got[key], key)
      end
    end
    for key in pairs(got) do
      assert.is_truthy(want[key], key .. " is not in actors/README.md")
    end
  end)

  it("streams_are_listed_with_their_owners", function()
    local out = weir {"streams", converted()}
    for _, name in ipairs {"stepper", "residency", "policy", "experts"} do
      assert.is_truthy(out:match("cpu%s+" .. name .. "%s+actor %d+ %(" .. name .. "%)"), name)
    end
  end)
end)
