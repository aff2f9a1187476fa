--- Command lines: options and positional arguments of the subcommands, their help, and what is said about wrong ones.
-- @module weir.args
local args = {}

local Usage = {}

--- An error that ends a program with exit code 2.
function args.fail(text, ...)
  error(setmetatable({text = select("#", ...) > 0 and text:format(...) or text}, Usage), 0)
end

--- Whether an error value is one of args.fail.
function args.is_usage(e)
  return getmetatable(e) == Usage
end

local parse = {}

function parse.string(text)
  return text
end

function parse.text(text)
  return text ~= "" and text or nil, "a text that is not empty"
end

function parse.number(text, option)
  local n, min, max = tonumber(text), option.min or -math.huge, option.max or math.huge
  local wanted = option.min and ("a number from %.10g to %.10g"):format(min, max) or "a number"
  return n and n >= min and n <= max and n or nil, wanted
end

-- A whole number from min to an option's own or another maximum.
local function whole(min, most)
  return function(text, option)
    local n, max = tonumber(text), option.max or most
    return n and n >= min and n <= max and n % 1 == 0 and n or nil, ("a whole number from %d to %.0f"):format(min, max)
  end
end

parse.count, parse.positive, parse.seed = whole(0, 2 ^ 31 - 1), whole(1, 2 ^ 31 - 1), whole(0, 2 ^ 53 - 1)

function parse.ids(text)
  local ids = {}
  for word in (text .. ","):gmatch "([^,]*)," do
    local id = tonumber(word)
    if not id or id < 0 or id % 1 ~= 0 or id >= 2 ^ 31 then
      return nil, "token ids with commas between them, like 1,2,3"
    end
    ids[#ids + 1] = id
  end
  return ids
end

function parse.counts(text)
  local ids = parse.ids(text)
  return ids, "whole numbers with commas between them, like 1,2"
end

function parse.biases(text)
  local biases, wanted = {}, "ID=NUMBER with commas between them, each token once, numbers from -100 to 100, like 13=-100,42=1.5"
  for word in (text .. ","):gmatch "([^,]*)," do
    local id, addend = word:match "^(%d+)=([^=]+)$"
    id, addend = tonumber(id), tonumber(addend)
    if not id or not addend or id >= 2 ^ 31 or biases[id] or not (addend >= -100 and addend <= 100) then
      return nil, wanted
    end
    biases[id] = addend
  end
  return biases
end

local steps = "repeat_penalty,frequency_penalty,presence_penalty,logit_bias,temperature,top_k,typical,top_p,min_p"

function parse.steps(text)
  local names, left = {}, {}
  for step in steps:gmatch "[^,]+" do
    left[step] = true
  end
  for word in (text .. ","):gmatch "([^,]*)," do
    if not left[word] then
      return nil, "steps with commas between them, each once: " .. steps
    end
    left[word], names[#names + 1] = nil, word
  end
  return names
end

-- One of the words, which are in small letters; taken in any case.
local function choice(text, choices)
  for word in choices:gmatch "[^|]+" do
    if word == text:lower() then
      return word
    end
  end
  return nil, "one of " .. choices:gsub("|", ", ")
end

-- The value of an option, checked; raises.
local function value_of(option, flag, text)
  local value, wanted
  if option.type:find "|" then
    value, wanted = choice(text, option.type)
  else
    value, wanted = parse[option.type](text, option)
  end
  if value == nil then
    args.fail("%s is '%s', wanted %s", flag, text, wanted)
  end
  return value
end

local function index_options(options)
  local by_flag = {}
  for _, option in ipairs(options) do
    for flag in option.flags:gmatch "%S+" do
      by_flag[flag] = option
    end
  end
  return by_flag
end

local function key_of(option)
  return (option.flags:match "(%S+)$":gsub("^%-+", ""):gsub("%-", "_"))
end

local function store(result, option, value)
  local key = key_of(option)
  if option.many then
    result[key] = result[key] or {}
    table.insert(result[key], value)
  else
    result[key] = value
  end
end

local function take_option(by_flag, argv, at, result)
  local word = argv[at]
  local flag, inline = word:match "^(%-%-[^=]+)=(.*)$"
  flag = flag or word
  local option = by_flag[flag]
  if not option then
    args.fail("unknown option %s", flag)
  elseif option.type == "flag" then
    if inline then
      args.fail("%s takes no value", flag)
    end
    store(result, option, true)
    return at + 1
  end
  local text = inline or argv[at + 1]
  if text == nil then
    args.fail("%s needs a value", flag)
  end
  store(result, option, value_of(option, flag, text))
  return inline and at + 1 or at + 2
end

--- Parses a command line. Positional arguments come as result[1], ...; options under their longest name, - as _.
-- @tparam table command options: array of {flags, type, text, many, default, min, max}; positional: array of names, the last may be optional ("[NAME]") or stand for
-- any number ("[NAME...]")
-- @tparam table argv
function args.parse(command, argv)
  local by_flag, result, at, only_positional = index_options(command.options or {}), {}, 1, false
  while argv[at] do
    local word = argv[at]
    if word == "--" and not only_positional then
      only_positional, at = true, at + 1
    elseif word:match "^%-." and not only_positional and not word:match "^%-%d" then
      at = take_option(by_flag, argv, at, result)
    else
      result[#result + 1], at = word, at + 1
    end
  end
  local positional, needed = command.positional or {}, 0
  for _, name in ipairs(positional) do
    needed = needed + (name:match "^%[" and 0 or 1)
  end
  if #result < needed then
    args.fail("%s is missing", positional[#result + 1])
  elseif #result > #positional and not (positional[#positional] or ""):match "%.%.%.%]$" then
    args.fail("unexpected argument '%s'", result[#positional + 1])
  end
  for _, option in ipairs(command.options or {}) do
    if option.default ~= nil and result[key_of(option)] == nil then
      result[key_of(option)] = option.default
    end
  end
  return result
end

local value_names = {number = "X", count = "N", positive = "N", seed = "N", ids = "1,2,3", counts = "1,2"}

--- The help text of a subcommand.
function args.help(name, command)
  local lines = {"usage: weir " .. name .. " " .. command.usage, "", command.help or command.summary .. ".", ""}
  for _, option in ipairs(command.options or {}) do
    local value = option.type == "flag" and "" or " " .. (option.value or value_names[option.type] or option.type:upper())
    if option.type:find "|" then
      value = " " .. option.type
    end
    lines[#lines + 1] = ("  %-28s %s"):format(option.flags:gsub(" ", ", ") .. value, option.text)
  end
  return (table.concat(lines, "\n"):gsub("\n+$", "")) .. "\n"
end

--- Options that load a model, for the subcommands that do.
args.load = {
  {flags = "--device", type = "string", value = "NAME", text = "cpu (default), cuda (the first one), cuda:1, ..."},
  {flags = "--threads", type = "count", text = "workers (default: the processors that weir may use)"},
  {flags = "--context", type = "count", text = "positions of the KV cache (default: the model's, at most 8192)"},
  {flags = "--tile", type = "count", text = "rows that go through a layer together (default: 256)"},
  {flags = "--activations", type = "int8|f32", text = "products in integers (default) or in float; cuda has those in float alone"},
  {flags = "--kv", type = "f16|f32", text = "type of the KV cache (default: f16)"},
  {flags = "--quant", type = "f32|f16|bf16|q4_0|q4_1|q5_0|q5_1|q8_0", text = "quantise float weights to this type while loading"},
}

--- Options that say how tokens are chosen.
args.sampling = {
  {flags = "--temperature", type = "number", min = 0, max = 1e6, text = "0: greedy (default)"},
  {flags = "--top-k", type = "count", text = "sample from the K best tokens"},
  {flags = "--top-p", type = "number", min = 0, max = 1, text = "sample from the best tokens that together have this probability"},
  {flags = "--min-p", type = "number", min = 0, max = 1, text = "leave out tokens below this part of the best one's probability"},
  {flags = "--typical", type = "number", min = 0, max = 1, text = "sample from the tokens nearest to the entropy that together have this probability"},
  {flags = "--repeat-penalty", type = "number", min = 0.01, max = 100, text = "over 1: tokens of the text so far become less likely"},
  {flags = "--frequency-penalty", type = "number", min = -2, max = 2, text = "-2 to 2: per time that a token was generated"},
  {flags = "--presence-penalty", type = "number", min = -2, max = 2, text = "-2 to 2: for tokens that were generated"},
  {flags = "--penalty-last", type = "count", text = "tokens that penalties look back at (default: 0, all)"},
  {flags = "--logit-bias", type = "biases", value = "ID=X[,ID=X...]", text = "add to tokens' logits; -100: never, 100: always"},
  {flags = "--samplers", type = "steps", value = "STEP[,STEP...]", text = "order of the steps (default: repeat_penalty,frequency_penalty,\n"
    .. (" "):rep(31) .. "presence_penalty,logit_bias,temperature,top_k,typical,top_p,min_p)"},
  {flags = "--seed", type = "seed", text = "same seed, same text (default: 0)"},
  {flags = "--logprobs", type = "count", max = 20, text = "tell each token's log-probability, and those of the N best (0 to 20)"},
  {flags = "--stop", type = "text", value = "TEXT", text = "end at this text; may be repeated", many = true},
  {flags = "--greedy", type = "flag", text = "the most likely token always"},
}

--- A list of options made of several.
function args.join(...)
  local all = {}
  for _, list in ipairs {...} do
    for _, option in ipairs(list) do
      all[#all + 1] = option
    end
  end
  return all
end

--- Loads the model that a command line names first; says on standard error what is odd about its files.
function args.load_model(o)
  local model = require "weir".load(o[1], args.load_options(o))
  if model.info.warning then
    io.stderr:write("weir: ", o[1], ": ", model.info.warning, "\n")
  end
  return model
end

--- The options of weir.load that a command line says.
function args.load_options(o)
  return {device = o.device, threads = o.threads, context = o.context, tile = o.tile, activations = o.activations, kv = o.kv, quant = o.quant}
end

--- The options of generate that a command line says.
function args.sampling_options(o)
  if o.greedy and (o.temperature or 0) > 0 then
    args.fail "--greedy and --temperature exclude each other"
  end
  return {
    temperature = o.temperature, top_k = o.top_k, top_p = o.top_p, min_p = o.min_p, typical = o.typical, repeat_penalty = o.repeat_penalty,
    frequency_penalty = o.frequency_penalty, presence_penalty = o.presence_penalty, penalty_last = o.penalty_last, logit_bias = o.logit_bias,
    samplers = o.samplers, logprobs = o.logprobs, seed = o.seed, stop = o.stop,
  }
end

--- Exactly one of --prompt and --tokens.
function args.prompt_options(o, into)
  if (o.prompt == nil) == (o.tokens == nil) then
    args.fail "exactly one of --prompt and --tokens is needed"
  end
  into.prompt, into.tokens = o.prompt, o.tokens
  return into
end

args.prompt = {
  {flags = "--prompt", type = "string", value = "TEXT", text = "text to go on from; beginning and end tokens as the model says"},
  {flags = "--tokens", type = "ids", text = "token ids to go on from, as they are"},
}

return args
