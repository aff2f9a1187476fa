-- weir bench device: its figures are there; what they come to is the machine's.
local weir = require "weir"
local helper = require "helper"

describe("weir bench device", function()
  it("prints_every_figure_of_a_device_and_of_a_model_on_it", function()
    local path = helper.temporary ".gguf"
    require "weir.core".llama2c_convert(helper.reference "models/stories260K/stories260K.bin", nil, path)
    local code, out, err = helper.weir {"bench", "device", path, "--device", "cuda", "--small", "--json"}
    os.remove(path)
    assert.equal("", err)
    assert.equal(0, code)
    local m = weir.json.decode(out)
    for _, name in ipairs {"bytes", "traffic", "upload", "download", "launch", "replay", "work", "sending", "both"} do
      assert.is_true(m[name] > 0, name)
    end
    assert.is_true(m.overlap >= 0 and m.overlap <= 1)
    assert.is_true(m.decode.weight_bytes > 0 and m.decode.bandwidth > 0 and m.decode.tokens_per_second > 0)
    assert.matches("sm_", m.decode.device, 1, true)
  end)

  it("says_the_same_in_words", function()
    local code, out = helper.weir {"bench", "device", "--device", "cuda", "--small"}
    assert.equal(0, code)
    assert.matches("GB/s %(read and written%).*us launched one by one.*hidden", out)
  end)

  it("is_what_is_meant_where_models_are_measured_on_the_cpu", function()
    local code, out, err = helper.weir {"bench", "model", "any.gguf", "--device", "cuda"}
    assert.equal(2, code)
    assert.equal("", out)
    assert.matches("bench device MODEL --device NAME", err, 1, true)
  end)
end)
