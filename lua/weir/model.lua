--- Models: loading, generating, chatting, passes. Everything is messages to the model's actors (actors/verbs.def); this file only words them.
-- @module weir.model
local ffi = require "ffi"
local chat = require "weir.chat"
local core = require "weir.core"
local weir = require "weir"
local errors = require "weir.errors"
local loops = require "weir.loops"
local tensor = require "weir.tensor"

local Model, Generation = {}, {}
Model.__index, Generation.__index = Model, Generation

-- ---- token ids on the wire: bin of int32, little endian ----

local function to_ids(bytes)
  local size = type(bytes) == "string" and #bytes or bytes:size()
  local data = ffi.cast("const int32_t *", type(bytes) == "string" and bytes or bytes:pointer())
  local ids = {}
  for i = 1, math.floor(size / 4) do
    ids[i] = data[i - 1]
  end
  return ids
end

local function from_ids(ids)
  if type(ids) ~= "table" then
    error(errors.new("ETYPE", "token ids are an array of integers, got a " .. type(ids)), 3)
  end
  local data = ffi.new("int32_t[?]", math.max(#ids, 1))
  for i, id in ipairs(ids) do
    if type(id) ~= "number" or id % 1 ~= 0 or id < 0 or id >= 2 ^ 31 then
      error(errors.new("ETOKEN", ("token %d is %s; wanted an id, an integer from 0 on"):format(i, tostring(id))), 3)
    end
    data[i - 1] = id
  end
  return weir.bin(ffi.string(data, 4 * #ids))
end

-- ---- options ----

-- Refuses what is not in `known`, so that a misspelt option is not lost.
local function check_options(what, options, known)
  if type(options) ~= "table" then
    error(errors.new("ETYPE", what .. " takes a table of options, got a " .. type(options)), 3)
  end
  for name in pairs(options) do
    if not known[name] then
      error(errors.new("EINVAL", what .. " has no option '" .. tostring(name) .. "'"), 3)
    end
  end
end

local function set(...)
  local names = {}
  for _, name in ipairs {...} do
    names[name] = true
  end
  return names
end

local load_options = set("device", "threads", "context", "tile", "activations", "kv", "quant", "progress")
local generate_options = set(
  "prompt", "tokens", "max_tokens", "seed", "stop", "ignore_end", "credit", "temperature", "top_k", "top_p", "min_p", "typical", "repeat_penalty",
  "frequency_penalty", "presence_penalty", "penalty_last", "logit_bias", "samplers", "logprobs")
local chat_options = set("template", "tools", "variables", "stream")
for name in pairs(generate_options) do
  chat_options[name] = name ~= "prompt" and name ~= "tokens" or nil
end
local forward_options = set("tokens", "prompt", "hidden", "logits")
local tokenize_options = set("special", "bounds")

-- {[id] = addend} as pairs, in ascending order of ids. Ids may be strings of digits, as JSON has them.
local function from_biases(biases)
  if type(biases) ~= "table" then
    error(errors.new("EINVAL", "option \"logit_bias\" is a " .. type(biases) .. ", wanted a table {[id] = addend}"), 3)
  end
  local pairs_ = {}
  for key, addend in pairs(biases) do
    local id = tonumber(key)
    if not id or id % 1 ~= 0 or type(addend) ~= "number" then
      error(errors.new("EINVAL", ("option \"logit_bias\" has [%s] = %s, wanted [id] = addend"):format(tostring(key), tostring(addend))), 3)
    end
    pairs_[#pairs_ + 1] = {id, addend}
  end
  table.sort(pairs_, function(a, b) return a[1] < b[1] end)
  return pairs_
end

-- ---- loading ----

-- An actor that runs fn(done, total) for each report of progress.
local function progress_actor(fn)
  return weir.spawn_with({name = "progress"}, function()
    while true do
      local m = weir.receive()
      if m.verb == "progress" then
        fn(m:args())
      end
    end
  end)
end

-- Runs fn when the proxy is collected. fn must not hold what holds the proxy.
local function finalizer(fn)
  local proxy = newproxy(true)
  getmetatable(proxy).__gc = fn
  return proxy
end

--- Loads a model. Waits until it is ready.
-- @tparam string what a GGUF file, or a name kept by `weir fetch`
-- @tparam[opt] table options device ("cpu", "cuda", "cuda:1"), threads, context (positions), tile (rows), activations ("int8" or "f32"), kv ("f16" or "f32"),
-- quant (type to which float weights are quantised while they are loaded: "q8_0"), progress (function(done, total))
-- @treturn table the model: methods below, `info` (what its file says)
function Model.load(what, options)
  options = options or {}
  check_options("weir.load", options, load_options)
  local address, progress = loops.model(), nil
  local ok, info = pcall(function()
    progress = options.progress and progress_actor(options.progress)
    return weir.call_with({to = address, timeout = false}, "load", what, {
      device = options.device, threads = options.threads, context = options.context, tile = options.tile, activations = options.activations, kv = options.kv,
      quant = options.quant, progress = progress,
    })
  end)
  if progress then
    weir.stop(progress)
  end
  if not ok then
    weir.kill(address)
    error(info, 0)
  end
  for key, value in pairs(info) do
    info[key] = value ~= weir.null and value or nil
  end
  local number = core.made()
  local self = {info = info, address = address, generator = info.generator, stepper = info.stepper}
  self.guard = finalizer(function()
    if core.made() == number then
      core.stop(address)
    end
  end)
  return setmetatable(self, Model)
end

--- Stops the model's actors. Generations under way end with an error. May be repeated.
function Model:close()
  if not self.closed then
    self.closed = true
    weir.stop(self.address)
  end
end

local function check_open(self)
  if self.closed then
    error(errors.new("ESTATE", "the model is closed"), 3)
  end
end

-- The address of the model's generator or stepper. One that died was started anew: the model's actor knows where it is, and answers when it is there.
local function member(self, name)
  if not pcall(core.actor_stats, self[name]) then
    local info = weir.call_with({to = self.address, timeout = false}, "info")
    for _, key in ipairs {"generator", "stepper", "policy", "experts", "residency"} do
      self.info[key] = info[key]
    end
    self.generator, self.stepper = info.generator, info.stepper
  end
  return self[name]
end

-- ---- generating ----

--- Starts a generation.
-- @tparam table options prompt (text, or parts {text, special}) or tokens (array of ids); max_tokens, seed, stop (array of strings), ignore_end; how tokens are
-- chosen (lua/README.md, "Sampling"): temperature (0: greedy), top_k, top_p, min_p, typical, repeat_penalty, frequency_penalty, presence_penalty, penalty_last
-- (tokens that penalties look back at), logit_bias ({[id] = addend}), samplers (array of the steps' names in their order); logprobs (0 to 20: log-probabilities, and
-- those of that many best tokens)
-- @return an iterator over pieces of text: `for piece in model:generate{...} do`. It has close(), tokens (ids so far), logprobs (if wanted, one a token: {id, text,
-- logprob, top = {{id, text, logprob}, ...}}) and, after the end, finish: reason ("stop", "length", "context"), stop, prompt_tokens, tokens, logprobs, prefill
-- and decode (seconds), tokens_per_second. Left alone it stalls a few pieces ahead; collection or the end of its actor cancels it.
function Model:generate(options)
  check_open(self)
  check_options("generate", options, generate_options)
  local request = {}
  for name, value in pairs(options) do
    request[name] = value
  end
  if request.tokens then
    request.tokens = from_ids(request.tokens)
  end
  if type(request.stop) == "string" then
    request.stop = {request.stop}
  end
  request.logit_bias = request.logit_bias and from_biases(request.logit_bias)
  local generator = member(self, "generator")
  local id = weir.call_with({to = generator, timeout = false}, "generate", request)
  local number = core.made()
  local it = setmetatable({model = self, generator = generator, id = id, tokens = {}, logprobs = request.logprobs and {} or nil}, Generation)
  local state = {open = true}
  it.state = state
  it.guard = finalizer(function()
    if state.open and core.made() == number then
      core.send(true, generator, "cancel", id)
    end
  end)
  return it
end

local function finish_of(reply, count)
  local null = weir.null
  local decode = reply.decode_s ~= null and reply.decode_s or 0
  local stop = reply.stop
  return {
    reason = reply.reason, stop = stop ~= null and stop or nil, prompt_tokens = reply.prompt_tokens, tokens = reply.generated or count,
    prefill = reply.prefill_s, decode = decode,
    tokens_per_second = decode and decode > 0 and (reply.generated - 1) / decode or nil,
  }
end

local function token_of(fields)
  return {id = fields[1], text = fields[2] ~= weir.null and fields[2] or nil, logprob = fields[3]}
end

local function add_logprobs(all, given)
  for _, fields in ipairs(given) do
    local token = token_of(fields)
    token.top = {}
    for i, other in ipairs(fields[4]) do
      token.top[i] = token_of(other)
    end
    all[#all + 1] = token
  end
end

--- The next piece of text; nil at the end, when `finish` is there.
function Generation:__call()
  while self.state.open do
    local reply, e = weir.try_call_with({to = self.generator, timeout = false}, "next", self.id)
    if not reply then
      self.state.open = false
      if e.code == "ENOACTOR" then
        e = errors.new("EEXITED", "the generator ended, and the generation with it", {actor = "generator", cause = e})
      end
      error(e, 0)
    end
    for _, id in ipairs(to_ids(reply.tokens)) do
      self.tokens[#self.tokens + 1] = id
    end
    if self.logprobs then
      add_logprobs(self.logprobs, reply.logprobs)
    end
    if reply.done then
      self.state.open = false
      self.finish = finish_of(reply, #self.tokens)
      self.finish.logprobs = self.logprobs
    end
    if reply.text ~= "" then
      return reply.text
    end
  end
  return nil
end

--- Cancels what is left. May be repeated.
function Generation:close()
  if self.state.open then
    self.state.open = false
    weir.try_send(self.generator, "cancel", self.id)
  end
end

-- The whole text; each piece is shown to `stream`.
local function collect(it, stream)
  local pieces = {}
  for piece in it do
    pieces[#pieces + 1] = piece
    if stream then
      stream(piece)
    end
  end
  return table.concat(pieces), it.finish
end

--- Generates to the end. Options as generate.
-- @treturn string the text
-- @treturn table finish
-- @tparam table options
function Model:complete(options)
  return collect(self:generate(options))
end

--- Answers a chat.
-- @tparam table messages array of {role = "system"|"user"|"assistant", content = text}, with whatever else the template uses (tool_calls, ...)
-- @tparam[opt] table options as generate; stream = function(piece); template: nil for the model's own, the name of one (of the model's file, or chatml, llama2, llama3,
-- mistral, gemma), a template's text, or function(messages) returning parts {text, special}; tools; variables for the template (enable_thinking = false, ...)
-- @treturn string the answer
-- @treturn table finish
function Model:chat(messages, options)
  options = options or {}
  check_options("chat", options, chat_options)
  local request = {}
  for name, value in pairs(options) do
    request[name] = value
  end
  request.template, request.tools, request.variables, request.stream = nil, nil, nil, nil
  request.tokens = chat.tokens(self, messages, options)
  return collect(self:generate(request), options.stream)
end

-- ---- passes ----

-- How an error of one run in a pass's reply is told.
local function run_error(run)
  for name, code in pairs(weir.codes) do
    if code.number == run[2] then
      return errors.new(name, run[3])
    end
  end
  return errors.new("EINVAL", tostring(run[3]))
end

local function tensors_of(info, reply, hidden)
  local result = {rows = reply.rows, outputs = reply.outputs}
  result.logits = tensor.new(reply.logits, "F32", {reply.outputs, info.vocab})
  if hidden then
    local all = tensor.new(reply.hidden, "F32", {info.layers + 1, reply.rows, info.width})
    result.hidden = {}
    for k = 0, info.layers do
      result.hidden[k] = all:row(k)
    end
  end
  return result
end

-- What the stepper answers. One that ended before it took the question up is asked no more: its successor is; with the device it ends with the loss.
local function ask_stepper(self, ask)
  while true do
    local reply, e = ask(member(self, "stepper"))
    if reply or not (e.code == "ENOACTOR" or e.code == "EEXITED") then
      return reply, e
    end
    local cause = e
    while cause and cause.code ~= "EDEVICE" do
      cause = cause.cause
    end
    if cause or e.code == "EEXITED" then
      return nil, cause or e
    end
  end
end

--- One pass over tokens from an empty state.
-- @tparam table options tokens (array of ids) or prompt (text); logits ("all", "last"); hidden (true: also what every layer gives)
-- @treturn table tokens; logits: tensor [outputs][vocab]; hidden[0..layers]: tensors [rows][width] (0: embeddings, k: after layer k, the last one after
-- the final norm)
function Model:forward(options)
  check_open(self)
  check_options("forward", options, forward_options)
  local tokens = options.tokens or self:tokenize(options.prompt or "", {bounds = true})
  local bytes = from_ids(tokens)
  local reply, e = ask_stepper(self, function(stepper)
    local sequence, refused = weir.try_call(stepper, "open")
    if not sequence then
      return nil, refused
    end
    local reply, failed = weir.try_call_with({to = stepper, timeout = false}, "pass", {
      runs = {{sequence, 0, bytes, {logits = options.logits or "all"}}}, hidden = options.hidden or false, return_logits = true,
    })
    weir.try_send(stepper, "close", sequence)
    return reply, failed
  end)
  if not reply then
    error(e, 0)
  elseif reply.errors and reply.errors[1] then
    error(run_error(reply.errors[1]), 0)
  end
  local result = tensors_of(self.info, reply, options.hidden)
  result.tokens = tokens
  return result
end

-- ---- text ----

--- Token ids of a text (or of parts {text, special}).
-- @param text
-- @tparam[opt] table options special (recognise control tokens in a text), bounds (add beginning and end as the model's file says)
-- @treturn table array of ids
function Model:tokenize(text, options)
  check_open(self)
  options = options or {}
  check_options("tokenize", options, tokenize_options)
  local generator = member(self, "generator")
  return to_ids(weir.call_with({to = generator, timeout = false}, "tokenize", text, {special = options.special or false, bounds = options.bounds or false}))
end

--- The text of token ids.
-- @tparam table ids
-- @tparam[opt] table options special (control tokens as text too)
-- @treturn string
function Model:detokenize(ids, options)
  check_open(self)
  return weir.call(member(self, "generator"), "detokenize", from_ids(ids), {special = options and options.special or false})
end

return Model
