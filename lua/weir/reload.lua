--- New code for a module that runs: see weir.reload.
-- @module weir.reload
local errors = require "weir.errors"

local reload = {}

local patch

local function upvalues(fn)
  local all = {}
  for i = 1, 255 do
    local name, value = debug.getupvalue(fn, i)
    if not name then
      return all
    end
    all[name] = {index = i, value = value}
  end
  return all
end

-- Tables that new functions close over are the old ones, with new functions in them; functions they close over are followed.
local function join(old, new, seen)
  if seen[new] or debug.getinfo(new, "S").what == "C" or debug.getinfo(old, "S").what == "C" then
    return
  end
  seen[new] = true
  local before = upvalues(old)
  for name, now in pairs(upvalues(new)) do
    local was = before[name]
    if was and type(was.value) == "table" and type(now.value) == "table" then
      patch(was.value, now.value, seen)
      debug.upvaluejoin(new, now.index, old, was.index)
    elseif was and type(was.value) == "function" and type(now.value) == "function" then
      join(was.value, now.value, seen)
    end
  end
end

-- Functions of `new` come into `old`; what old holds otherwise stays, what it lacks comes too.
function patch(old, new, seen)
  if seen[new] or old == new then
    return
  end
  seen[new] = true
  for key, now in next, new do
    local was = rawget(old, key)
    if type(now) == "function" then
      if type(was) == "function" then
        join(was, now, seen)
      end
      rawset(old, key, now)
    elseif type(now) == "table" and type(was) == "table" then
      if was ~= old or now ~= new then
        patch(was, now, seen)
      end
    elseif was == nil then
      rawset(old, key, now)
    end
  end
  for key, was in next, old do
    if type(was) == "function" and rawget(new, key) == nil then
      rawset(old, key, nil)
    end
  end
  local old_meta, new_meta = debug.getmetatable(old), debug.getmetatable(new)
  if type(old_meta) == "table" and type(new_meta) == "table" then
    patch(old_meta, new_meta, seen)
  end
end

-- With migrate the module decides: everything of the new one comes, after it had both.
local function migrate(old, new)
  local before = {}
  for key, value in next, old do
    before[key] = value
  end
  new.migrate(before, new)
  for key in next, before do
    rawset(old, key, nil)
  end
  for key, value in next, new do
    rawset(old, key, value)
  end
end

-- The module's value from its file as it is now; package.loaded is as before.
local function load_anew(name)
  local old = package.loaded[name]
  package.loaded[name] = nil
  local ok, new = pcall(require, name)
  package.loaded[name] = old
  if not ok then
    error(new, 0)
  end
  return new
end

--- Loads a module's file again and brings the new code into the module's table, in place, so that all who hold the table use it.
-- If the new module has a function `migrate(old, new)`, it is called with the old fields and the new table before new's fields replace old's: it carries over what
-- it wants. Without it functions are new (with the tables that old ones closed over), tables are kept and patched in the same way, other fields keep their
-- values. Numbers and strings that functions close over are those of the new code. Actors that run an old function finish it.
-- @tparam string name as for require
-- @return the module: the same table as before, if it is one
function reload.reload(name)
  local old = package.loaded[name]
  if type(name) ~= "string" or old == nil then
    error(errors.new("ENOENT", ("weir.reload('%s'): no such module is loaded"):format(tostring(name))), 2)
  end
  local new = load_anew(name)
  if type(old) ~= "table" or type(new) ~= "table" then
    package.loaded[name] = new
    return new
  end
  if type(rawget(new, "migrate")) == "function" then
    migrate(old, new)
  else
    patch(old, new, {})
  end
  return old
end

return reload
