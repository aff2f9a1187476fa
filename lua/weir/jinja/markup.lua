--- Safe strings, jinja2's Markup: what the filters `safe` and `escape` give. Texts that are joined with one are escaped first; what is joined is safe.
-- @module weir.jinja.markup
local printing = require "weir.jinja.printing"
local run = require "weir.jinja.run"
local text = require "weir.jinja.text"

local markup = {}

local entities = {["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&#34;", ["'"] = "&#39;"}

--- Any value as a safe text: one that is safe as it is, else its str with entities for what HTML reads. An entity has the mark of the byte it stands for.
function markup.escape(v)
  v = printing.soft(v)
  if text.is_safe(v) then
    return v
  end
  run.spend_text(#text.raw(v))
  return text.safe(text.map(v, function(s) return (s:gsub("[&<>\"']", entities)) end))
end

--- Texts one behind the other, as `+` has them: if one is safe, the others are escaped.
-- @tparam table pieces array of texts, which is changed
-- @tparam number n how many
function markup.add(pieces, n)
  local safe = false
  for i = 1, n do
    safe = safe or text.is_safe(pieces[i])
  end
  if not safe then
    return text.concat(pieces, n)
  end
  for i = 1, n do
    pieces[i] = markup.escape(pieces[i])
  end
  return text.safe(text.concat(pieces, n))
end

return markup
