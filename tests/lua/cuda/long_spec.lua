-- A long prefill on the cuda device: the loop goes on meanwhile, and whoever ends it (cancel, the death of its actor, Ctrl-C) does so within the units that the host is
-- ahead: counted in launches, which no speed of an emulation changes.
local weir = require "weir"
local helper = require "helper"
local emulated = require "cuda.emulated"

local ROWS, UNITS, AHEAD = 128, 5, 2 -- UNITS: layers of stories260K; AHEAD: WEIR_AHEAD
local LONG = {tokens = emulated.tokens(ROWS), max_tokens = 1, temperature = 0, ignore_end = true}

local function launches()
  return emulated.count "launch" + emulated.count "cublasGemmEx"
end

-- Until nothing that was submitted is under way.
local function settle()
  local busy
  repeat
    weir.sleep(0.002)
    busy = false
    for _, stream in ipairs(weir.streams()) do
      busy = busy or stream.submitted ~= stream.completed
    end
  until not busy
end

for _, tile in ipairs {32, 256} do
  describe(("a long prefill in tiles of %d"):format(tile), function()
    local path, m, whole, graphs, right

    local function short()
      return (m:complete {tokens = {1}, max_tokens = 3, temperature = 0})
    end

    setup(function()
      path, graphs = emulated.stories(), os.getenv "WEIR_CUDA_GRAPHS"
      weir.shutdown()
      emulated.environment("WEIR_CUDA_GRAPHS", "0") -- a launch in the driver is one in the list
      m = weir.load(path, {device = "cuda", tile = tile})
      right = short()
    end)
    teardown(function()
      emulated.environment("WEIR_CUDA_GRAPHS", graphs)
      weir.shutdown()
      os.remove(path)
    end)
    after_each(function()
      local found = emulated.reports()
      assert(found == "", found)
    end)

    it("lets_the_loop_go_on", function()
      local ended, ticks, before = false, 0, launches()
      weir.spawn(function()
        while not ended do
          weir.sleep(0.005)
          ticks = ticks + 1
        end
      end)
      m:complete(LONG)
      ended, whole = true, launches() - before
      assert.is_true(ticks >= 10, ticks .. " ticks")
      assert.is_true(whole > UNITS * math.ceil(ROWS / tile) * 8, whole .. " launches")
    end)

    -- Begins the prefill in an actor, ends it by `fn` at its first launch: at most AHEAD + 1 units are given to the device.
    local function ends_early(fn)
      local before = launches()
      local it
      emulated.set("jitter_us", 2000) -- slower than this thread may be held up
      local actor = weir.spawn(function()
        it = m:generate(LONG)
        pcall(it)
      end)
      while launches() == before or not it do
        weir.sleep(0)
      end
      fn(actor, it)
      settle()
      emulated.set("jitter_us", 0)
      local n = launches() - before
      assert.is_true(n <= whole * (AHEAD + 1.5) / UNITS, ("%d of %d launches"):format(n, whole))
      assert.equal(right, short())
    end

    it("is_ended_by_a_cancel_within_the_units_that_the_host_is_ahead", function()
      ends_early(function(_, it) it:close() end)
    end)

    if tile == 32 then
      return -- the rest is the same in tiles
    end

    it("is_ended_by_the_death_of_its_actor_within_the_units_that_the_host_is_ahead", function()
      ends_early(function(actor) weir.kill(actor) end)
    end)

    it("is_ended_by_ctrl_c", function()
      local log = helper.temporary ".log"
      local command = ("env CUEMU_LOG=%s CUEMU_JITTER_US=2000 setsid env --default-signal=INT %s generate %s --device cuda --tile %d --tokens %s -n 1 </dev/null & "
        .. "pid=$!; until grep -qs weir_embed %s; do kill -0 $pid || break; sleep 0.01; done; kill -INT $pid; wait $pid"):format(
        log, helper.quote(helper.program), path, tile, table.concat(LONG.tokens, ","), log)
      local code, _, err = helper.shell(command)
      local n = 0
      for line in io.lines(log) do
        n = n + (line:match "^launch weir_[^p]" and 1 or line:match "^library" and 1 or 0)
      end
      os.remove(log)
      assert.equal(130, code, err)
      assert.is_true(n > 0 and n < whole, ("%d of %d launches"):format(n, whole))
    end)
  end)
end
