-- What `cmake --install` gives: the program, the library, the header, the pkg-config file and the Lua modules work from a prefix, without the source tree.
local helper = require "helper"

local prefix

local function shell(line)
  local code, out, err = helper.shell(line)
  assert(code == 0, line .. ": " .. err)
  return out
end

-- The C program of README.md, between ```c and ```.
local function readme_program()
  return assert(helper.read(helper.root .. "/README.md"):match "```c\n(.-)```")
end

describe("install", function()
  setup(function()
    if (os.getenv "WEIR_SANITIZED" or "") ~= "" then
      return
    end
    prefix = helper.temporary()
    shell(("cmake --install %s --prefix %s"):format(helper.quote(helper.build), prefix))
  end)
  teardown(function()
    if prefix then
      os.execute("rm -rf " .. prefix)
    end
  end)

  local function need_prefix()
    if not prefix then
      helper.skip_machine "sanitized libraries are not installed"
    end
  end

  it("the_c_program_of_the_readme_runs_against_the_prefix", function()
    need_prefix()
    local source, program = prefix .. "/example.c", prefix .. "/example"
    helper.write(source, readme_program())
    local lines = select(2, readme_program():gsub("\n", ""))
    assert.is_true(lines <= 40, lines .. " lines")
    local flags = shell(("PKG_CONFIG_PATH=%s/lib/pkgconfig:%s/lib/x86_64-linux-gnu/pkgconfig pkg-config --cflags --libs weir"):format(prefix, prefix))
    shell(("cc -std=c11 -Wall -Wextra -Werror %s %s -o %s"):format(source, flags:gsub("\n", ""), program))
    local out = shell(("LD_LIBRARY_PATH=%s/lib:%s/lib/x86_64-linux-gnu %s %s"):format(prefix, prefix, program, helper.smollm2()))
    assert.is_truthy(out:match "^ Paris%.")
    assert.is_truthy(out:match "%[length%]\n$" or out:match "%[stop%]\n$")
  end)

  it("the_header_is_usable_from_cpp_and_as_strict_c11", function()
    need_prefix()
    helper.write(prefix .. "/header.c", "#include <weir.h>\nint main(void) { return weir_code_name(WEIR_EFULL) == 0; }\n")
    shell(("cc -std=c11 -pedantic -Wall -Werror -I%s/include -fsyntax-only %s/header.c"):format(prefix, prefix))
    shell(("c++ -x c++ -std=c++17 -Wall -Werror -I%s/include -fsyntax-only %s/header.c"):format(prefix, prefix))
  end)

  it("plain_luajit_requires_weir_from_the_prefix", function()
    need_prefix()
    helper.write(prefix .. "/script.lua", [[
      local weir = require "weir"
      local echo = weir.spawn(function() while true do local m = weir.receive() m:reply(m[1] * 2) end end)
      print(weir.call(echo, "double", 21))
    ]])
    local env = shell(prefix .. "/bin/weir env")
    local out = shell(("cd / && %s && luajit %s/script.lua"):format((env:gsub("\n", " ; ")) .. " true", prefix))
    assert.are.equal("42\n", out)
  end)

  it("the_program_finds_its_modules_from_anywhere", function()
    need_prefix()
    assert.is_truthy(shell("cd / && " .. prefix .. "/bin/weir --version"):match "^weir %d")
  end)
end)
