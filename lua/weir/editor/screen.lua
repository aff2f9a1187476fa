--- How the edited text lies on a terminal: rows of a given width, where the cursor is, and the bytes that draw it over what was drawn before. Knows no keys.
-- @module weir.editor.screen
local width = require "weir.editor.width"

local screen = {}
screen.__index = screen

--- Lays text out.
-- @tparam table view prompt, continuation, characters (array), cursor (characters before it)
-- @tparam number columns
-- @treturn table rows (strings), row and column of the cursor, counted from 0
function screen.layout(view, columns)
  local rows, parts, column = {}, {}, 0
  local at_row, at_column = 0, 0
  local function new_row()
    rows[#rows + 1] = table.concat(parts)
    parts, column = {}, 0
  end
  local function put(character)
    local n = math.min(width.of(character), columns)
    if column + n > columns then
      new_row()
    end
    parts[#parts + 1] = width.shown(character)
    column = column + n
  end
  local function put_text(text)
    for _, character in ipairs(width.characters(text)) do
      put(character)
    end
  end
  local function mark()
    if column >= columns then
      new_row()
    end
    at_row, at_column = #rows, column
  end
  put_text(view.prompt)
  for i, character in ipairs(view.characters) do
    if i == view.cursor + 1 then
      mark()
    end
    if character == "\n" then
      new_row()
      put_text(view.continuation)
    else
      put(character)
    end
  end
  if view.cursor >= #view.characters then
    mark()
  end
  new_row()
  return {rows = rows, row = at_row, column = at_column}
end

--- Makes the state of what is drawn: nothing yet.
function screen.new()
  return setmetatable({}, screen)
end

-- To the first column of the first row drawn.
function screen:home(columns)
  if not self.view then
    return "\r"
  end
  -- After a change of the width the terminal has broken the rows anew.
  local row = columns == self.columns and self.row or math.max(0, screen.layout(self.view, columns).row - self.top)
  return row > 0 and ("\r\27[%dA"):format(row) or "\r"
end

--- Bytes that take what is drawn away; the cursor is where it began.
function screen:hide(columns)
  local text = self.view and self:home(columns) .. "\27[J" or ""
  self.view = nil
  return text
end

-- First row to show, if not all fit: the cursor's is among them.
local function window(layout, height)
  local top = math.max(0, math.min(layout.row - height + 1, #layout.rows - height))
  if layout.row < top then
    top = layout.row
  end
  return top, math.min(#layout.rows - top, height)
end

--- Bytes that draw the view in the place of what was drawn before.
function screen:draw(view, columns, height)
  local layout = screen.layout(view, columns)
  local top, count = window(layout, height)
  local text = self:home(columns) .. "\27[J" .. table.concat(layout.rows, "\r\n", top + 1, top + count)
  local up = count - 1 - (layout.row - top)
  if up > 0 or view.cursor < #view.characters then
    text = text .. (up > 0 and ("\27[%dA"):format(up) or "") .. "\r" .. (layout.column > 0 and ("\27[%dC"):format(layout.column) or "")
  end
  self.view, self.columns, self.row, self.top = view, columns, layout.row - top, top
  return text
end

--- Bytes that draw the view a last time, leave it there and go to the line below.
function screen:leave(view, columns, height)
  view.cursor = #view.characters
  local text = self:draw(view, columns, height)
  self.view = nil
  return text .. "\r\n"
end

return screen
