-- The host programs of scripts/embed: weir in an event loop of the program's own. Each loads, generates, keeps its timer and its echo service going, and ends.
local helper = require "helper"

local hosts = {"host_epoll", "host_libev", "host_libuv"}
local model

-- The library's sanitizer is linked into the hosts: they find their own leaks, whatever this process preloads.
local clean = "env -u LD_PRELOAD ASAN_OPTIONS=detect_leaks=1 "

local function host(name)
  local path = helper.build .. "/embed/" .. name
  local file = io.open(path, "rb")
  if not file then
    helper.skip(name .. " was not built (libuv1-dev)")
  end
  file:close()
  return clean .. helper.quote(path)
end

local function run(name, arguments)
  return helper.shell(host(name) .. " " .. arguments .. " </dev/null")
end

-- The small model that is converted once from the reference folder.
local function stories()
  local checkpoint = helper.reference "models/stories260K/stories260K.bin"
  if not model then
    model = helper.temporary ".gguf"
    assert.are.equal(0, (helper.weir {"convert", checkpoint, model}))
  end
  return helper.quote(model)
end

local function each(name, fn)
  for _, h in ipairs(hosts) do
    it(h .. "_" .. name, function()
      fn(h)
    end)
  end
end

describe("embed", function()
  teardown(function()
    if model then
      os.remove(model)
    end
  end)

  each("generates_while_its_timer_and_its_echo_go_on_and_sleeps_afterwards", function(h)
    local want = helper.read(helper.reference "models/stories260K/greedy-200.txt")
    local code, out, err = run(h, "-k 1 -n 200 -t 1 -i 0.3 " .. stories())
    assert.are.equal("", err:match "Sanitizer[^\n]*" or "")
    assert.are.equal(0, code, err)
    assert.are.equal(want .. "\n", out)
    assert.is_truthy(err:find("generated  200 tokens after 1, prefill ", 1, true), err)
    assert.is_truthy(err:match "\n5 ms timer decode +%d+ +p50 ", err)
    assert.is_truthy(err:match "\necho +decode +%d+ +p50 ", err)
    local replies, wrong = err:match "\necho +(%d+) replies, (%d+) wrong\n"
    assert.is_true(tonumber(replies) > 0, err)
    assert.are.equal("0", wrong)
    local switches = err:match "\nidle +0%.3 s: (%d+) context switches"
    assert.is_true(tonumber(switches) <= 20, err) -- a clock of 5 ms would have 60
  end)

  each("is_ended_by_a_signal_with_130", function(h)
    for _, signal in ipairs {"INT", "TERM"} do
      local out, err = helper.temporary ".out", helper.temporary ".err"
      local script = ([[%s -k 1 -n 100000 -t 1 -i 60 %s >%s 2>%s & pid=$!; n=0
        while [ ! -s %s ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n + 1)); done
        kill -%s $pid; wait $pid]]):format(host(h), stories(), out, err, out, signal)
      local code = helper.shell(script)
      local text, errors = helper.read(out), helper.read(err)
      os.remove(out)
      os.remove(err)
      assert.are.equal("", errors:match "Sanitizer[^\n]*" or "")
      assert.are.equal(130, code, errors)
      assert.is_true(#text > 0)
      assert.is_truthy(errors:find(", 0 wrong\n", 1, true), errors)
    end
  end)

  each("names_what_is_missing_and_explains_itself", function(h)
    local code, out, err = run(h, "/no/such/model.gguf hello")
    assert.are.equal(1, code)
    assert.are.equal("", out)
    assert.is_truthy(err:find("/no/such/model.gguf", 1, true))
    assert.is_falsy(err:find("Sanitizer", 1, true), err)
    for _, wrong in ipairs {"", "model", "-n 0 model prompt", "-n x model prompt", "-z model prompt", "model prompt more", "-k 1,x model"} do
      code, out, err = run(h, wrong)
      assert.are.equal(2, code, wrong)
      assert.are.equal("", out)
      assert.is_truthy(err:find("usage: ", 1, true), err)
    end
    code, out = run(h, "-h")
    assert.are.equal(0, code)
    assert.are.equal("usage: ", out:sub(1, 7))
  end)

  it("each_builds_from_an_installed_weir_as_its_comment_says", function()
    if (os.getenv "WEIR_SANITIZED" or "") ~= "" then
      helper.skip_machine "sanitized libraries are not installed"
    end
    local prefix = helper.temporary()
    local code, _, err = helper.shell(("cmake --install %s --prefix %s && cp %s/scripts/embed/host* %s"):format(
      helper.quote(helper.build), prefix, helper.quote(helper.root), prefix))
    assert.are.equal(0, code, err)
    for _, h in ipairs(hosts) do
      host(h) -- skips without libuv
      local command = helper.read(prefix .. "/" .. h .. ".c"):match "\n %* +(cc [^\n]+)\n"
      code, _, err = helper.shell(("cd %s && export PKG_CONFIG_PATH=$(dirname $(find %s -name weir.pc)) && %s && ./%s -h"):format(
        prefix, prefix, command:gsub("^cc", "cc -Wall -Wextra -Werror"), h))
      assert.are.equal(0, code, command .. ": " .. err)
    end
    os.execute("rm -rf " .. prefix)
  end)
end)
