-- The programs of core/README.md: each "<!-- program: NAME -->" is followed by a C program, which compiles without a warning, and by what it prints.
local helper = require "helper"

local manual = helper.read(helper.root .. "/core/README.md")

describe("manual", function()
  local folder
  setup(function()
    folder = helper.temporary()
    assert(os.execute("mkdir -p " .. folder) == 0)
  end)
  teardown(function()
    os.execute("rm -rf " .. folder)
  end)

  local function compile(name, text)
    local source, program = folder .. "/" .. name .. ".c", folder .. "/" .. name
    local file = assert(io.open(source, "w"))
    file:write(text)
    file:close()
    local code, _, err = helper.shell(
      ("cc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -I%s/include %s -o %s -L%s/actors -lweir -lpthread -Wl,-rpath,%s/actors"):format(
        helper.build, source, program, helper.build, helper.build
      )
    )
    assert.are.equal(0, code, err)
    return program
  end

  for name, text, expected in manual:gmatch "<!%-%- program: (%w+) %-%->\n```c\n(.-)```\n\n```\n(.-)```" do
    it("the_program_" .. name .. "_prints_what_the_manual_says", function()
      if (os.getenv "WEIR_SANITIZED" or "") ~= "" then
        helper.skip_machine "a sanitized library wants a sanitized program"
      end
      local code, out, err = helper.shell(compile(name, text))
      assert.are.equal(0, code, err)
      assert.are.equal(expected, out)
    end)
  end
end)
