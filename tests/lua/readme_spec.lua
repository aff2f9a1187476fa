-- The manual's examples, run: `-->` marks what they print. A block that begins with `-- file: NAME` is a module for those after it.
local helper = require "helper"

-- What a block says that it prints.
local function promised(block)
  local lines = {}
  for line in block:gmatch "[^\n]+" do
    local text = line:match "%-%-> ?(.*)$"
    if text then
      lines[#lines + 1] = text
    end
  end
  return table.concat(lines, "\n")
end

local blocks = {}
local section
for line in (helper.read(helper.root .. "/lua/README.md") .. "\n"):gmatch "([^\n]*)\n" do
  section = line:match "^#+ (.*)" or section
  if line == "```lua" then
    blocks[#blocks + 1] = {name = section, lines = {}}
  elseif line == "```" then
    blocks.open = nil
  elseif blocks.open then
    table.insert(blocks[#blocks].lines, line)
  end
  blocks.open = line == "```lua" or blocks.open
end

describe("manual", function()
  local folder, files = helper.temporary(), {}
  setup(function() os.execute("mkdir " .. folder) end)
  teardown(function()
    for _, name in ipairs(files) do
      os.remove(name)
    end
    os.remove(folder)
  end)

  it("has_examples", function() assert.is_true(#blocks >= 12) end)

  for i, block in ipairs(blocks) do
    local text = table.concat(block.lines, "\n") .. "\n"
    it(("example_%d_%s"):format(i, block.name:gsub("%W", "_")), function()
      local file = text:match "^%-%- file: ([%w_.]+)\n"
      local path = folder .. "/" .. (file or "example.lua")
      files[#files + 1] = path
      helper.write(path, text)
      if file then
        return
      elseif text:find("weir.load", 1, true) then
        helper.smollm2()
      end
      local code, out, err = helper.shell(("cd %s && LUA_PATH='./?.lua;;' %s example.lua"):format(folder, helper.quote(helper.program)))
      assert.are.equal("", err)
      assert.are.equal(0, code)
      if text:find("weir.load", 1, true) then
        assert.are.equal("true\ttrue\n", out:match "[^\n]*\n$")
      else
        assert.are.equal(promised(text), (out:gsub("\n$", "")))
      end
    end)
  end
end)
