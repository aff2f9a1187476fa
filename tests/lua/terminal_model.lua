-- terminal_model.lua: what a terminal shows after some bytes: rows of characters, the cursor. As much of a VT100 as the prompt uses; anything else is an error.
local width = require "weir.editor.width"

local model = {}
model.__index = model

function model.new(columns, rows)
  local self = setmetatable({columns = columns, height = rows or 24, rows = {}, row = 1, column = 1, gone = {}}, model)
  for i = 1, self.height do
    self.rows[i] = {}
  end
  return self
end

local function line_feed(self)
  if self.row < self.height then
    self.row = self.row + 1
    return
  end
  self.gone[#self.gone + 1] = table.remove(self.rows, 1)
  self.rows[self.height] = {}
end

local function put(self, character)
  local n = width.of(character)
  if n == 0 then
    local row = self.rows[self.row]
    local at = self.column - 1
    while at > 0 and row[at] == "" do
      at = at - 1
    end
    row[at] = (row[at] or "") .. character
    return
  end
  if self.column + n - 1 > self.columns then -- the wrap that was pending
    self.column = 1
    line_feed(self)
  end
  local row = self.rows[self.row]
  for i = 1, self.column - 1 do
    row[i] = row[i] or " "
  end
  row[self.column] = character
  if n == 2 then
    row[self.column + 1] = ""
  end
  self.column = self.column + n
end

local function clear_down(self)
  for i = math.min(self.column, self.columns), self.columns do
    self.rows[self.row][i] = nil
  end
  for i = self.row + 1, self.height do
    self.rows[i] = {}
  end
end

local controls = {
  A = function(self, n) self.row = math.max(1, self.row - n) end,
  C = function(self, n) self.column = math.min(self.columns, self.column + n) end,
  G = function(self, n) self.column = n end,
  H = function(self) self.row, self.column = 1, 1 end,
  J = function(self, _, given)
    if given == "2" then
      for i = 1, self.height do
        self.rows[i] = {}
      end
    else
      clear_down(self)
    end
  end,
}

function model:feed(bytes)
  local at = 1
  while at <= #bytes do
    local parameters, final, after = bytes:match("^\27%[([%d?]*)([A-Za-z])()", at)
    local c = bytes:sub(at, at)
    if final == "h" or final == "l" then
      at = after
    elseif final then
      assert(controls[final], "the model knows no CSI " .. parameters .. final)(self, tonumber(parameters) or 1, parameters)
      at = after
    elseif c == "\r" then
      self.column, at = 1, at + 1
    elseif c == "\n" then
      line_feed(self)
      at = at + 1
    else
      local n = width.sequence(bytes, at)
      assert(n and n > 0 and c:byte() >= 32, ("byte %d in %q"):format(c:byte(), bytes))
      put(self, bytes:sub(at, at + n - 1))
      at = at + n
    end
  end
  return self
end

-- All rows down to the last one that is not empty, one a line.
function model:text()
  local lines = {}
  for _, rows in ipairs {self.gone, self.rows} do
    for _, row in ipairs(rows) do
      local last = 0
      for i in pairs(row) do
        last = math.max(last, i)
      end
      local parts = {}
      for i = 1, last do
        parts[i] = row[i] or " "
      end
      lines[#lines + 1] = table.concat(parts):gsub(" +$", "")
    end
  end
  while lines[#lines] == "" do
    lines[#lines] = nil
  end
  return table.concat(lines, "\n")
end

return model
