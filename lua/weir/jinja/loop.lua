--- The variable `loop` of a for statement. Elements are read one ahead only if the body asks for what needs it.
-- @module weir.jinja.loop
local objects = require "weir.jinja.objects"
local run = require "weir.jinja.run"
local values = require "weir.jinja.values"

local Loop = values.Loop
Loop.__index = Loop

local loop = {}

--- A loop over the elements that `pull` gives.
-- @tparam function pull gives the next element, nil at the end
-- @tparam number|nil size how many there are, if that is known
-- @tparam number depth of recursive loops, from 0
-- @tparam function|nil recurse fn(iterable, depth): runs the loop's body over another iterable and gives what it printed
function loop.new(pull, size, depth, recurse)
  return setmetatable({pull = pull, size = size, depth0 = depth, recurse = recurse, index = 0, ahead = {}, first_ahead = 1, last_ahead = 0}, Loop)
end

--- Goes on to the next element; nil at the end.
function Loop:step()
  local element
  if self.first_ahead <= self.last_ahead then
    element = self.ahead[self.first_ahead]
    self.ahead[self.first_ahead] = nil
    self.first_ahead = self.first_ahead + 1
  else
    element = self.pull()
  end
  if element == nil then
    return nil
  end
  self.previous, self.current = self.current, element
  self.index = self.index + 1
  return element
end

-- Reads one element more; whether there was one.
function Loop:read_ahead()
  local element = self.pull()
  if element == nil then
    return false
  end
  self.last_ahead = self.last_ahead + 1
  self.ahead[self.last_ahead] = element
  return true
end

function Loop:peek()
  if self.first_ahead > self.last_ahead and not self:read_ahead() then
    return nil
  end
  return self.ahead[self.first_ahead]
end

function Loop:length()
  if not self.size then
    repeat until not self:read_ahead()
    self.size = self.index + self.last_ahead - self.first_ahead + 1
  end
  return self.size
end

function Loop:iterate()
  return function() return self:step() end
end

local fields = {}

function fields.index(self) return self.index end
function fields.index0(self) return self.index - 1 end
function fields.first(self) return self.index == 1 end
function fields.last(self) return self:peek() == nil end
function fields.length(self) return self:length() end
function fields.revindex(self) return self:length() - self.index + 1 end
function fields.revindex0(self) return self:length() - self.index end
function fields.depth(self) return self.depth0 + 1 end
function fields.depth0(self) return self.depth0 end

function fields.previtem(self)
  return self.previous == nil and values.undefined "there is no previous item" or self.previous
end

function fields.nextitem(self)
  local element = self:peek()
  return element == nil and values.undefined "there is no next item" or element
end

function fields.cycle(self)
  return values.func("cycle", function(args)
    if args.n == 0 then
      run.fail "no items for cycling given"
    end
    return args[(self.index - 1) % args.n + 1]
  end)
end

function fields.changed(self)
  return values.func("changed", function(args)
    local now = values.tuple({unpack(args, 1, args.n)}, args.n)
    if self.compared and objects.equal(self.compared, now) then
      return false
    end
    self.compared = now
    return true
  end)
end

--- What templates read of a loop; nil if it is nothing.
function Loop:field(name)
  local read = fields[name]
  return read and read(self)
end

--- loop(iterable) in a recursive loop.
function Loop:call(args)
  if not self.recurse then
    run.fail "The loop must have the 'recursive' marker to be called recursively."
  elseif args.n ~= 1 then
    run.fail "loop() takes one iterable"
  end
  return self.recurse(args[1], self.depth0 + 1)
end

return loop
