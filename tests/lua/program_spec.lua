-- The program weir: exit codes, scripts, signals, and each command on a small model.
local weir = require "weir"
local safetensors = require "weir.safetensors"
local helper = require "helper"

local made = {}

local function temporary(suffix)
  local name = helper.temporary(suffix)
  made[#made + 1] = name
  return name
end

local function script(text)
  local name = temporary ".lua"
  helper.write(name, text)
  return name
end

local function lines(text)
  return select(2, text:gsub("\n", ""))
end

describe("program", function()
  after_each(function()
    for i = #made, 1, -1 do
      os.remove(made[i])
      made[i] = nil
    end
  end)

  it("says_its_version_and_its_commands", function()
    local code, out = helper.weir {"--version"}
    assert.are.equal(0, code)
    assert.are.equal("weir " .. weir._VERSION .. "\n", out)
    for _, arguments in ipairs {{"--help"}, {"help"}, {"-h"}} do
      code, out = helper.weir(arguments)
      assert.are.equal(0, code)
      for _, command in ipairs {"run", "generate", "chat", "logits", "tokenize", "info", "models", "fetch", "convert", "trace", "streams", "bench", "env"} do
        assert.is_truthy(out:find("\n  " .. command .. " ", 1, true), command)
        local status, help = helper.weir {command, "--help"}
        assert.are.equal(0, status)
        assert.are.equal("usage: weir " .. command, help:sub(1, 12 + #command))
        assert.are.equal(help, select(2, helper.weir {"help", command}))
      end
    end
  end)

  it("answers_values_out_of_range_with_2_and_says_the_range", function()
    for _, case in ipairs {
      {"--temperature", "-1", "a number from 0 to 1000000"}, {"--temperature", "inf", "a number from 0 to 1000000"}, {"--top-p", "1.5", "a number from 0 to 1"},
      {"--min-p", "2", "a number from 0 to 1"}, {"--typical", "-0.1", "a number from 0 to 1"}, {"--repeat-penalty", "0", "a number from 0.01 to 100"},
      {"--frequency-penalty", "3", "a number from -2 to 2"}, {"--presence-penalty", "-3", "a number from -2 to 2"},
      {"--top-k", "-1", "a whole number from 0 to 2147483647"}, {"--top-k", "2147483648", "a whole number from 0 to 2147483647"},
      {"--penalty-last", "1.5", "a whole number from 0 to 2147483647"}, {"--logprobs", "21", "a whole number from 0 to 20"},
      {"--seed", "9007199254740992", "a whole number from 0 to 9007199254740991"}, {"-n", "2147483648", "a whole number from 1 to 2147483647"},
      {"--logit-bias", "5=101", "from -100 to 100"}, {"--logit-bias", "5=1,5=2", "each token once"}, {"--logit-bias", "5=1,05=2", "each token once"},
      {"--stop", "", "a text that is not empty"}, {"--samplers", "top_k,top_k", "each once"}, {"--samplers", "nope", "steps"},
    } do
      local code, out, err = helper.weir {"generate", "x", "--prompt", "a", case[1], case[2]}
      assert.are.equal(2, code, case[1] .. " " .. case[2] .. ": " .. err)
      assert.are.equal("", out)
      assert.is_truthy(err:find(("%s is '%s', wanted "):format(case[1], case[2]), 1, true) and err:find(case[3], 1, true), err)
    end
    assert.are.equal(1, (helper.weir {"generate", "/nowhere", "--prompt", "a", "--temperature", "0.5", "--logit-bias", "5=-100,6=100", "--top-p", "1", "--stop", " "}))
  end)

  it("answers_wrong_use_with_2_and_a_line", function()
    local wrong = {
      {"nonsense"}, {"--nonsense"}, {"generate"}, {"generate", "x"}, {"generate", "x", "--prompt", "a", "--tokens", "1"}, {"generate", "x", "--prompt"},
      {"generate", "x", "--prompt", "a", "-n", "many"}, {"generate", "x", "--prompt", "a", "-n", "0"}, {"chat", "x", "-n", "0"},
      {"generate", "x", "--prompt", "a", "--greedy", "--temperature", "1"}, {"chat"}, {"logits", "x"},
      {"logits", "x", "--prompt", "a"}, {"tokenize"}, {"info"}, {"models", "x"}, {"fetch"}, {"fetch", "nobody"}, {"convert", "x"}, {"bench"}, {"bench", "model"},
      {"run"}, {"-e"}, {"streams"}, {"trace"}, {"help", "nobody"},
    }
    for _, arguments in ipairs(wrong) do
      local code, out, err = helper.weir(arguments)
      assert.are.equal(2, code, table.concat(arguments, " ") .. ": " .. err)
      assert.are.equal("", out)
      assert.is_true(lines(err) >= 1 and lines(err) <= 3, err)
      assert.is_nil(err:find "traceback")
    end
  end)

  it("answers_missing_files_with_1_and_a_line", function()
    for _, arguments in ipairs {
      {"generate", "/nowhere/x.gguf", "--prompt", "a"}, {"info", "/nowhere/x.gguf"}, {"tokenize", "/nowhere"}, {"chat", "no-such-name"},
      {"convert", "/nowhere/a", "/nowhere/b"}, {"logits", "/nowhere", "--tokens", "1", "--out", "/tmp/x"}, {"info", "/proc/self/exe"},
    } do
      local code, out, err = helper.weir(arguments)
      assert.are.equal(1, code, table.concat(arguments, " "))
      assert.are.equal("", out)
      assert.are.equal(1, lines(err), err)
      assert.are.equal("weir " .. arguments[1], err:match "^weir %a+")
    end
  end)

  it("runs_scripts_with_arguments", function()
    local file = script 'local a, b = ... io.write(a, " ", b, " ", arg[0]:match "[^.]*$", " ", arg[1], " ", #arg, "\\n")'
    for _, arguments in ipairs {{file, "x", "y"}, {"run", file, "x", "y"}} do
      local code, out, err = helper.weir(arguments)
      assert.are.equal("", err)
      assert.are.equal("x y lua x 2\n", out)
      assert.are.equal(0, code)
    end
    assert.are.equal("1\n", select(2, helper.weir {"-e", "print(...)", "1"}))
  end)

  it("lua_L27_a_script_that_fails_exits_with_1_and_says_where", function()
    local file = script 'local function inner() error "broken" end\ninner()'
    local code, out, err = helper.weir {file}
    assert.are.equal("", out)
    assert.are.equal(1, code)
    assert.is_truthy(err:find(":1: broken", 1, true))
    assert.is_truthy(err:find "stack traceback:" and err:find("in function 'inner'", 1, true))
    code, out, err = helper.weir {script "syntax error here"}
    assert.are.equal("", out)
    assert.are.equal(1, code)
    assert.is_nil(err:find "traceback")
    code, out, err = helper.weir {"-e", "error({})"}
    assert.are.equal("", out)
    assert.are.equal(1, code)
    assert.is_truthy(err:find "table")
    assert.are.equal(1, (helper.weir {"/nowhere.lua"}))
  end)

  it("lua_L27_an_actor_that_dies_unwatched_makes_the_exit_code_1", function()
    local code, out, err = helper.weir {"-e", [[
      local weir = require "weir"
      weir.spawn(function() weir.sleep(0.001) error "late" end)
      weir.spawn(function() weir.sleep(0.01) print "others go on" end)
    ]]}
    assert.are.equal(1, code)
    assert.are.equal("others go on\n", out)
    assert.is_truthy(err:find "late" and err:find "stack traceback:")
    code, out, err = helper.weir {"-e", [[
      local weir = require "weir"
      local a = weir.spawn(function() weir.receive() error "watched" end)
      weir.monitor(a)
      weir.send(a, "x")
      print(weir.receive()[2].code)
    ]]}
    assert.are.equal("ELUA\n", out)
    assert.are.equal("", err)
    assert.are.equal(0, code)
  end)

  it("goes_on_until_nothing_is_left_to_do", function()
    local code, out = helper.weir {"-e", 'local weir = require "weir" weir.spawn(function() weir.sleep(0.02) print "done" end)'}
    assert.are.equal(0, code)
    assert.are.equal("done\n", out)
    assert.are.equal(0, (helper.weir {"-e", 'local weir = require "weir" weir.spawn(function() weir.receive() end)'}))
  end)

  it("works_from_any_folder_and_through_links", function()
    local link = temporary ".link"
    helper.shell("ln -s " .. helper.quote(helper.program) .. " " .. link)
    local code, out = helper.shell("cd / && " .. link .. " -e 'print(require \"weir\"._VERSION)'")
    assert.are.equal(0, code)
    assert.are.equal(weir._VERSION .. "\n", out)
  end)

  it("tells_plain_luajit_where_it_is", function()
    local code, out, err = helper.shell(('eval "$(%s env)"; cd /; luajit -e \'print(require "weir"._VERSION)\''):format(helper.quote(helper.program)))
    assert.are.equal("", err)
    assert.are.equal(0, code)
    assert.are.equal(weir._VERSION .. "\n", out)
  end)

  it("ends_a_wait_on_ctrl_c_with_130", function()
    local ready = temporary ".ready"
    local file = script(('local weir = require "weir" weir.now() io.open(%q, "w"):close() weir.receive()'):format(ready))
    local code, _, err = helper.shell(("%s %s & pid=$!; while [ ! -e %s ]; do sleep 0.01; done; sleep 0.05; kill -INT $pid; wait $pid")
      :format("setsid env --default-signal=INT " .. helper.quote(helper.program), file, ready))
    assert.are.equal(130, code)
    assert.are.equal("weir: interrupted\n", err)
  end)

  it("ends_a_loop_of_lua_code_on_ctrl_c_with_130", function()
    local ready = temporary ".ready"
    local file = script(('jit.off() local weir = require "weir" weir.spawn(function() io.open(%q, "w"):close() while true do end end) weir.run()')
      :format(ready))
    local code = helper.shell(("%s %s & pid=$!; while [ ! -e %s ]; do sleep 0.01; done; kill -INT $pid; wait $pid")
      :format("setsid env --default-signal=INT " .. helper.quote(helper.program), file, ready))
    assert.are.equal(130, code)
  end)

  it("ends_quietly_when_the_pipe_is_closed", function()
    local _, out, err = helper.shell(helper.quote(helper.program) .. " -e 'for i = 1, 1e6 do print(i) end' | head -1")
    assert.are.equal("1\n", out)
    assert.are.equal("", err)
  end)

  it("reports_a_bench_of_nothing_known_as_wrong_use", function()
    assert.are.equal(2, (helper.weir {"bench", "actors", "x"}))
  end)
end)

describe("commands", function()
  local model

  setup(function()
    local ok, checkpoint = pcall(helper.reference, "models/stories260K/stories260K.bin")
    if ok then
      model = helper.temporary ".gguf"
      helper.weir {"convert", checkpoint, model}
    end
  end)
  teardown(function()
    if model then
      os.remove(model)
    end
  end)

  local function need_model()
    helper.reference "models/stories260K/stories260K.bin"
  end

  it("convert_writes_what_info_reads", function()
    need_model()
    local code, out, err = helper.weir {"info", model, "--tensors"}
    assert.are.equal("", err)
    assert.are.equal(0, code)
    assert.is_truthy(out:find("general.architecture = llama", 1, true))
    assert.is_truthy(out:find "runs: yes: 260 K parameters")
    assert.is_truthy(out:find "token_embd.weight")
  end)

  it("generate_prints_text_tokens_and_json", function()
    need_model()
    local base = {"generate", model, "--tokens", "1", "-n", "20", "--greedy"}
    local code, text, err = helper.weir(base)
    assert.are.equal("", err)
    assert.are.equal(0, code)
    local want = helper.read(helper.reference "models/stories260K/greedy-200.txt")
    assert.are.equal(want:sub(1, 40), (text:gsub("^%s+", "")):sub(1, 40))
    local tokens = select(2, helper.weir {"generate", model, "--tokens", "1", "-n", "20", "--print", "tokens"})
    local json = select(2, helper.weir {"generate", model, "--tokens", "1", "-n", "20", "--print", "json", "--threads", "1"})
    local value = weir.json.decode(json)
    assert.are.equal(tokens, table.concat(value.tokens, ",") .. "\n")
    assert.are.equal(text, value.text .. "\n")
    assert.are.equal("length", value.reason)
    assert.is_truthy(json:find '"prefill":%d+%.?%d?%d?%d?%d?%d?%d?[,}]', json)
    err = select(3, helper.weir {"generate", model, "--prompt", "Once", "-n", "2", "--stats"})
    assert.is_truthy(err:find "prompt tokens at")
  end)

  it("generate_ends_with_an_error_where_logits_are_no_numbers", function()
    local path = temporary ".gguf"
    assert.are.equal(0, (helper.weir {"make-model", "--layers", "1", "--hidden", "64", "--heads", "2", "--vocab", "300", "--type", "f32", path}))
    local bytes = helper.read(path)
    helper.write(path, bytes:sub(1, #bytes / 2) .. ("\255"):rep(#bytes - math.floor(#bytes / 2))) -- half of the weights are NaN
    for _, options in ipairs {{"--greedy"}, {"--temperature", "1", "--top-p", "0.9"}, {"--logprobs", "2"}} do
      local code, out, err = helper.weir {"generate", path, "--tokens", "1,2", "-n", "3", "--print", "tokens", unpack(options)}
      assert.are.equal(1, code, err)
      assert.are.equal("", out)
      assert.is_truthy(err:find("the logits are not numbers", 1, true), err)
    end
  end)

  it("generate_takes_stop_strings_and_seeds", function()
    need_model()
    local function text(...)
      return select(2, helper.weir {"generate", model, "--prompt", "Once upon a time", "-n", "30", ...})
    end
    assert.are.equal(text("--temperature", "1", "--seed", "5"), text("--temperature", "1", "--seed", "5"))
    local whole = text()
    assert.are.equal(whole:sub(1, 9) .. "\n", text("--stop", whole:sub(10, 14)))
  end)

  it("tokenize_takes_a_tokenizer_without_weights", function()
    local data = helper.root .. "/tests/data/tokenizers/"
    local code, out = helper.weir({"tokenize", data .. "llama3.json"}, "a<s>")
    assert.are.equal(0, code)
    local plain = out
    code, out = helper.weir({"tokenize", data .. "llama3.json", "--special"}, "a<s>")
    assert.are.equal(0, code)
    assert.is_truthy(out:find "^%d+ 0\n$")
    assert.are_not.equal(plain, out)
    local err
    code, out, err = helper.weir({"tokenize", data .. "README.md"}, "a")
    assert.are.equal(1, code)
    assert.is_truthy((out .. (err or "")):find("README.md", 1, true))
  end)

  it("tokenize_reads_all_bytes_and_adds_nothing", function()
    need_model()
    local code, out = helper.weir({"tokenize", model}, "Once upon a time")
    assert.are.equal(0, code)
    assert.is_truthy(out:match "^[%d ]+\n$")
    assert.is_nil(out:match "^1 ")
    assert.are.equal("\n", select(2, helper.weir({"tokenize", model}, "")))
    local with_zero = select(2, helper.weir({"tokenize", model}, "a\0b"))
    assert.are_not.equal(select(2, helper.weir({"tokenize", model}, "a")), with_zero)
  end)

  it("logits_writes_a_file_that_does_not_depend_on_threads_and_tile", function()
    need_model()
    local function run(...)
      local out = temporary ".safetensors"
      local code, _, err = helper.weir {"logits", model, "--tokens", "1,403,407,261,378", "--out", out, ...}
      assert.are.equal("", err)
      assert.are.equal(0, code)
      return out
    end
    local path = run("--hidden", "--activations", "f32", "--kv", "f32")
    local file = safetensors.open(path)
    assert.are.same({5, 512}, file:tensor "logits".shape)
    assert.are.same({1, 403, 407, 261, 378}, file:tensor "input_ids":table())
    assert.are.equal("I32", file:tensor "input_ids".dtype)
    assert.are.same({5, 64}, file:tensor "hidden.0".shape)
    assert.are.same({5, 64}, file:tensor "hidden.5".shape)
    file:close()
    local one = helper.read(run("--threads", "1"))
    assert.are.equal(one, helper.read(run("--threads", "2")))
    assert.are.equal(one, helper.read(run("--threads", "2", "--tile", "1")))
    for _, name in ipairs(made) do
      os.remove(name)
    end
    made = {}
    assert.are.equal(1, (helper.weir {"logits", model, "--tokens", "1", "--out", "/nowhere/x"}))
  end)

  it("trace_shows_messages_and_threads", function()
    need_model()
    local code, out, err = helper.weir {"trace", model, "-n", "4"}
    assert.are.equal("", err)
    assert.are.equal(0, code)
    assert.is_truthy(out:find "generator" and out:find "stepper" and out:find "pass")
    assert.is_truthy(out:find("the loop: actors and messages, no kernels", 1, true))
  end)

  it("streams_shows_who_owns_which", function()
    need_model()
    local code, out = helper.weir {"streams", model}
    assert.are.equal(0, code)
    for _, owner in ipairs {"stepper", "residency", "policy", "experts"} do
      assert.is_truthy(out:find(owner, 1, true), owner)
    end
  end)

  it("models_lists_the_folder_and_fetch_checks_what_is_there", function()
    need_model()
    local data = temporary ".data"
    helper.shell(("mkdir -p %s/weir/models && cp %s %s/weir/models/tiny.gguf"):format(data, model, data))
    local code, out = helper.shell(("XDG_DATA_HOME=%s %s models"):format(data, helper.quote(helper.program)))
    assert.are.equal(0, code)
    assert.is_truthy(out:find "^tiny ")
    code, out = helper.shell(("XDG_DATA_HOME=%s %s generate tiny --prompt Once -n 3"):format(data, helper.quote(helper.program)))
    assert.are.equal(0, code)
    assert.is_true(#out > 1)
    -- Without a network: a clear message, and nothing is left.
    local line = "XDG_DATA_HOME=%s PIP_INDEX_URL=http://127.0.0.1:9/ PIP_RETRIES=0 %s fetch smollm2"
    local err
    code, out, err = helper.shell(line:format(data, helper.quote(helper.program)))
    assert.are.equal(1, code)
    assert.are.equal("", out)
    assert.is_truthy(err:find "of your own", err)
    assert.are.equal("tiny.gguf\n", select(2, helper.shell("ls -A " .. data .. "/weir/models")))
    helper.shell("rm -rf " .. data)
  end)

  it("chat_answers_stops_and_ends_in_a_terminal", function()
    helper.smollm2()
    local code, out = helper.shell(("env -u LD_PRELOAD python3 %s/tests/lua/chat.py %s"):format(helper.quote(helper.root), helper.quote(helper.program)))
    assert.are.equal("", out)
    assert.are.equal(0, code)
  end)

  it("chat_reads_lines_from_a_pipe", function()
    helper.smollm2()
    local code, out, err = helper.weir({"chat", "smollm2", "-n", "8"}, "Say hello.\n/reset\n/nonsense\nSay hello.\n")
    assert.are.equal("", err)
    assert.are.equal(0, code)
    assert.is_truthy(out:find("no command /nonsense", 1, true))
    local answers = {}
    for answer in out:gmatch "> (%u[^\n]*)" do
      answers[#answers + 1] = answer
    end
    assert.are.equal(2, #answers)
    assert.are.equal(answers[1], answers[2])
  end)

  it("bench_actors_prints_rates", function()
    if os.getenv "WEIR_SPEC_MODE" ~= "" then
      return
    end
    local code, out = helper.weir {"bench", "actors", "rates", "--small"}
    assert.are.equal(0, code)
    assert.is_truthy(out:find "Lua +call, receive, reply, same loop")
    assert.is_truthy(out:find "a call and reply in C to a bare function call +x %d")
  end)

  it("bench_tokenize_prints_a_table_of_times", function()
    if os.getenv "WEIR_SPEC_MODE" ~= "" then
      return
    end
    local code, out = helper.weir {"bench", "tokenize", "--small", helper.root .. "/tests/data/families/llama/model.gguf"}
    assert.are.equal(0, code)
    assert.is_truthy(out:find "spaces, then 1 +%d+%.%d+ s +%d+")
    assert.is_truthy(out:find "random bytes +%d")
  end)

  it("bench_model_prints_speeds_and_ratios", function()
    need_model()
    -- A peer that answers as llama-bench does.
    local peer = temporary ".sh"
    helper.write(peer, '#!/bin/sh\necho \'[{"n_prompt":512,"n_gen":0,"avg_ts":100.0},{"n_prompt":0,"n_gen":128,"avg_ts":10.0}]\'\n')
    helper.write(peer .. ".txt", "flags of the peer")
    os.execute("chmod +x " .. peer)
    local code, out, err = helper.weir {"bench", "model", model, "--threads", "1", "--runs", "2", "--vs", peer}
    os.remove(peer .. ".txt")
    assert.are.equal("", err)
    assert.are.equal(0, code)
    assert.is_truthy(out:find "weir .*prefill" and out:find "x%d" and out:find "flags of the peer" and out:find "GB/s")
  end)
end)
