--- weir info and weir models: files of both formats, folders, kept names; what is printed, also as JSON, and what does not run.
local helper = require "helper"
local weir = require "weir"

local function entry(name, dtype, size, from)
  return ('"%s":{"dtype":"%s","shape":[2,%d],"data_offsets":[%d,%d]}'):format(name, dtype, size / 2, from, from + size)
end

-- A file of safetensors whose tensors are one byte an element.
local function safetensors(path, ...)
  local header = "{" .. table.concat({...}, ",") .. "}"
  local data = 0
  for last in header:gmatch ",(%d+)%]}" do
    data = math.max(data, tonumber(last))
  end
  local length = string.char(#header % 256, math.floor(#header / 256), 0, 0, 0, 0, 0, 0)
  helper.write(path, length .. header .. ("\0"):rep(data))
end

describe("info", function()
  local folder

  setup(function() folder = helper.temporary() end)

  before_each(function() os.execute("mkdir -p " .. helper.quote(folder)) end)

  after_each(function() os.execute("rm -r " .. helper.quote(folder)) end)

  local function info(...)
    return helper.weir {"info", folder, ...}
  end

  it("a_folder_of_safetensors_is_described", function()
    helper.write(folder .. "/config.json", '{"model_type":"llama","a":{"b":[1,2,3,4,5,6,7,8,9]},"c":null,"d":"x\\ny"}')
    safetensors(folder .. "/model.safetensors", entry("w", "I8", 4, 0), entry("v", "F8_E4M3", 6, 4))
    local code, out, err = info "--tensors"
    assert.are.equal("", err)
    assert.are.equal(0, code)
    for _, line in ipairs {
      "safetensors, 1 file, ", "family: llama\n", "parameters: 10 in 2 tensors\n", "  f8_e4m3      1 tensors          6 B\n", "  i8           1 tensors          4 B\n",
      "  a.b = [1, 2, 3, 4, 5, 6, 7, 8, ...] (9)\n", "  c = null\n", "  d = x\\x0ay\n", "i8       [2, 2] 4 B\n", "f8_e4m3  [3, 2] 6 B\n", "tokeniser: none\n",
      "chat template: none\n", "runs: no: ",
    } do
      assert.is_truthy(out:find(line, 1, true), line .. " is not in " .. out)
    end
  end)

  it("shards_are_listed", function()
    helper.write(folder .. "/config.json", '{"model_type":"llama"}')
    safetensors(folder .. "/a.safetensors", entry("w", "I8", 4, 0))
    safetensors(folder .. "/b.safetensors", entry("v", "I8", 6, 0))
    helper.write(folder .. "/model.safetensors.index.json", '{"weight_map":{"w":"a.safetensors","v":"b.safetensors"}}')
    local _, out = info()
    assert.is_truthy(out:find(": safetensors, 2 files, ", 1, true))
    assert.is_truthy(out:find("file " .. folder .. "/b.safetensors, ", 1, true))
  end)

  it("json_is_complete", function()
    helper.write(folder .. "/config.json", '{"model_type":"llama","big":1e30}')
    safetensors(folder .. "/model.safetensors", entry("w", "I8", 4, 0))
    local code, out = info("--json", "--tensors")
    assert.are.equal(0, code)
    local doc = weir.json.decode(out)
    assert.are.equal("safetensors", doc.format)
    assert.are.equal("llama", doc.family)
    assert.are.equal(folder .. "/model.safetensors", doc.files[1])
    assert.are.equal(1, doc.types[1].tensors)
    assert.are.equal(4, doc.types[1].bytes)
    assert.are.equal("w", doc.tensors[1].name)
    assert.are.equal("big", doc.settings[2].name)
    assert.is_false(doc.runs)
    assert.is_truthy(doc.reason:find(folder, 1, true))
  end)

  it("what_runs_is_said_to_run", function()
    local model = helper.reference "models/families/llama/model.gguf"
    local code, out, err = helper.weir {"info", model}
    assert.are.equal("", err)
    assert.are.equal(0, code)
    assert.is_truthy(out:find("tokeniser: gpt2, smollm; 512 pieces; begin 1 <s>; end 2 </s>", 1, true))
    assert.is_truthy(out:find("runs: yes: 158.1 K parameters", 1, true))
    code, out = helper.weir {"info", (model:gsub("/model.gguf$", ""))}
    assert.are.equal(0, code)
    assert.is_truthy(out:find("runs: yes: 158.1 K parameters", 1, true))
  end)

  it("what_is_no_checkpoint_is_an_error", function()
    helper.write(folder .. "/pytorch_model.bin", "PK\3\4")
    local code, out, err = info()
    assert.are.equal(1, code)
    assert.are.equal("", out)
    assert.is_truthy(err:find("PyTorch", 1, true))
  end)
end)

describe("kept_models", function()
  local data

  setup(function() data = helper.temporary() end)

  teardown(function() os.execute("rm -r " .. helper.quote(data)) end)

  local function run(line)
    return helper.shell(("XDG_DATA_HOME=%s %s %s"):format(helper.quote(data), helper.quote(helper.program), line))
  end

  it("folders_and_files_are_found_by_name", function()
    local source = helper.reference "models/families/llama/model.gguf"
    local models = data .. "/weir/models"
    os.execute(("mkdir -p %s/folder && cp %s %s/single.gguf && cp %s %s/folder/any.gguf"):format(models, source, models, source, models))
    local _, out = run "models"
    assert.is_truthy(out:find "folder +646%.3 KB")
    assert.is_truthy(out:find "single +646%.3 KB")
    for _, name in ipairs {"folder", "single"} do
      local code, text = run("info " .. name)
      assert.are.equal(0, code)
      assert.is_truthy(text:find("runs: yes", 1, true))
    end
    local code, _, err = run "info absent"
    assert.are.equal(1, code)
    assert.is_truthy(err:find("absent.gguf", 1, true))
  end)

  it("a_split_set_has_one_name", function()
    local models = data .. "/weir/models"
    os.execute("mkdir -p " .. models)
    helper.write(models .. "/cut-00001-of-00002.gguf", "12345678")
    helper.write(models .. "/cut-00002-of-00002.gguf", "1234")
    local _, out = run "models"
    assert.is_truthy(out:find "cut +12 B")
    local code, _, err = run "info cut" -- found, and no GGUF
    assert.are.equal(1, code)
    assert.is_truthy(err:find("of-00002.gguf: ", 1, true))
  end)
end)
