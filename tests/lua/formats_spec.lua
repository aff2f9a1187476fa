-- Tensors, safetensors files, command-line parsing: what needs no model.
local ffi = require "ffi"
local args = require "weir.args"
local safetensors = require "weir.safetensors"
local tensor = require "weir.tensor"
local weir = require "weir"
local helper = require "helper"

local function floats(...)
  local values = {...}
  local data = ffi.new("float[?]", #values, values)
  return data
end

describe("tensor", function()
  it("reads_elements_and_rows_from_0", function()
    local data = floats(1, 2, 3, 4, 5, 6)
    local t = tensor.new(data, "F32", {2, 3}, 0, data)
    assert.are.equal(1, t:get(0, 0))
    assert.are.equal(6, t:get(1, 2))
    assert.are.same({3}, t:row(1).shape)
    assert.are.same({4, 5, 6}, t:row(1):table())
    assert.are.equal("F32 [2, 3] {1, 2, 3, 4, 5, 6}", tostring(t))
  end)

  it("refuses_indices_outside", function()
    local data = floats(1, 2)
    local t = tensor.new(data, "F32", {2}, 0, data)
    for _, index in ipairs {-1, 2, 0.5, "x"} do
      helper.raises("EINVAL", t.get, t, index)
      helper.raises("EINVAL", t.row, t, index)
    end
    helper.raises("EINVAL", t.get, t)
    helper.raises("EINVAL", tensor.new, data, "F8", {2})
  end)

  it("refuses_a_view_beyond_its_buffer", function()
    weir.shutdown()
    local main = weir.self()
    weir.send(main, "x", weir.bin(("x"):rep(8192)))
    local buffer = weir.receive()[1]
    assert.are.equal(2048, tensor.new(buffer, "F32", {2048}).shape[1])
    helper.raises("EINVAL", tensor.new, buffer, "F32", {2049})
    helper.raises("EINVAL", tensor.new, buffer, "F32", {2048}, 4)
    helper.raises("EINVAL", tensor.new, buffer, "F32", {1}, -4)
  end)
end)

describe("safetensors", function()
  local path

  before_each(function() path = helper.temporary ".safetensors" end)
  after_each(function() os.remove(path) end)

  -- A file with this header text and data.
  local function write(header, data, length)
    local n = ffi.new("uint64_t[1]", length or #header)
    helper.write(path, ffi.string(n, 8) .. header .. (data or ""))
  end

  it("writes_what_it_reads", function()
    local a, ids = floats(1.5, -2, 3, 4), ffi.new("int32_t[3]", 7, 8, 9)
    safetensors.write(path, {
      {name = "a", tensor = tensor.new(a, "F32", {2, 2}, 0, a)}, {name = "ids", tensor = tensor.new(ids, "I32", {3}, 0, ids)},
      {name = "none", tensor = tensor.new(a, "F32", {0, 5}, 0, a)},
    }, {made = "by a test"})
    local file = safetensors.open(path)
    assert.are.same({"a", "ids", "none"}, file.names)
    assert.are.equal("by a test", file.metadata.made)
    assert.are.same({1.5, -2, 3, 4}, file:tensor "a":table())
    assert.are.same({7, 8, 9}, file:tensor "ids":table())
    assert.are.same({0, 5}, file:tensor "none".shape)
    assert.is_nil(file:tensor "other")
    assert.is_nil(file:tensor "__metadata__")
    file:close()
    assert.are.equal(0, (#helper.read(path) - 28) % 8)
  end)

  it("reads_the_files_of_others", function()
    local file = safetensors.open(helper.reference "models/families/llama/reference.safetensors")
    assert.are.same({48, 512}, file:tensor "logits".shape)
    assert.are.same({48}, file:tensor "input_ids".shape)
    file:close()
  end)

  it("leaves_no_file_when_it_cannot_write", function()
    local data = floats(1)
    helper.raises("EIO", safetensors.write, "/nowhere/at/all", {{name = "a", tensor = tensor.new(data, "F32", {1}, 0, data)}})
    assert.is_nil(io.open(path .. ".part"))
  end)

  it("refuses_malformed_files", function()
    local good = '{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    local bad = {
      {"", nil, 0}, {good, "1234567"}, {good, "12345678", 1e9}, {good, "12345678", 5}, {"[]", ""}, {"{", ""}, {'{"a":1}', ""},
      {'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}', "12345678"},
      {'{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}', "12345678"},
      {'{"a":{"dtype":"F32","shape":[0.5],"data_offsets":[0,2]}}', "12345678"},
      {'{"a":{"dtype":"F32","shape":["2"],"data_offsets":[0,8]}}', "12345678"},
      {'{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}', "12345678"},
      {'{"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}}', "12345678"},
      {'{"a":{"dtype":"F99","shape":[2],"data_offsets":[0,8]}}', "12345678"},
      {'{"a":{"dtype":"F32","shape":[9007199254740993],"data_offsets":[0,8]}}', "12345678"},
    }
    for _, case in ipairs(bad) do
      write(unpack(case, 1, 3))
      local ok, e = pcall(function()
        local file = safetensors.open(path)
        return file:tensor "a":get(0)
      end)
      assert.is_false(ok, case[1])
      assert.is_true(weir.is_error(e, "EFORMAT"), case[1] .. ": " .. tostring(e))
    end
    helper.write(path, "short")
    helper.raises("EFORMAT", safetensors.open, path)
    helper.raises("ENOENT", safetensors.open, path .. ".none")
    write(good, "12345678")
    assert.are.same({2}, safetensors.open(path):tensor "a".shape)
  end)
end)

describe("args", function()
  local command = {
    positional = {"FILE", "[OTHER]"},
    options = {
      {flags = "-n", type = "count"}, {flags = "--top-p", type = "number"}, {flags = "--ids", type = "ids"}, {flags = "--quick -q", type = "flag"},
      {flags = "--stop", type = "string", many = true}, {flags = "--kind", type = "a|b", default = "a"}, {flags = "--seed", type = "seed"},
    },
  }

  local function fails(argv, text)
    local ok, e = pcall(args.parse, command, argv)
    assert.is_false(ok)
    assert.is_true(args.is_usage(e), tostring(e))
    assert.is_truthy(e.text:find(text, 1, true), e.text)
  end

  it("parses", function()
    local o = args.parse(command, {"-n", "5", "f", "--top-p=0.5", "--ids", "1,2,3", "--stop", "x", "--stop=--y", "--kind", "b", "g"})
    assert.are.same({"f", "g", n = 5, top_p = 0.5, ids = {1, 2, 3}, stop = {"x", "--y"}, kind = "b"}, o)
    assert.are.equal("a", args.parse(command, {"f"}).kind)
    assert.are.equal("--n", args.parse(command, {"--", "--n"})[1])
    assert.are.equal("-", args.parse(command, {"-"})[1])
  end)

  it("says_what_is_wrong", function()
    fails({}, "FILE is missing")
    fails({"a", "b", "c"}, "unexpected argument 'c'")
    fails({"a", "--nope"}, "unknown option --nope")
    fails({"a", "-n"}, "-n needs a value")
    fails({"a", "-n", "x"}, "wanted a whole number")
    fails({"a", "-n", "-1"}, "wanted a whole number")
    fails({"a", "-n", "1.5"}, "wanted a whole number")
    fails({"a", "--top-p", "high"}, "wanted a number")
    fails({"a", "--ids", "1,,2"}, "wanted token ids")
    fails({"a", "--ids", "1,-2"}, "wanted token ids")
    fails({"a", "--kind", "c"}, "wanted one of a, b")
    fails({"a", "--quick=1"}, "takes no value")
    fails({"a", "--seed", "-1"}, "wanted a whole number")
  end)
end)
