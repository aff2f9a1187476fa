--- Log-probabilities of generated tokens as the commands show them.
-- @module weir.logprobs
local weir = require "weir"

local logprobs = {}

local LEAST = -9999 -- what OpenAI's API says for no probability at all: JSON has no infinity

local function is_text(bytes)
  return (pcall(weir.json.encode, bytes))
end

-- Bytes between quotes, on one line; those of no whole character as \xNN.
local function quoted(bytes)
  if is_text(bytes) then
    return weir.json.encode(bytes)
  end
  return '"' .. bytes:gsub("[^ !#-%[%]-~]", function(c) return ("\\x%02x"):format(c:byte()) end) .. '"'
end

--- A line a token: its text, id and log-probability; below it, indented, the best ones in its place.
-- @tparam table tokens a generation's `logprobs`
-- @treturn string
function logprobs.lines(tokens)
  local lines = {}
  local function add(indent, token)
    lines[#lines + 1] = ("%-26s %7d %9.4f\n"):format(indent .. quoted(token.text or ""), token.id, token.logprob)
  end
  for _, token in ipairs(tokens) do
    add("", token)
    for _, other in ipairs(token.top) do
      add("  ", other)
    end
  end
  return table.concat(lines)
end

local function plain_token(token)
  local plain = {id = token.id, logprob = math.max(token.logprob, LEAST)}
  if token.text and is_text(token.text) then
    plain.text = token.text
  elseif token.text then
    plain.bytes = {token.text:byte(1, -1)}
  end
  return plain
end

--- The same as JSON can say it: a token that is no whole characters has `bytes` instead of `text`, and no log-probability is below -9999.
-- @tparam table tokens a generation's `logprobs`
-- @treturn table
function logprobs.plain(tokens)
  local all = {}
  for i, token in ipairs(tokens) do
    all[i] = plain_token(token)
    all[i].top = {}
    for k, other in ipairs(token.top) do
      all[i].top[k] = plain_token(other)
    end
  end
  return all
end

return logprobs
