-- What the libraries may call: names that a library which lives in other people's processes must not use are not among its undefined symbols.
local helper = require "helper"

-- Ends the process, or changes what belongs to the whole of it.
local forbidden = {
  "abort", "exit", "_exit", "_Exit", "quick_exit", "atexit", "raise", "kill", "signal", "sigaction", "sigprocmask", "fork", "vfork", "posix_spawn", "execve", "system",
  "popen",
  "wait", "waitpid", "setlocale", "setenv", "putenv", "chdir", "umask", "printf", "puts", "putchar", "ev_default_loop", "ev_default_destroy", "ev_default_loop_ptr",
}

local function undefined_symbols(path)
  local code, out, err = helper.shell("nm -D --undefined-only " .. helper.quote(path))
  assert(code == 0, err)
  local found = {}
  for name in out:gmatch "U ([%w_]+)" do
    found[name] = true
  end
  assert.is_truthy(next(found), path .. " has no undefined symbols")
  return found
end

local function check(path)
  local found = undefined_symbols(path)
  for _, name in ipairs(forbidden) do
    assert.is_nil(found[name], path .. " calls " .. name)
  end
end

describe("symbols", function()
  it("libweir_calls_nothing_that_belongs_to_the_host", function()
    check(helper.build .. "/actors/libweir.so")
  end)
end)
