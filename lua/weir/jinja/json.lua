--- The filter tojson: what Python's json.dumps writes (with ensure_ascii=False unless asked), as transformers sets the filter up.
-- @module weir.jinja.json
local objects = require "weir.jinja.objects"
local characters = require "weir.jinja.characters"
local printing = require "weir.jinja.printing"
local run = require "weir.jinja.run"
local text = require "weir.jinja.text"
local values = require "weir.jinja.values"

local json = {}

local null = values.null
local MOST_INDENT = 100

local escapes = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\b"] = "\\b", ["\f"] = "\\f"}

local function escape_wide(c)
  local code = characters.code(c)
  if code >= 0x10000 then
    code = code - 0x10000
    return ("\\u%04x\\u%04x"):format(0xD800 + math.floor(code / 1024), 0xDC00 + code % 1024)
  end
  return ("\\u%04x"):format(code)
end

local function quoted(s, options)
  run.spend_text(#s)
  s = s:gsub('[%z\1-\31"\\]', function(c) return escapes[c] or ("\\u%04x"):format(c:byte()) end)
  if options.ensure_ascii then
    s = s:gsub("\127", "\\u007f"):gsub("[\192-\255][\128-\191]*", escape_wide)
  end
  return '"' .. s .. '"'
end

local function number(v)
  local n, is_float = values.number(v)
  if is_float and n ~= n then
    return "NaN"
  elseif is_float and (n == math.huge or n == -math.huge) then
    return n > 0 and "Infinity" or "-Infinity"
  end
  return printing.number(v)
end

-- A dict's key as a JSON key; nil: none.
local function key_text(key)
  local raw = text.raw(key)
  if raw then
    return raw
  elseif key == null then
    return "null"
  elseif type(key) == "boolean" then
    return key and "true" or "false"
  end
  return values.number(key) and number(key)
end

local write

-- Writes n elements between brackets; each(i) writes one.
local function write_container(out, options, depth, open, close, n, each)
  if n == 0 then
    out[#out + 1] = open .. close
    return
  end
  local newline = options.indent and "\n" .. options.indent:rep(depth + 1) or ""
  run.spend_text(#newline)
  out[#out + 1] = open .. newline
  for i = 1, n do
    if i > 1 then
      run.spend_text(#newline)
      out[#out + 1] = options.comma .. newline
    end
    each(i)
  end
  out[#out + 1] = (options.indent and "\n" .. options.indent:rep(depth) or "") .. close
end

local function sorted_keys(dict)
  local keyed = {}
  for i, key in ipairs(dict.keys) do
    keyed[i] = {key}
  end
  local keys = {}
  for i, row in ipairs(objects.sort(keyed, #keyed)) do
    keys[i] = i <= #keyed and row[1] or nil
  end
  return keys
end

local function write_dict(out, v, options, depth)
  local keys = options.sort_keys and sorted_keys(v) or v.keys
  write_container(out, options, depth, "{", "}", #keys, function(i)
    local key = key_text(keys[i])
    if not key then
      run.fail("keys must be str, int, float, bool or None, not %s", values.type(keys[i]))
    end
    out[#out + 1] = quoted(key, options) .. options.colon
    write(out, values.get(v, keys[i]), options, depth + 1)
  end)
end

function write(out, v, options, depth)
  run.spend(4)
  local raw, c = text.raw(v), values.class(v)
  if raw then
    out[#out + 1] = quoted(raw, options)
  elseif v == null then
    out[#out + 1] = "null"
  elseif type(v) == "boolean" then
    out[#out + 1] = v and "true" or "false"
  elseif values.number(v) then
    out[#out + 1] = number(v)
  elseif c == values.List or c == values.Tuple then
    write_container(out, options, depth, "[", "]", v.n, function(i) write(out, v[i], options, depth + 1) end)
  elseif c == values.Dict then
    write_dict(out, v, options, depth)
  else
    run.fail("Object of type %s is not JSON serializable", values.type(v))
  end
end

local function given(v)
  return v ~= nil and v ~= null
end

local function indentation(indent)
  if not given(indent) or text.is(indent) then
    return given(indent) and text.raw(indent) or nil
  end
  local n = values.integer(indent)
  if not n or n > MOST_INDENT then
    run.fail("tojson: the indent is %s, wanted an integer up to %d", text.raw(printing.repr(indent)), MOST_INDENT)
  end
  return (" "):rep(n)
end

local function flag(v)
  return v ~= nil and objects.truth(v)
end

--- tojson(v, ensure_ascii, indent, separators, sort_keys). The result is data.
function json.filter(v, ensure_ascii, indent, separators, sort_keys)
  local options = {ensure_ascii = flag(ensure_ascii), indent = indentation(indent), sort_keys = flag(sort_keys)}
  options.comma, options.colon = options.indent and "," or ", ", ": "
  if given(separators) then
    local two, n = objects.collect(separators)
    if n ~= 2 or not text.is(two[1]) or not text.is(two[2]) then
      run.fail "tojson: separators are two strings"
    end
    options.comma, options.colon = text.raw(two[1]), text.raw(two[2])
  end
  local out = {}
  write(out, v, options, 0)
  return text.concat(out)
end

return json
