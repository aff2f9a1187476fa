--- Shell commands that the program runs.
-- @module weir.shell
local shell = {}

--- A text as one word of a command line.
function shell.quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

return shell
