--- A line of progress on standard error, while it is a terminal.
-- @module weir.progress
local core = require "weir.core"

local progress = {}

local function line(what, done, total)
  local share = total > 0 and math.floor(100 * done / total) or 100
  return ("\r%s: %3d %% of %.1f MB"):format(what, share, total / 1e6)
end

--- A function(done, total), in bytes, that keeps the line up to date, and a function that ends it.
-- @tparam string what is done
-- @treturn function
-- @treturn function
function progress.line(what)
  if not core.is_terminal(2) then
    return function() end, function() end
  end
  local shown
  local function tell(done, total)
    local text = line(what, done, total)
    if text ~= shown then
      io.stderr:write(text)
      shown = text
    end
  end
  return tell, function()
    if shown then
      io.stderr:write("\r", (" "):rep(#shown), "\r")
    end
  end
end

return progress
