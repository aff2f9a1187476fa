-- Every function of the driver and of cuBLAS that weir calls is made to fail, in the emulated driver: the request ends with an error that names the device, or is not
-- touched by it; everything is returned; the next request is right.
local weir = require "weir"
local helper = require "helper"

local emulated = require "cuda.emulated"

local UNKNOWN = 999 -- CUDA_ERROR_UNKNOWN, also a failure of cuBLAS: no code that says that the context is lost
local path, right, calls
local prompt = {} -- of more rows than read packed weights, so that cuBLAS is called
for i = 1, 20 do
  prompt[i] = i * 11
end

local function text()
  local m = weir.load(path, {device = "cuda"})
  local ok, result = pcall(m.complete, m, {tokens = prompt, max_tokens = 3, temperature = 0})
  m:close()
  if not ok then
    error(result, 0)
  end
  return result
end

-- What a request calls, of all that the binding has; the first test sees that there is nothing else.
local called = {
  "cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease",
  "cuCtxSetCurrent", "cuCtxGetCurrent", "cuMemGetInfo", "cuMemAlloc", "cuMemFree", "cuMemHostRegister", "cuMemHostUnregister", "cuMemcpyHtoDAsync",
  "cuMemcpyDtoHAsync", "cuMemsetD8Async", "cuStreamCreate", "cuStreamDestroy", "cuStreamSynchronize", "cuStreamWaitEvent", "cuEventCreate",
  "cuEventDestroy", "cuEventRecord", "cuLaunchHostFunc", "cuModuleLoadData", "cuModuleUnload", "cuModuleGetFunction", "cuLaunchKernel",
  "cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiate", "cuGraphLaunch", "cuGraphExecDestroy", "cuGraphDestroy",
  "cublasCreate", "cublasDestroy", "cublasSetStream", "cublasSetWorkspace", "cublasGemmEx",
}

-- Names of the functions of the binding, as its header lists them.
local function functions()
  local names = {}
  for name in helper.read(helper.root .. "/core/dev/cuda/abi.h"):gmatch "F%(%w+, (cu%w+)" do
    names[#names + 1] = (name:gsub("WithFlags$", ""))
  end
  assert(#names > 40)
  return names
end

-- How often a clean run calls each of them.
local function count_calls(names)
  local before, counts = {}, {}
  weir.shutdown()
  for _, name in ipairs(names) do
    before[name] = emulated.count(name)
  end
  right = text()
  weir.shutdown()
  for _, name in ipairs(names) do
    counts[name] = emulated.count(name) - before[name]
  end
  return counts
end

local function fails_and_recovers(name, nth, last)
  weir.shutdown()
  emulated.driver.cuemu_fail(name, nth, UNKNOWN)
  local ok, e = pcall(text)
  emulated.driver.cuemu_fail_clear()
  if ok then
    assert.equal(right, e)
  else
    assert.is_true(weir.is_error(e), name .. ": " .. tostring(e))
    assert.matches("device", tostring(e), 1, true)
  end
  if last then
    assert.equal(right, text(), ("after call %d of %s failed"):format(nth, name))
  end
  weir.shutdown()
  assert.equal("", emulated.reports())
  return not ok
end

describe("cuda faults", function()
  setup(function()
    path = helper.reference "models/families/llama/model.gguf"
    calls = count_calls(functions())
  end)
  teardown(weir.shutdown)

  it("are_of_these_functions", function()
    local known, missing = {}, {}
    for _, name in ipairs(called) do
      known[name] = true
      missing[#missing + 1] = calls[name] == 0 and name or nil
    end
    for name, n in pairs(calls) do
      missing[#missing + 1] = n > 0 and not known[name] and name ~= "cuStreamQuery" and name or nil -- asked when work takes long
    end
    assert.same({}, missing)
  end)

  for _, name in ipairs(called) do
    it(("of_%s_are_told_and_the_next_request_is_right"):format(name), function()
      local n = calls[name]
      local numbers = n > 2 and {1, n, math.ceil(n / 2)} or {1, n}
      for i, nth in ipairs(numbers) do
        fails_and_recovers(name, nth, i == #numbers)
      end
    end)
  end
end)
