-- emulated.lua: what the specs of the cuda device share: the emulated driver's control functions (tests/cuemu/cuemu_ctl.h), its log and reports as Lua tables, models.
local ffi = require "ffi"
local weir = require "weir"
local helper = require "helper"

ffi.cdef [[
int cuemu_set(const char *key, long value);
void cuemu_fail(const char *what, int nth, int code);
void cuemu_fail_clear(void);
long cuemu_count(const char *what);
long cuemu_count_here(const char *what);
void cuemu_log_clear(void);
int cuemu_log_size(void);
const char *cuemu_log_line(int i);
int cuemu_report_count(void);
const char *cuemu_report(int i);
void cuemu_reports_clear(void);
int cuemu_check_leaks(void);
int setenv(const char *name, const char *value, int overwrite);
int unsetenv(const char *name);
]]

local emulated = {driver = ffi.load "libcuda.so.1"}
local driver = emulated.driver

--- Calls of a function or a group so far.
function emulated.count(what)
  return tonumber(driver.cuemu_count(what))
end

--- Those of them that were made on this thread, the loop's.
function emulated.count_here(what)
  return tonumber(driver.cuemu_count_here(what))
end

function emulated.set(key, value)
  assert(driver.cuemu_set(key, value) ~= 0, key)
end

--- For devices that are made from now on; nil: not in the environment.
function emulated.environment(name, value)
  if value then
    ffi.C.setenv(name, value, 1)
  else
    ffi.C.unsetenv(name)
  end
end

--- Faults of the program since the last time, one a line.
function emulated.reports()
  local lines = {}
  for i = 0, driver.cuemu_report_count() - 1 do
    lines[#lines + 1] = ffi.string(driver.cuemu_report(i))
  end
  driver.cuemu_reports_clear()
  return table.concat(lines, "\n")
end

function emulated.log()
  local lines = {}
  for i = 0, driver.cuemu_log_size() - 1 do
    lines[#lines + 1] = ffi.string(driver.cuemu_log_line(i))
  end
  return lines
end

--- Ends weir; nothing of the driver's may be left, and nothing may have been reported.
function emulated.ends_clean()
  weir.shutdown()
  collectgarbage()
  driver.cuemu_check_leaks()
  local found = emulated.reports()
  assert(found == "", found)
end

--- The small trained model as a file, which the caller removes.
function emulated.stories()
  local path = helper.temporary ".gguf"
  require "weir.core".llama2c_convert(helper.reference "models/stories260K/stories260K.bin", nil, path)
  return path
end

--- So many token ids that are no text.
function emulated.tokens(n, vocab)
  local ids = {}
  for i = 1, n do
    ids[i] = i * 7919 % (vocab or 512)
  end
  return ids
end

--- All logits of a pass, as bytes.
function emulated.logits(m, tokens)
  local t = m:forward {tokens = tokens}.logits
  return ffi.string(t.data, t.bytes)
end

return emulated
