-- config.json: every key is read, known to be harmless, or refused by its name and value. The weights are the reference folder's small models.
local weir = require "weir"
local helper = require "helper"

local made = {}

-- A folder with the weights of a family and its config.json, changed by fn(config as a table).
local function changed(name, fn)
  local from = helper.reference("models/families/" .. name .. "/config.json"):match "^(.*)/config.json$"
  local folder = helper.temporary ""
  made[#made + 1] = folder
  os.execute(("mkdir %s && ln -s %s/model*.safetensors* %s/"):format(helper.quote(folder), helper.quote(from), helper.quote(folder)))
  local config = weir.json.decode(helper.read(from .. "/config.json"))
  fn(config)
  helper.write(folder .. "/config.json", weir.json.encode(config))
  return folder
end

local function set(key, value)
  return function(config)
    config[key] = value
  end
end

local function refused(code, name, fn, ...)
  weir.shutdown()
  local e = helper.raises(code, weir.load, changed(name, fn))
  for _, word in ipairs {...} do
    assert(tostring(e):find(word, 1, true), ("\"%s\" is not in \"%s\""):format(word, tostring(e)))
  end
end

local function logits(model)
  weir.shutdown()
  local m = weir.load(model, {activations = "f32", kv = "f32"})
  local t = m:forward {tokens = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}}.logits
  return require "ffi".string(t.data, t.bytes)
end

local function same(name, fn)
  assert.is_true(logits(changed(name, fn)) == logits(changed(name, function() end)))
end

local function different(name, fn)
  assert.is_false(logits(changed(name, fn)) == logits(changed(name, function() end)))
end

describe("config", function()
  after_each(function()
    for _, folder in ipairs(made) do
      os.execute("rm -r " .. helper.quote(folder))
    end
    made = {}
  end)
  teardown(weir.shutdown)

  it("a_key_that_is_not_known_is_refused_by_its_name_and_value", function()
    refused("EUNSUPPORTED", "llama", set("logit_scale", 0.25), "config.json", "logit_scale is 0.25")
    refused("EUNSUPPORTED", "qwen3", set("residual_multiplier", 2), "residual_multiplier is 2")
    refused("EUNSUPPORTED", "llama", set("use_parallel_residual", true), "use_parallel_residual is true")
    refused("EUNSUPPORTED", "llama", set("mlp_only_layers", {1, 2}), "mlp_only_layers is a list of 2")
  end)

  it("a_key_that_is_switched_off_is_not_refused", function()
    for _, value in ipairs {false, 0, weir.null} do
      same("llama", set("some_future_switch", value))
    end
  end)

  it("what_concerns_training_and_the_library_changes_nothing", function()
    same("llama", set("attention_dropout", 0.5))
    same("llama", set("transformers_version", "9.0"))
    same("llama", set("id2label", {["0"] = "x"}))
    same("llama", set("_name_or_path", "somewhere"))
  end)

  it("quantised_checkpoints_of_other_programs_are_refused", function()
    refused("EUNSUPPORTED", "llama", set("quantization_config", {quant_method = "gptq", bits = 4}), "quantization_config.")
  end)

  it("an_activation_that_is_not_run_is_refused", function()
    refused("EUNSUPPORTED", "llama", set("hidden_act", "relu2"), "\"hidden_act\"", "found \"relu2\"", "\"silu\"")
  end)

  it("another_activation_is_run", function()
    different("llama", set("hidden_act", "gelu_pytorch_tanh"))
  end)

  it("rotary_scalings_that_are_not_run_are_refused", function()
    for _, type_ in ipairs {"dynamic", "longrope", "su"} do
      refused("EUNSUPPORTED", "llama-linear", set("rope_scaling", {type = type_, factor = 2}), type_)
    end
    refused("EFORMAT", "llama-linear", set("rope_scaling", {type = "linear"}), "without a factor")
    refused("EFORMAT", "llama-linear", set("rope_scaling", {factor = 2}), "no rope_type")
  end)

  it("both_spellings_of_the_rotary_settings_are_read", function()
    same("llama-linear", function(c)
      c.rope_parameters = {rope_type = "linear", factor = c.rope_scaling.factor, rope_theta = c.rope_theta}
      c.rope_scaling, c.rope_theta = nil, nil
    end)
    same("llama", function(c)
      c.rope_theta, c.rope_scaling = c.rope_parameters.rope_theta, weir.null
      c.rope_parameters = nil
    end)
    different("llama", function(c)
      c.rope_theta, c.rope_parameters = 500000, nil
    end)
  end)

  it("keys_with_defaults_may_be_missing", function()
    same("llama", set("rope_parameters", nil))
    same("llama", set("head_dim", nil))
    same("llama", set("hidden_act", nil))
    same("gemma2", set("attn_logit_softcapping", nil))
    same("gemma2", set("layer_types", nil))
  end)

  it("null_switches_a_cap_or_a_window_off", function()
    different("gemma2", set("final_logit_softcapping", weir.null))
    different("mistral", set("sliding_window", weir.null))
  end)

  it("partial_rotation_is_run", function()
    different("phi3", function(c) c.rope_parameters.partial_rotary_factor = 0.5 end)
  end)

  it("sliding_layers_of_qwen_are_chosen_by_its_settings", function()
    different("qwen2", function(c)
      c.use_sliding_window, c.sliding_window, c.max_window_layers, c.layer_types = true, 4, 1, nil
    end)
    same("qwen2", function(c)
      c.use_sliding_window, c.sliding_window, c.max_window_layers, c.layer_types = false, 4, 1, nil
    end)
  end)

  it("layer_types_must_fit", function()
    refused("EFORMAT", "gemma2", set("layer_types", {"full_attention"}), "layer_types has 1", "num_hidden_layers is 4")
    refused("EUNSUPPORTED", "gemma2", set("layer_types", {"full_attention", "full_attention", "linear_attention", "full_attention"}), "layer 2",
      "\"linear_attention\"")
  end)

  it("sizes_that_cannot_be_are_refused", function()
    refused("EFORMAT", "llama", set("num_attention_heads", 0), "\"num_attention_heads\"", "found 0")
    refused("EFORMAT", "llama", set("num_key_value_heads", 3), "num_key_value_heads, 3")
    refused("EFORMAT", "llama", set("num_hidden_layers", 10 ^ 9), "\"num_hidden_layers\"")
    refused("EFORMAT", "llama", set("hidden_size", "64"), "\"hidden_size\"", "found \"64\"")
    refused("EFORMAT", "llama", set("rms_norm_eps", -1), "\"rms_norm_eps\"", "found -1")
    refused("EFORMAT", "llama", set("intermediate_size", 97), "mlp.gate_proj.weight", "wanted 64 x 97")
    refused("EFORMAT", "llama", set("hidden_size", nil), "\"hidden_size\"", "not found")
  end)

  it("biases_that_the_config_promises_must_be_there", function()
    refused("EFORMAT", "llama", set("attention_bias", true), "q_proj.bias", "missing")
  end)

  it("safetensors_B9_a_head_that_is_missing_is_tied_and_said", function()
    weir.shutdown()
    local m = weir.load(changed("llama-tied", set("tie_word_embeddings", false)))
    assert.is_truthy(m.info.warning:find("tie_word_embeddings is false", 1, true))
    same("llama-tied", set("tie_word_embeddings", false))
  end)

  it("safetensors_B9_a_head_that_is_tied_by_the_config_is_not_used", function()
    different("llama", set("tie_word_embeddings", true))
  end)

  it("encoders_and_other_kinds_are_refused_by_what_they_are", function()
    for name, kind in pairs {bert = "an encoder", modernbert = "an encoder", t5 = "an encoder-decoder", mixtral = "a mixture of experts"} do
      refused("EUNSUPPORTED", name, function() end, "\"" .. name .. "\" is " .. kind, "supported: llama")
    end
  end)
end)
