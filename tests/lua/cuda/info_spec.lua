-- What weir says of devices, with and without a driver, a device, code for it: `weir info devices`, the errors of `--device`, and of a kernel that the image lacks;
-- how one is made.
local weir = require "weir"
local helper = require "helper"
local emulated = require "cuda.emulated"

local LLAMA = helper.root .. "/tests/data/families/llama/model.gguf"
local has_code = helper.read(helper.build .. "/kernels.fatbin"):sub(1, 5) ~= "CUEMU"
local WITHOUT = "no kernels: this weir was built without nvcc"

-- Runs weir with settings in the environment ("env -u" first).
local function run(environment, ...)
  local words = {"env", environment, helper.quote(helper.program)}
  for _, word in ipairs {...} do
    words[#words + 1] = helper.quote(word)
  end
  return helper.shell(table.concat(words, " ") .. " </dev/null")
end

local function devices(environment)
  local code, out, err = run(environment, "info", "devices")
  assert(code == 0, err)
  local json_code, json = run(environment, "info", "devices", "--json")
  assert.equal(0, json_code)
  local rows = weir.json.decode(json)
  for i, row in ipairs(rows) do -- the table says the same
    local line = ("%-8s %-4s %s"):format(row.name, row.usable and "yes" or "no", row.detail)
    assert.is_truthy(out:find(line, 1, true), ("row %d: %s\nis not in\n%s"):format(i, line, out))
  end
  assert.equal("cpu", rows[1].name)
  assert.is_true(rows[1].usable)
  return rows[2], #rows
end

local function with_code()
  if not has_code then
    helper.skip_machine "this weir was built without nvcc"
  end
end

describe("devices", function()
  teardown(weir.shutdown)

  it("are_listed_with_their_memory_cublas_and_kernels", function()
    local row, n = devices "A=1"
    assert.equal(2, n)
    assert.equal("cuda:0", row.name)
    assert.is_true(row.usable, row.detail)
    assert.matches("sm_90, 1%.0 GiB, products of many rows: cuBLAS, ", row.detail)
    if has_code then
      assert.matches("%d+%.%d MB of kernels, code for sm_75, sm_80, sm_90, PTX from sm_75 on$", row.detail)
    else
      assert.matches(WITHOUT, row.detail, 1, true)
    end
  end)

  for signal, expected in pairs {INT = 130, TERM = 143} do
    it("of_a_driver_that_does_not_answer_are_not_waited_for_after_SIG" .. signal, function()
      local script = "env --default-signal=INT CUEMU_CALL_US=60000000 %s info devices & pid=$!; "
        .. "while kill -0 $pid && ! grep -q libcuda /proc/$pid/maps; do sleep 0.01; done; kill -%s $pid; wait $pid"
      local started = os.time()
      assert.equal(expected, (helper.shell(script:format(helper.quote(helper.program), signal))))
      assert.is_true(os.time() - started < 60)
    end)
  end

  it("without_a_driver_say_so", function()
    local row, n = devices "-u LD_LIBRARY_PATH"
    assert.equal(2, n)
    assert.equal("cuda", row.name)
    assert.is_false(row.usable)
    assert.matches("^no driver: libcuda%.so%.1: ", row.detail)
    assert.matches(has_code and "MB of kernels, code for sm_75" or WITHOUT, row.detail, 1, true)
    local code, _, err = run("-u LD_LIBRARY_PATH", "generate", LLAMA, "--tokens", "1", "-n", "1", "--device", "cuda")
    assert.equal(1, code)
    assert.matches("device cuda:0: there is no driver: libcuda.so.1", err, 1, true)
  end)

  it("that_a_driver_does_not_have_are_said", function()
    local row = devices "CUEMU_NO_DEVICE=1"
    assert.equal("cuda", row.name)
    assert.is_false(row.usable)
    assert.matches("^no device: CUDA_ERROR_NO_DEVICE; ", row.detail)
    local code, _, err = run("CUEMU_NO_DEVICE=1", "generate", LLAMA, "--tokens", "1", "-n", "1", "--device", "cuda")
    assert.equal(1, code)
    assert.matches("device cuda:0: cuInit: CUDA_ERROR_NO_DEVICE", err, 1, true)
  end)

  for _, cc in ipairs {75, 80, 86, 89, 90} do
    it(("of_sm_%d_are_usable"):format(cc), function()
      local row = devices("CUEMU_CC=" .. cc)
      assert.is_true(row.usable, row.detail)
      assert.matches("sm_" .. cc, row.detail, 1, true)
    end)
  end

  it("of_an_architecture_without_code_are_refused_before_anything_is_loaded", function()
    with_code()
    local why = "the kernels cannot be loaded to an sm_70 (there is code for sm_75, sm_80, sm_90, PTX from sm_75 on): CUDA_ERROR_NO_BINARY_FOR_GPU"
    local row = devices "CUEMU_CC=70"
    assert.is_false(row.usable)
    assert.matches(why, row.detail, 1, true)
    for _, command in ipairs {"generate", "logits", "streams"} do
      local arguments = {command, LLAMA, "--device", "cuda"}
      if command ~= "streams" then
        arguments[5], arguments[6], arguments[7], arguments[8] = "--tokens", "1", unpack(command == "logits" and {"--out", "/dev/null"} or {"-n", "1"})
      end
      local code, out, err = run("CUEMU_CC=70", unpack(arguments))
      assert.equal(1, code, command)
      assert.equal("", out)
      assert.matches(why, err, 1, true)
    end
    weir.shutdown()
    emulated.set("cc", 70)
    local before = emulated.count "alloc"
    local e = helper.raises("EUNSUPPORTED", weir.load, LLAMA, {device = "cuda"})
    emulated.set("cc", 90)
    assert.matches(why, tostring(e), 1, true)
    assert.equal(before, emulated.count "alloc")
    emulated.ends_clean()
  end)

  it("of_another_number_or_name_are_refused", function()
    for name, why in pairs {
      ["cuda:1"] = "device cuda:1: there is none of this number (the driver knows 1)", cud = "device \"cud\": there is none of this name (there are cpu, cuda)",
      ["cuda:"] = "there is none of this name", ["cuda:0x"] = "there is none of this name",
      ["cuda:-1"] = "device \"cuda:-1\": there is none of this name", ["cuda:01"] = "there is none of this name",
      ["cuda: 0"] = "there is none of this name", ["cuda0"] = "there is none of this name",
    } do
      local code, out, err = run("A=1", "generate", LLAMA, "--tokens", "1", "-n", "1", "--device", name)
      assert.equal(1, code, name)
      assert.equal("", out)
      assert.matches(why, err, 1, true)
      weir.shutdown()
      local e = helper.raises("EINVAL", weir.load, LLAMA, {device = name})
      assert.matches(why, tostring(e), 1, true)
    end
  end)
end)

describe("WEIR_CUDA_MEMORY", function()
  local function generated(bytes)
    local code, _, err = run("WEIR_CUDA_MEMORY=" .. bytes, "generate", LLAMA, "--tokens", "1", "-n", "1", "--device", "cuda")
    return code, err
  end

  it("bounds_what_a_model_may_take", function()
    assert.equal(0, (generated "80000000"))
    local code, err = generated "1000"
    assert.equal(1, code)
    assert.matches("ENOMEM: device cuda:0: no memory for ", err, 1, true)
  end)

  it("that_is_no_number_of_bytes_is_refused", function()
    for _, bytes in ipairs {"64M", "1e9", "-1", "all", "99999999999999999999"} do
      local code, err = generated(bytes)
      assert.equal(1, code)
      assert.matches(('WEIR_CUDA_MEMORY is "%s", wanted a number of bytes'):format(bytes), err, 1, true)
    end
  end)
end)

describe("a kernel that the image lacks", function()
  local function lacking(kernel)
    weir.shutdown()
    emulated.driver.cuemu_fail("function:" .. kernel, 1, 500) -- CUDA_ERROR_NOT_FOUND
  end
  after_each(function()
    emulated.driver.cuemu_fail_clear()
    weir.shutdown()
  end)
  teardown(weir.shutdown)

  -- Loaded to a device that is there already and holds another model; what the driver had to do for it until it was refused.
  local function refused(kernel, path)
    lacking(kernel)
    local other, before = weir.load(LLAMA, {device = "cuda"}), {}
    local touched = {"cuMemAlloc", "cuMemHostRegister", "cuMemcpyHtoDAsync", "launch"}
    for i, name in ipairs(touched) do
      before[i] = emulated.count(name)
    end
    local e = helper.raises("EUNSUPPORTED", weir.load, path, {device = "cuda"})
    for i, name in ipairs(touched) do
      assert.equal(before[i], emulated.count(name), name)
    end
    other:close()
    emulated.ends_clean()
    return tostring(e)
  end

  it("is_refused_by_name_before_memory_is_taken_or_weights_are_read", function()
    local path = helper.temporary ".gguf"
    local stories = emulated.stories()
    assert.equal(0, (run("A=1", "convert", stories, path, "--type", "q8_0")))
    for kernel, why in pairs {
      weir_pack_q8_0 = 'tensor "blk.0.attn_q.weight" of type q8_0: device cuda:0: list pack, item 1, kernel pack: ',
      weir_product_q8_0 = 'tensor "blk.0.attn_q.weight" of type q8_0: device cuda:0: list layers.0, item 2, kernel matmul: ',
      weir_dequantise_q8_0_f16 = 'tensor "blk.0.attn_q.weight" of type q8_0: device cuda:0: list layers.0, item 2, kernel matmul: ',
      weir_gated_q8_0 = 'tensor "blk.0.ffn_gate.weight" of type q8_0: device cuda:0: list layers.0, item 10, kernel glu: ',
    } do
      assert.matches(why .. ("kernel %s: not in this image for sm_90"):format(kernel), refused(kernel, path), 1, true)
    end
    os.remove(path)
    os.remove(stories)
  end)

  it("of_every_model_is_refused_by_name_before_memory_is_taken", function()
    for _, kernel in ipairs {"weir_rmsnorm", "weir_rope_store_f16", "weir_draw", "weir_pack_vector"} do
      lacking(kernel)
      local copies, launches = emulated.count "cuMemcpyHtoDAsync", emulated.count "launch"
      local e = helper.raises("EUNSUPPORTED", weir.load, LLAMA, {device = "cuda"})
      assert.matches(("kernel %s: not in this image for sm_90"):format(kernel), tostring(e), 1, true)
      assert.equal(copies, emulated.count "cuMemcpyHtoDAsync")
      assert.equal(launches, emulated.count "launch")
      emulated.ends_clean()
    end
  end)

  it("hinders_no_model_that_does_not_ask_for_it", function()
    local tokens = emulated.tokens(12)
    weir.shutdown()
    local right = emulated.logits(weir.load(LLAMA, {device = "cuda"}), tokens)
    lacking "weir_product_q4_0"
    assert.is_true(right == emulated.logits(weir.load(LLAMA, {device = "cuda"}), tokens))
    emulated.ends_clean()
  end)
end)

describe("memory for units", function()
  teardown(weir.shutdown)

  it("is_taken_and_zeroed_on_residencys_thread_not_on_the_loops", function()
    weir.shutdown()
    local m, kept = weir.load(LLAMA, {device = "cuda"}), {}
    local calls, here = {"cuMemAlloc", "cuMemsetD8Async", "cuMemHostRegister"}, {}
    for _, name in ipairs(calls) do
      here[name] = emulated.count_here(name)
    end
    local before = emulated.count "cuMemAlloc"
    for i = 1, 8 do -- what the load left is used first
      kept[i] = weir.call(m.info.residency, "fetch", 0)
    end
    assert.is_true(emulated.count "cuMemAlloc" - before >= 3)
    for _, name in ipairs(calls) do
      assert.equal(here[name], emulated.count_here(name), name .. " on the loop's thread")
    end
    assert.equal(8, #kept)
    emulated.ends_clean()
  end)
end)

describe("a device", function()
  teardown(weir.shutdown)

  it("is_made_while_the_loop_goes_on", function()
    local LOOKED_UP, ticks, m = "cuModuleGetFunction", 0, nil
    weir.shutdown()
    emulated.set("call_us", 2000) -- some hundred calls
    local before = emulated.count(LOOKED_UP)
    weir.spawn(function()
      m = weir.load(LLAMA, {device = "cuda"})
    end)
    local now, last = before, nil
    while now == before or now ~= last do -- until kernels are not looked up any more
      weir.sleep(0.005)
      last, now = now, emulated.count(LOOKED_UP)
      ticks = ticks + (now ~= last and 1 or 0)
    end
    emulated.set("call_us", 0)
    while not m do
      weir.sleep(0.005)
    end
    m:close()
    assert.is_true(ticks > 3, ticks .. " ticks")
  end)

  it("that_is_being_made_for_a_model_that_ended_is_no_matter_of_anybodys", function()
    local function model()
      for _, actor in ipairs(weir.actors()) do
        if actor.name == "model" then
          return actor.address
        end
      end
    end
    local told
    weir.shutdown()
    emulated.set("hold", 1)
    weir.spawn(function()
      local _, e = pcall(weir.load, LLAMA, {device = "cuda"})
      told = e
    end)
    repeat
      weir.sleep(0.001)
    until model() and weir.stats(model()).handled > 0 -- it was asked to load, and asks for the device
    weir.kill(model())
    emulated.set("hold", 0)
    weir.run() -- the opening too is waited for
    assert.equal("EKILLED", told.code, tostring(told))
    for _, letter in ipairs(weir.dead_letters()) do
      assert.not_equal("device_opened", letter.verb)
    end
    emulated.ends_clean()
  end)
end)
