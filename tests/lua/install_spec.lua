-- What `cmake --install` gives: the program, the library, the header, the pkg-config file and the Lua modules work from a prefix, without the source tree.
local helper = require "helper"

local prefix

local function shell(line)
  local code, out, err = helper.shell(line)
  assert(code == 0, line .. ": " .. err)
  return out
end

-- README.md's C program, between ```c and ```, and the commands below it that install, compile and run.
local function readme_example()
  local program, commands = helper.read(helper.root .. "/README.md"):match "```c\n(.-)```\n\n(    cmake %-%-install.-)\n\n"
  return assert(program), (commands:gsub("^    ", ""):gsub("\n    ", " && "))
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

  it("the_c_program_of_the_readme_runs_as_shown_there", function()
    need_prefix()
    local program, commands = readme_example()
    local lines = select(2, program:gsub("\n", ""))
    assert.is_true(lines <= 40, lines .. " lines")
    local data = assert(helper.smollm2():match "^(.*)/weir/models/[^/]*$")
    helper.write(prefix .. "/example.c", program)
    -- Its folder is also the home that the commands install into.
    local out = shell(("cd %s && ln -s %s build && unset LD_LIBRARY_PATH && export HOME=%s XDG_DATA_HOME=%s && %s"):format(
      prefix, helper.quote(helper.build), prefix, helper.quote(data), commands))
    assert.is_truthy(out:find("\n Paris.", 1, true), out)
    assert.is_truthy(out:match "%[length%]\n$" or out:match "%[stop%]\n$")
    shell(("cc -std=c11 -Wall -Wextra -Werror -I%s/include -fsyntax-only %s/example.c"):format(prefix, prefix))
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
