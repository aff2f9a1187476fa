--- weir generate: text from a prompt.
local args = require "weir.args"
local core = require "weir.core"
local logprobs = require "weir.logprobs"
local weir = require "weir"

local generate = {
  summary = "generate text from a prompt",
  usage = "MODEL (--prompt TEXT | --tokens 1,2,3) [-n N] [option...]",
  positional = {"MODEL"},
  options = args.join(args.prompt, {
    {flags = "-n", type = "positive", text = "tokens at most (default: 256)", default = 256},
    {flags = "--print", type = "text|tokens|json", text = "what to print (default: text)", default = "text"},
    {flags = "--ignore-end", type = "flag", text = "go on after the model's end token"},
    {flags = "--stats", type = "flag", text = "speeds on standard error, also if that is no terminal"},
  }, args.sampling, args.load),
}

--- A line about how fast it went.
function generate.stats(finish)
  local prefill = finish.prefill and finish.prefill > 0 and finish.prompt_tokens / finish.prefill or 0
  return ("%d prompt tokens at %.1f/s, %d tokens at %.1f/s, end: %s"):format(
    finish.prompt_tokens, prefill, finish.tokens, finish.tokens_per_second or 0, finish.reason)
end

local function microseconds(seconds)
  return seconds and math.floor(seconds * 1e6 + 0.5) / 1e6
end

local function print_json(o, text, it)
  local finish = it.finish
  io.stdout:write(weir.json.encode {
    prompt = o.prompt, text = text, tokens = it.tokens, logprobs = it.logprobs and logprobs.plain(it.logprobs), reason = finish.reason, stop = finish.stop,
    prompt_tokens = finish.prompt_tokens,
    prefill = microseconds(finish.prefill), decode = microseconds(finish.decode),
  }, "\n")
end

function generate.run(o)
  local request = args.prompt_options(o, args.sampling_options(o))
  request.max_tokens, request.ignore_end = o.n, o.ignore_end
  local model = args.load_model(o)
  local it = model:generate(request)
  local pieces = {}
  for piece in it do
    pieces[#pieces + 1] = piece
    if o.print == "text" then
      io.stdout:write(piece)
      io.stdout:flush()
    end
  end
  if o.print == "text" then
    io.stdout:write "\n"
  elseif o.print == "tokens" then
    io.stdout:write(table.concat(it.tokens, ","), "\n")
  else
    print_json(o, table.concat(pieces), it)
  end
  if o.logprobs and o.print ~= "json" then
    io.stdout:write(logprobs.lines(it.logprobs))
  end
  io.stdout:flush()
  if o.stats or core.is_terminal(2) then
    io.stderr:write(generate.stats(it.finish), "\n")
  end
  return 0
end

return generate
