-- weir convert and weir make-model: what is converted computes the same bits as what it was made of, in every family and both ways.
local weir = require "weir"
local helper = require "helper"

local tokens = {}
for i = 1, 40 do
  tokens[i] = (i * 167) % 509
end

-- The bytes of the logits of all positions.
local function logits(path, options)
  weir.shutdown()
  local m = weir.load(path, options)
  local t = m:forward {tokens = tokens}.logits
  local bytes = require "ffi".string(t.data, t.bytes)
  m:close()
  return bytes
end

local function folder_of(name)
  return helper.reference("models/families/" .. name .. "/config.json"):match "^(.*)/config.json$"
end

-- Exit code and all that it said.
local function run(...)
  local code, out, err = helper.weir {...}
  return code, out .. err
end

local function must(...)
  local code, output = run(...)
  assert(code == 0, output)
  return output
end

local made = {}
local function temporary(suffix)
  made[#made + 1] = helper.temporary(suffix)
  return made[#made]
end

local families = {"llama", "llama-tied", "llama-rope3", "llama-yarn", "llama-linear", "qwen2", "qwen3", "mistral", "phi3", "gemma2", "gemma2-b"}
local float = {activations = "f32", kv = "f32"}

local function equal(a, b)
  assert(a == b, "logits differ")
end

local function nearly(a, b)
  local ffi = require "ffi"
  local x, y, most, largest = ffi.cast("const float *", a), ffi.cast("const float *", b), 0, 0
  for i = 0, #a / 4 - 1 do
    most, largest = math.max(most, math.abs(x[i] - y[i])), math.max(largest, math.abs(y[i]))
  end
  assert(most <= 1e-2 * largest, "logits differ by " .. most)
end

describe("convert", function()
  after_each(function()
    for _, path in ipairs(made) do
      os.execute("rm -rf " .. helper.quote(path))
    end
    made = {}
  end)
  teardown(weir.shutdown)

  for _, name in ipairs(families) do
    -- GGUF has llama3's rotary scaling as factors of single precision.
    local same = name == "llama-rope3" and nearly or equal
    it(name .. "_as_gguf_computes_the_same_bits", function()
      local out = temporary ".gguf"
      must("convert", folder_of(name), out)
      same(logits(out, float), logits(folder_of(name), float))
    end)
    it(name .. "_through_gguf_and_back_computes_the_same_bits", function()
      local out, back = temporary ".gguf", temporary ""
      must("convert", folder_of(name), out)
      must("convert", out, back)
      same(logits(back, float), logits(folder_of(name), float))
    end)
    it(name .. "_quantised_in_a_file_is_as_quantised_while_loading", function()
      local out = temporary ".gguf"
      must("convert", folder_of(name), out, "--type", "q4_0")
      same(logits(out, {kv = "f32"}), logits(folder_of(name), {quant = "q4_0", kv = "f32"}))
    end)
  end

  it("a_gguf_file_copied_is_the_same_model", function()
    local source, out = folder_of "llama" .. "/model.gguf", temporary ".gguf"
    must("convert", source, out)
    assert.is_true(logits(out) == logits(source))
  end)

  it("shards_are_cut_as_asked_and_are_the_same_model", function()
    local source, out = temporary ".gguf", temporary ""
    must("make-model", "--layers", "2", "--hidden", "256", "--heads", "4", "--kv-heads", "2", "--ffn", "512", "--vocab", "1000", "--type", "f16", source)
    must("convert", source, out, "--shard-size", "1")
    assert.is_truthy(io.open(out .. "/model.safetensors.index.json"))
    assert.is_nil(io.open(out .. "/model.safetensors"))
    assert.is_true(logits(out, float) == logits(source, float))
  end)

  it("a_folder_in_another_type_keeps_its_config", function()
    local out, again = temporary "", temporary ""
    must("convert", folder_of "qwen2", out, "--type", "f16")
    must("convert", out, again, "--type", "f32")
    assert.are.equal(helper.read(folder_of "qwen2" .. "/config.json"), helper.read(again .. "/config.json"))
    assert.is_true(logits(again, float) == logits(out, float))
  end)

  it("tensors_of_types_that_are_not_run_are_copied", function()
    local source, out = temporary ".safetensors", temporary ""
    local header = '{"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"F8_E4M3","shape":[1,2],"data_offsets":[3,5]},'
      .. '"c":{"dtype":"F32","shape":[0,2],"data_offsets":[5,5]}}'
    helper.write(source, string.char(#header, 0, 0, 0, 0, 0, 0, 0) .. header .. "abcde")
    must("convert", source, out, "--type", "f16")
    assert.are.equal("abcde", helper.read(out .. "/model.safetensors"):sub(-5))
  end)

  it("a_folder_that_has_a_model_is_not_written_over", function()
    local out = temporary ""
    must("convert", folder_of "qwen2", out, "--type", "f16")
    local code, output = run("convert", folder_of "llama", out)
    assert.are.equal(1, code)
    assert.is_truthy(output:find("found a checkpoint there", 1, true))
  end)

  -- A folder of one of the families' models with the tokeniser that goes with them.
  local function folder_with_tokeniser(name)
    local out = temporary ""
    must("convert", folder_of(name), out)
    os.execute(("cp %s %s"):format(helper.quote(helper.reference "models/families/tokenizer.json"), helper.quote(out .. "/tokenizer.json")))
    return out
  end

  local function continues(path)
    weir.shutdown()
    local m = weir.load(path, float)
    local out = {}
    for piece in m:generate {prompt = "Once upon a time", max_tokens = 8, temperature = 0} do
      out[#out + 1] = piece
    end
    m:close()
    return table.concat(out)
  end

  local function bytes_of(path)
    local f = assert(io.open(path, "rb"))
    local bytes = f:read "*a"
    f:close()
    return bytes
  end

  it("a_converted_model_makes_text_of_text", function()
    local source, gguf, back = folder_with_tokeniser "qwen2", temporary ".gguf", temporary ""
    must("convert", source, gguf)
    must("convert", gguf, back)
    local text = continues(source)
    assert.is_true(#text > 0)
    assert.are.equal(text, continues(gguf))
    assert.are.equal(text, continues(back))
  end)

  it("from_folder_to_folder_the_tokenisers_files_are_the_same_bytes", function()
    local source, out = folder_with_tokeniser "llama", temporary ""
    local f = io.open(source .. "/chat_template.jinja", "w")
    f:write "{{ messages }}"
    f:close()
    must("convert", source, out)
    for _, name in ipairs {"tokenizer.json", "config.json", "chat_template.jinja"} do
      assert.is_true(bytes_of(source .. "/" .. name) == bytes_of(out .. "/" .. name), name)
    end
  end)

  it("chat_templates_go_along_with_the_tokeniser", function()
    local source, gguf, back = folder_with_tokeniser "llama", temporary ".gguf", temporary ""
    local f = io.open(source .. "/tokenizer_config.json", "w")
    f:write '{"chat_template": [{"name": "default", "template": "d{# \\u00e9 #}"}, {"name": "tool_use", "template": "t"}]}'
    f:close()
    must("convert", source, gguf)
    must("convert", gguf, back)
    local config = bytes_of(back .. "/tokenizer_config.json")
    assert.is_truthy(config:find('"template": "d{# \195\169 #}"', 1, true))
    assert.is_truthy(config:find('"name": "tool_use"', 1, true))
  end)

  it("a_tokeniser_that_gguf_has_no_words_for_goes_along_whole_and_a_line_tells", function()
    local source, gguf = folder_with_tokeniser "llama", temporary ".gguf"
    local text = bytes_of(source .. "/tokenizer.json")
    local changed, n = text:gsub('"add_prefix_space": *false', '"add_prefix_space": true', 1)
    assert.are.equal(1, n)
    local f = io.open(source .. "/tokenizer.json", "w")
    f:write(changed)
    f:close()
    assert.is_truthy(must("convert", source, gguf):find("pre-tokeniser", 1, true))
    assert.are.equal(continues(source), continues(gguf))
  end)

  -- A shell line with W, IN and OUT; its exit code, what it said, what is left of OUT and beside it.
  local function shell(line, suffix)
    local source, folder = temporary ".gguf", temporary ""
    must("make-model", "--layers", "2", "--hidden", "1024", "--heads", "8", "--kv-heads", "8", "--ffn", "8192", "--vocab", "8000", "--type", "f16", source)
    os.execute("mkdir " .. helper.quote(folder))
    local p = io.popen(("W=%s IN=%s OUT=%s; { %s; } 2>&1; echo code $?; ls -A %s"):format(helper.quote(helper.program), helper.quote(source),
      helper.quote(folder .. "/out" .. suffix), line, helper.quote(folder)))
    local said = p:read "*a"
    p:close()
    return said:match "^(.-)code (%d+)\n(.*)$"
  end

  for what, suffix in pairs {a_file = ".gguf", a_folder = ""} do
    it("a_disk_without_room_for_" .. what .. "_is_an_error_that_names_it_and_nothing_is_left", function()
      local said, code, left = shell('(ulimit -f 20000; "$W" convert "$IN" "$OUT")', suffix)
      assert.are.equal("1", code)
      assert.is_truthy(said:find("/out" .. (suffix == "" and "/model.safetensors" or suffix), 1, true))
      assert.are.equal("", left)
    end)
  end

  for what, suffix in pairs {a_file = ".gguf", a_folder = ""} do
    it("ctrl_c_amid_" .. what .. "_ends_with_130_and_nothing_is_left", function()
      local said, code, left = shell('env --default-signal=INT "$W" convert "$IN" "$OUT" & pid=$!; '
        .. 'until [ -n "$(find "${OUT%/*}" -name "*.part")" ]; do kill -0 $pid || break; done; kill -INT $pid; wait $pid', suffix)
      assert.are.equal("130", code)
      assert.is_truthy(said:find("interrupted", 1, true))
      assert.are.equal("", left)
    end)
  end

  it("a_wrong_type_is_wrong_use", function()
    assert.are.equal(2, (run("convert", "a", "b", "--type", "q4_k")))
  end)

  it("types_are_taken_in_any_case", function()
    local out, again = temporary ".gguf", temporary ".gguf"
    must("convert", folder_of "llama", out, "--type", "Q8_0")
    must("convert", folder_of "llama", again, "--type", "q8_0")
    assert(helper.read(out) == helper.read(again))
    must("make-model", "--layers", "1", "--hidden", "64", "--heads", "2", "--vocab", "100", "--type", "Q4_0", again)
  end)

  it("what_the_result_cannot_be_is_wrong_use", function()
    for _, case in ipairs {
      {{"--type", "q4_0"}, "", "safetensors has no quantised types"}, {{"--type", "Q8_0"}, "", "safetensors has no quantised types"},
      {{"--shard-size", "5"}, ".gguf", "--shard-size"}, {{}, ".safetensors", "a folder"},
    } do
      local out = temporary(case[2])
      local code, output = run("convert", folder_of "llama", out, unpack(case[1]))
      assert.are.equal(2, code, output)
      assert.is_truthy(output:find(case[3], 1, true), output)
      assert.are_not.equal(0, (helper.shell("test -e " .. helper.quote(out))))
    end
  end)

  it("a_missing_file_is_named_and_nothing_is_left", function()
    local out = temporary ".gguf"
    local code, output = run("convert", "/nowhere/model.gguf", out)
    assert.are.equal(1, code)
    assert.is_truthy(output:find("/nowhere/model.gguf", 1, true))
    assert.is_nil(io.open(out))
  end)

  it("a_model_is_not_written_over_itself", function()
    local out = temporary ".gguf"
    must("convert", folder_of "qwen2", out)
    local before = logits(out)
    local code = run("convert", out, out)
    assert.are.equal(1, code)
    assert.is_true(before == logits(out))
  end)
end)

describe("make_model", function()
  teardown(weir.shutdown)

  local function make(out, ...)
    return run("make-model", "--layers", "2", "--hidden", "256", "--heads", "4", "--kv-heads", "2", "--ffn", "512", "--vocab", "1000", out, ...)
  end
  for _, family in ipairs {"llama", "qwen2", "qwen3", "mistral", "phi3", "gemma2"} do
    it("makes_" .. family, function()
      local out = helper.temporary ".gguf"
      local code, output = make(out, "--like", family)
      assert(code == 0, output)
      assert.are.equal(#tokens * 1000 * 4, #logits(out))
      os.remove(out)
    end)
  end

  for _, name in ipairs {"f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs", "mxfp4"} do
    it("makes_weights_of_" .. name .. "_of_sane_size", function()
      local out = helper.temporary ".gguf"
      local code, output = make(out, "--type", name)
      assert(code == 0, output)
      weir.shutdown()
      local hidden = weir.load(out):forward {tokens = tokens, hidden = true}.hidden[2]:table()
      local square = 0
      for _, v in ipairs(hidden) do
        square = square + v * v
      end
      local size = math.sqrt(square / #hidden) -- after the final norm
      assert.is_true(size > 0.5 and size < 2, "values of " .. size)
      os.remove(out)
    end)
  end

  it("the_same_seed_makes_the_same_bytes", function()
    local a, b = helper.temporary ".gguf", helper.temporary ".gguf"
    make(a, "--seed", "3")
    make(b, "--seed", "3")
    local x, y = io.open(a, "rb"), io.open(b, "rb")
    assert.is_true(x:read "*a" == y:read "*a")
    x:close()
    y:close()
    os.remove(a)
    os.remove(b)
  end)

  it("rows_that_are_no_whole_blocks_are_refused_and_nothing_is_left", function()
    local out = helper.temporary ".gguf"
    local code, output = run("make-model", "--type", "q4_k", "--hidden", "192", "--heads", "3", out)
    assert.are.equal(1, code)
    assert.is_truthy(output:find("multiple of 256", 1, true))
    assert.is_nil(io.open(out))
  end)
end)
