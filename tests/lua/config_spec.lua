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

-- The same with its tensors changed by edit(header as a table, bytes behind the header), which returns the new bytes.
local function with_tensors(name, edit, fn)
  local folder = changed(name, fn or function() end)
  local path = folder .. "/model.safetensors"
  local whole = helper.read(path)
  local n = whole:byte(1) + whole:byte(2) * 256 + whole:byte(3) * 65536
  local header = weir.json.decode(whole:sub(9, 8 + n))
  local bytes = edit(header, whole:sub(9 + n))
  local text = weir.json.encode(header)
  os.remove(path)
  helper.write(path, string.char(#text % 256, math.floor(#text / 256) % 256, math.floor(#text / 65536), 0, 0, 0, 0, 0) .. text .. bytes)
  return folder
end

-- The head's bytes are the embedding's, the last of them changed by fn.
local function head_like_embedding(fn)
  return function(header, bytes)
    local from, to = header["model.embed_tokens.weight"].data_offsets, header["lm_head.weight"].data_offsets
    local table_ = bytes:sub(from[1] + 1, from[2])
    return bytes:sub(1, to[1]) .. table_:sub(1, -2) .. fn(table_:sub(-1)) .. bytes:sub(to[2] + 1)
  end
end

local function as_it_is(byte)
  return byte
end

local function other(byte)
  return string.char((byte:byte() + 1) % 64)
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

local function refused_folder(code, folder, ...)
  weir.shutdown()
  local e = helper.raises(code, weir.load, folder)
  for _, word in ipairs {...} do
    assert(tostring(e):find(word, 1, true), ("\"%s\" is not in \"%s\""):format(word, tostring(e)))
  end
end

local function warning(folder)
  weir.shutdown()
  return weir.load(folder).info.warning
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

local function agree(name, a, b)
  assert.is_true(logits(changed(name, a)) == logits(changed(name, b)))
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

  it("a_key_without_a_name_is_refused", function()
    refused("EUNSUPPORTED", "llama", set("", 5), "is 5")
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
    refused("EFORMAT", "llama", set("intermediate_size", 97), "mlp.gate_proj.weight", "is 96 x 64", "wanted 97 x 64")
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

  it("safetensors_B9_a_head_of_its_own_is_used_and_said_where_the_config_ties_it", function()
    same("llama", set("tie_word_embeddings", true))
    assert.is_truthy(warning(changed("llama", set("tie_word_embeddings", true))):find("tie_word_embeddings is true", 1, true))
    local folder = with_tensors("llama", head_like_embedding(other), set("tie_word_embeddings", true))
    assert.is_truthy(warning(folder):find("lm_head.weight", 1, true))
  end)

  it("safetensors_B9_a_head_with_the_bytes_of_the_embedding_is_tied", function()
    local tied = with_tensors("llama", head_like_embedding(as_it_is), set("tie_word_embeddings", true))
    local untied = with_tensors("llama", head_like_embedding(as_it_is), set("tie_word_embeddings", false))
    assert.is_nil(warning(tied))
    weir.shutdown()
    local less = weir.load(tied).info.parameters
    weir.shutdown()
    assert.is_true(less < weir.load(untied).info.parameters)
    assert.is_true(logits(tied) == logits(untied))
  end)

  it("a_head_of_its_own_is_converted_where_the_config_ties_it", function()
    local folder = changed("llama", set("tie_word_embeddings", true))
    local out = helper.temporary ".gguf"
    local status, _, err = helper.weir {"convert", folder, out}
    assert.are.equal(0, status, err)
    assert.is_truthy(err:find("tie_word_embeddings is true", 1, true), err)
    assert.is_true(logits(out) == logits(folder))
    os.remove(out)
  end)

  it("what_published_configs_carry_changes_nothing", function()
    same("llama", function(c) -- SmolLM2's
      c.is_llama_config, c.rope_interleaved = true, false
      c["transformers.js_config"] = {kv_cache_dtype = {q4f16 = "float16", fp16 = "float16"}}
    end)
    same("llama", function(c) -- what PretrainedConfig of transformers 4 writes
      c.max_length, c.do_sample, c.temperature, c.top_k, c.top_p, c.typical_p, c.num_beams = 20, true, 0.6, 50, 0.9, 1, 1
      c.repetition_penalty, c.length_penalty, c.num_beam_groups, c.num_return_sequences = 1, 1, 1, 1
      c.return_dict, c.is_decoder, c.chunk_size_feed_forward, c.tokenizer_class, c._commit_hash = true, true, 64, "X", "c0ffee"
      c.id2label, c.label2id, c.bad_words_ids, c.max_window_layers = {["0"] = "a"}, {a = 0}, {{5}, {7}}, 21
      c.exponential_decay_length_penalty, c.suppress_tokens, c.sep_token_id, c.prefix = {5, 1.5}, {1, 2}, 3, "x"
      c.task_specific_params = {summary = {max_length = 20, nested = {prefix = "y"}}}
    end)
  end)

  it("what_would_change_logits_is_refused_by_its_value", function()
    refused("EUNSUPPORTED", "llama", set("pruned_heads", {["0"] = {1, 2}}), "pruned_heads.0 is a list of 2")
    refused("EUNSUPPORTED", "llama", set("add_cross_attention", true), "add_cross_attention is true")
    refused("EUNSUPPORTED", "llama", set("is_encoder_decoder", true), "is_encoder_decoder is true")
    refused("EUNSUPPORTED", "llama", set("rope_interleaved", true), "rope_interleaved is true")
    same("llama", function(c) c.pruned_heads, c.add_cross_attention, c.is_encoder_decoder = {}, false, false end)
  end)

  it("a_missing_epsilon_is_that_of_the_family", function()
    for name, eps in pairs {llama = 1e-6, mistral = 1e-6, qwen3 = 1e-6, gemma2 = 1e-6, phi3 = 1e-5} do
      agree(name, set("rms_norm_eps", nil), set("rms_norm_eps", eps))
      agree(name, set("rms_norm_eps", weir.null), set("rms_norm_eps", eps))
    end
  end)

  it("rope_scaling_counts_as_a_whole_before_rope_parameters", function()
    same("llama-linear", set("rope_parameters", {rope_type = "llama3", factor = 8, rope_theta = 5, partial_rotary_factor = 0.5, x = 1}))
    same("llama", set("rope_scaling", weir.null))
    same("llama", set("rope_scaling", weir.json.decode "{}"))
    agree("llama-linear", function(c) c.rope_scaling.rope_theta = 500000 end, set("rope_theta", 500000))
    refused("EUNSUPPORTED", "llama-linear", function(c) c.rope_scaling.x = 1 end, "rope_scaling.x is 1")
  end)

  it("gemma2_says_its_activation_under_a_name_of_its_own", function()
    same("gemma2", set("hidden_act", "silu"))
    same("gemma2", set("hidden_act", "gelu"))
    different("gemma2", set("hidden_activation", "silu"))
    refused("EUNSUPPORTED", "llama", set("hidden_activation", "silu"), "hidden_activation is \"silu\"")
  end)

  it("layer_types_of_families_whose_layers_are_alike_must_say_so", function()
    local full, sliding = {}, {}
    for i = 1, 3 do
      full[i], sliding[i] = "full_attention", "sliding_attention"
    end
    same("mistral", set("layer_types", sliding))
    refused("EUNSUPPORTED", "mistral", set("layer_types", full), "layer_types of layer 0", "\"full_attention\"", "wanted \"sliding_attention\"")
    same("phi3", set("layer_types", full))
    refused("EUNSUPPORTED", "phi3", set("layer_types", {"full_attention", "sliding_attention", "full_attention"}), "layer 1")
    agree("phi3", function(c) c.sliding_window, c.layer_types = 4, sliding end, set("sliding_window", 4))
    refused("EUNSUPPORTED", "phi3", function(c) c.sliding_window, c.layer_types = 4, full end, "layer 0")
  end)

  it("layer_types_of_another_kind_are_refused", function()
    for name, layers in pairs {mistral = 3, gemma2 = 4, qwen2 = 3} do
      refused("EFORMAT", name, set("layer_types", "x"), "\"layer_types\"", "found \"x\"", "wanted a list")
      refused("EFORMAT", name, set("layer_types", 5), "\"layer_types\"", "found 5", "wanted a list of " .. layers)
    end
  end)

  it("a_number_of_another_kind_is_wanted_whole", function()
    refused("EFORMAT", "llama", set("hidden_size", "64"), "\"hidden_size\"", "wanted a whole number from 1 to ")
    refused("EFORMAT", "llama", set("num_hidden_layers", 2.5), "found 2.5", "wanted a whole number from 1 to 1024")
  end)

  it("a_missing_tensor_names_the_files_of_tensors", function()
    local folder = with_tensors("llama", function(header, bytes)
      header["model.embed_tokens.weight"], header["model.tokens.weight"] = nil, header["model.embed_tokens.weight"]
      return bytes
    end)
    weir.shutdown()
    local e = tostring(helper.raises("EFORMAT", weir.load, folder))
    assert.is_truthy(e:find("\"model.embed_tokens.weight\" is missing", 1, true), e)
    assert.is_nil(e:find("config.json", 1, true), e)
  end)

  it("tensors_without_the_prefix_of_a_model_are_told", function()
    refused_folder("EFORMAT", with_tensors("llama", function(header, bytes)
      local names = {}
      for key in pairs(header) do
        names[#names + 1] = key:match "^model%.(.*)"
      end
      for _, name in ipairs(names) do
        header[name], header["model." .. name] = header["model." .. name], nil
      end
      return bytes
    end), "\"model.embed_tokens.weight\" is missing", "\"embed_tokens.weight\" is there, without the prefix")
  end)

  it("a_leading_dimension_of_one_is_another_shape", function()
    refused_folder("EFORMAT", with_tensors("llama", function(header, bytes)
      header["model.norm.weight"].shape = {1, 64}
      return bytes
    end), "\"model.norm.weight\" is 1 x 64, wanted 64")
    refused_folder("EFORMAT", with_tensors("llama", function(header, bytes)
      header["lm_head.weight"].shape = {1, 512, 64}
      return bytes
    end), "\"lm_head.weight\" is 1 x 512 x 64, wanted 512 x 64")
  end)

  it("a_token_that_ends_a_text_is_a_number", function()
    refused("EFORMAT", "llama", set("eos_token_id", "x"), "\"eos_token_id\"", "found \"x\"", "wanted the number of a token")
    refused("EFORMAT", "llama", set("eos_token_id", {1, "x"}), "\"eos_token_id\"", "found \"x\"")
    same("llama", set("eos_token_id", {1, 2}))
    same("llama", set("eos_token_id", weir.null))
    assert.is_truthy(warning(changed("llama", set("eos_token_id", {2, 512}))):find("eos_token_id 512 of config.json", 1, true))
  end)

  it("what_stands_beside_a_tokeniser_must_fit_it", function()
    local tokenizer = helper.reference "models/families/tokenizer.json"
    local function with(name, text)
      local folder = changed("llama", function() end)
      os.execute(("ln -s %s %s/"):format(helper.quote(tokenizer), helper.quote(folder)))
      helper.write(folder .. "/" .. name, text)
      return folder
    end
    assert.is_nil(warning(with("generation_config.json", '{"eos_token_id": [2, 1]}')))
    assert.is_nil(warning(with("tokenizer_config.json", '{"eos_token": "</s>"}')))
    assert.is_truthy(warning(with("generation_config.json", '{"eos_token_id": [2, 99999]}')):find("eos_token_id 99999 of generation_config.json", 1, true))
    assert.is_truthy(warning(with("tokenizer_config.json", '{"eos_token": "<nothing>"}')):find("eos_token \"<nothing>\" is no piece", 1, true))
    refused_folder("EFORMAT", with("generation_config.json", '{"eos_token_id": 2, "x": }'), "generation_config.json")
    refused_folder("EFORMAT", with("generation_config.json", '{"eos_token_id": "x"}'), "generation_config.json")
  end)

  it("encoders_and_other_kinds_are_refused_by_what_they_are", function()
    for name, kind in pairs {bert = "an encoder", modernbert = "an encoder", t5 = "an encoder-decoder", mixtral = "a mixture of experts"} do
      refused("EUNSUPPORTED", name, function() end, "\"" .. name .. "\" is " .. kind, "supported: llama")
    end
  end)
end)
