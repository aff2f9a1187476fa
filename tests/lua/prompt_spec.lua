-- The prompt: what is finished and what is not, values as text, completion, documentation, reload; and the whole through a terminal (prompt.py).
local chunk = require "weir.prompt.chunk"
local completion = require "weir.prompt.completion"
local documentation = require "weir.documentation"
local lexer = require "weir.lexer"
local pretty = require "weir.pretty"
local session = require "weir.prompt.session"
local weir = require "weir"
local helper = require "helper"

local function how(source)
  return (select(2, chunk.compile(source)))
end

describe("chunk", function()
  it("prompt_R1_a_wrong_line_is_wrong_at_once", function()
    for _, source in ipairs {'"hello', "'hello", 'x = "a\\n', "hello)", "x = = 1", "1 + * 2", "break", "goto nowhere", "end", "x = '<eof>' )", "x = 1e", "\1"} do
      assert.are.equal("wrong", how(source), source)
    end
  end)

  it("prompt_R3_every_unfinished_form_is_continued", function()
    for _, source in ipairs {
      "for i = 1, 3 do", "for i", "while true do", "repeat", "repeat x() until", "if x", "if x then", "if x then else", "function f(", "function f()",
      "local function f()", "local", "local x =", "x =", "x, y =", "x = 1 +", "1 +", "not", "#", "-", "a ..", "f(", "f(1,", "f(1, function()", "{", "{1,", "{a =",
      "a[", "a.", "a:", "a:b", "[[", "[==[ ]] ]=]", "--[[ x", "--[==[ x ]]", "x = 'a\\", "x = 'a\\\nb\\", "x = 'a\\z  ", "return 1 +", "= 1 +", "= f(", "= [[",
      "  = {", "= --[[", "x = '<eof>' ..", "do local x = [[ ]] f(", "=\n(",
    } do
      assert.are.equal("incomplete", how(source), source)
    end
  end)

  it("prompt_R3_the_word_eof_in_the_source_changes_nothing", function()
    assert.are.equal("expression", how "'<eof>'")
    assert.are.equal("wrong", how "x = '<eof>' '<eof>' )")
    assert.are.equal("incomplete", how "f('<eof>',")
    assert.are.equal("wrong", how "<eof>")
  end)

  it("prompt_R9_a_wrong_line_says_what_is_wrong", function()
    assert.are.equal("prompt:1: '=' expected near ')'", (select(3, chunk.compile "hello)")))
    assert.are.equal("prompt:1: unexpected symbol near '*'", (select(3, chunk.compile "1 + * 2")))
    assert.are.equal("prompt:2: unexpected symbol near ')'", (select(3, chunk.compile "x = 1 +\n)")))
  end)

  it("finished_lines_are_expressions_or_statements", function()
    for _, source in ipairs {"1", "= 1", "f()", "a.b", "'x'", "-- x", "function() end", "{}", "a, b", "=", "#t", "1 -- one", "[[\n]]", "a == b"} do
      assert.are.equal("expression", how(source), source)
    end
    for _, source in ipairs {"x = 1", "local x", "return 1", "do end", "f() g()", "for i = 1, 2 do end", "x = y --[[ ]]", "function f() end"} do
      assert.are.equal("statement", how(source), source)
    end
  end)

  it("top_level_locals_become_variables", function()
    for source, wanted in pairs {
      ["local x = 1"] = " __variables.x = 1", ["local x, y"] = " __variables.x, __variables.y = nil", ["do local x = 1 end"] = "do local x = 1 end",
      ["local function f() local y end local z"] = " function __variables.f() local y end  __variables.z = nil",
      ["local a = function() local b end"] = " __variables.a = function() local b end",
      ["for i = 1, 2 do local x end local y = 2"] = "for i = 1, 2 do local x end  __variables.y = 2",
      ["if a then local x elseif b then local y else local z end"] = "if a then local x elseif b then local y else local z end",
      ["x = 'local y' --[[ local z ]]"] = "x = 'local y' --[[ local z ]]", ["repeat local x until x local y"] = "repeat local x until x  __variables.y = nil",
    } do
      assert.are.equal(wanted, chunk.rewrite(source))
    end
  end)

  it("words_of_any_text_cover_it_and_end", function()
    math.randomseed(7)
    local parts = {"'", '"', "\\", "\n", "[[", "]]", "[=[", "--", "x", "1", " ", ".", "end", "é", "\255", "\0", "{", "\\z"}
    for _ = 1, 3000 do
      local text = {}
      for i = 1, math.random(0, 12) do
        text[i] = parts[math.random(#parts)]
      end
      text = table.concat(text)
      local last = 0
      for _, word in ipairs((lexer.scan(text))) do
        assert.is_true(word.first > last and word.last >= word.first and word.last <= #text, ("%q"):format(text))
        assert.are.equal(text:sub(word.first, word.last), word.text)
        last = word.last
      end
      chunk.compile(text)
    end
  end)
end)

describe("session", function()
  local s

  before_each(function()
    s = session.new()
  end)

  local function eval(source)
    local shown, complaint = s:evaluate(source)
    return complaint or shown
  end

  it("keeps_locals_from_line_to_line", function()
    assert.is_nil(eval "local x, y = 1, 2")
    assert.are.equal("3", eval "x + y")
    eval "local function f(n) return n <= 1 and 1 or n * f(n - 1) end"
    assert.are.equal("120", eval "f(5)")
    eval "x = 10"
    assert.are.equal("10", eval "x")
    assert.is_nil(rawget(_G, "x"))
    eval "local print = print"
    assert.are.equal("true", eval "print == _G.print")
    eval "local print"
    assert.are.equal("nil", eval "print")
    eval "function_of_the_spec = 1"
    assert.are.equal(1, rawget(_G, "function_of_the_spec"))
    rawset(_G, "function_of_the_spec", nil)
  end)

  it("keeps_the_last_value", function()
    eval "6 * 7"
    assert.are.equal("43", eval "_ + 1")
    eval "nil"
    assert.are.equal("43", eval "_")
    eval "x_of_the_session = 1"
    assert.are.equal("43", eval "= _")
    rawset(_G, "x_of_the_session", nil)
  end)

  it("shows_all_values_and_nil_where_it_is_asked_for", function()
    assert.are.equal('1\nnil\n"x"\nnil', eval "1, nil, 'x', nil")
    assert.are.equal("nil", eval "undefined_name")
    assert.is_nil(eval "(function() end)()")
    assert.is_nil(eval "-- nothing")
    assert.are.equal("5", eval "return 5")
  end)

  it("tells_errors_with_code_causes_and_a_traceback_of_what_was_entered", function()
    eval "local function inner()\nerror 'broken'\nend"
    assert.are.equal("error: prompt:2: broken\nstack traceback:\n\t[C]: in function 'error'\n\tprompt:2: in function 'inner'\n\tprompt:1: in main chunk",
      eval "inner(), 1")
    assert.is_truthy(eval("nothing.there"):find("^error: prompt:1:"))
    assert.is_truthy(eval("nothing.there -- a comment"):find("^error: prompt:%d:"))
    local text = eval "error(weir.error('EFULL', 'no room', {cause = weir.error('ENOMEM', 'none'), actor = 'a'}))"
    assert.is_truthy(text:find("^error: EFULL: no room %(in a%)\nstack traceback:.*\ncaused by ENOMEM: none"), text)
    assert.are.equal("error: error value of type table", eval("error({})"):match "^[^\n]*")
    assert.are.equal("error: line 1: '=' expected near ')'", eval "hello)")
  end)

  it("waits_in_calls_as_a_main_chunk_does", function()
    eval "a = weir.spawn(function() while true do local m = weir.receive() m:reply(m[1] * 2) end end)"
    assert.are.equal("42", eval "weir.call(a, 'double', 21)")
    eval "weir.send(weir.self(), 'note', 1)"
    assert.are.equal('"note"', eval "weir.receive(0).verb")
    rawset(_G, "a", nil)
  end)
end)

describe("pretty", function()
  local show = pretty.show

  it("quotes_strings", function()
    for value, wanted in pairs {
      ["a"] = '"a"', ['a"b\\'] = '"a\\"b\\\\"', ["\n\t\0\27"] = '"\\n\\t\\0\\27"', ["é漢"] = '"é漢"', ["\255a"] = '"\\255a"', ["\194\155"] = '"\\194\\155"',
    } do
      assert.are.equal(wanted, show(value))
    end
    assert.are.equal('"aaaa"... (1,000 bytes)', show(("a"):rep(1000), {bytes = 4}))
    assert.are.equal('"éé"... (2,000 bytes)', show(("é"):rep(1000), {bytes = 5}))
  end)

  it("shows_numbers_and_small_values", function()
    for _, case in ipairs {{1, "1"}, {0.1, "0.1"}, {1e300, "1e+300"}, {0 / 0, "nan"}, {1 / 0, "inf"}, {-1 / 0, "-inf"}, {2 ^ 52, "4503599627370496"}, {true, "true"}} do
      assert.are.equal(case[2], show(case[1]))
    end
    assert.are.equal("null", show(weir.null))
    assert.are.equal("12LL", show(12LL))
    assert.is_truthy(show(show):find "^function: pretty.lua:%d+$")
    assert.is_truthy(show(print):find "^function")
    assert.is_truthy(show(require "ffi".new("int[3]")):find "^cdata<int %[3%]>")
  end)

  it("shows_tables_nested_sorted_and_cut", function()
    assert.are.equal("{}", show {})
    assert.are.equal('{1, 2, {3}, a = {b = "c"}, ["end"] = 4}', show {1, 2, {3}, a = {b = "c"}, ["end"] = 4})
    assert.are.equal("{[0] = 1, [1.5] = 2, [true] = 3}", show {[0] = 1, [1.5] = 2, [true] = 3})
    assert.are.equal("{{{{{... 1}}}}}", show {{{{{1}}}}})
    assert.are.equal("{{{{{}}}}}", show {{{{{}}}}})
    assert.are.equal("{{... 2}}", show({{1, 2}}, {depth = 1}))
    local t = {1}
    t.self = t
    assert.are.equal("{1, self = <cycle>}", show(t))
    local many = {}
    for i = 1, 1000 do
      many[i] = i
    end
    assert.is_truthy(show(many, {items = 5}):find("{1, 2, 3, 4, 5, ... 995 more}", 1, true))
    local wide = show({("x"):rep(60), ("y"):rep(60)}, {width = 80})
    assert.are.equal(3, select(2, wide:gsub("\n", "")))
    for line in show(many):gmatch "[^\n]+" do
      assert.is_true(#line <= 100)
    end
  end)

  it("bounds_what_is_shown_of_large_values", function()
    local deep = {}
    for i = 1, 60 do
      deep[i] = {}
      for j = 1, 60 do
        deep[i][j] = {("x"):rep(100), ("y"):rep(100)}
      end
    end
    local text = show(deep)
    assert.is_true(#text < 60000)
    assert.is_truthy(text:find("{... 60}", 1, true))
  end)

  it("shows_what_has_a_tostring_by_it_also_when_that_fails", function()
    assert.are.equal("me", show(setmetatable({}, {__tostring = function() return "me" end})))
    assert.is_truthy(show(setmetatable({}, {__tostring = function() error "x" end})):find "fails")
    assert.are.equal("{1}", show(setmetatable({1}, {__index = function() error "x" end})))
  end)

  it("prompt_actors_A37_addresses_say_who_lives", function()
    local a = weir.spawn_with({name = "worker"}, function() weir.receive() end)
    assert.is_truthy(show(a):find "^actor %d+ %(worker%)$")
    weir.kill(a)
    assert.is_truthy(show(a):find "^actor %d+ %(dead%)$")
    assert.is_truthy(show({a}):find "^{actor %d+ %(dead%)}$")
  end)

  it("shows_errors_with_their_causes", function()
    local e = weir.error("EFULL", "no room", {cause = weir.error("ENOMEM", "none")})
    assert.are.equal("EFULL: no room\ncaused by ENOMEM: none", show(e))
  end)

  it("shows_tensors_with_shape_and_statistics", function()
    local ffi = require "ffi"
    local data = ffi.new("float[8]", {1, 2, 3, 4, 0 / 0, 1 / 0, 3, 4})
    assert.are.equal("tensor F32 [2, 4] min 1 max 4 mean 2.833 std 1.067 1 nan 1 inf {1, 2, 3, 4, ... 4 more}", show(weir.tensor(data, "F32", {2, 4})))
    assert.are.equal("tensor I32 [2] min -1 max 1 mean 0 std 1 {-1, 1}", show(weir.tensor(ffi.new("int32_t[2]", {-1, 1}), "I32", {2})))
    assert.are.equal("tensor U8 [0]", show(weir.tensor(ffi.new "uint8_t[1]", "U8", {0})))
    assert.are.equal("tensor F64 [1] 1 nan {nan}", show(weir.tensor(ffi.new("double[1]", 0 / 0), "F64", {1})))
  end)

  it("shows_buffers", function()
    local b = weir.unpack(weir.pack(weir.bin(("\1\255"):rep(3000))))
    assert.are.equal("buffer of 6,000 bytes {01 ff 01 ff 01 ff 01 ff 01 ff 01 ff 01 ff 01 ff ...}", show(b))
  end)
end)

describe("completion", function()
  local s

  before_each(function()
    s = session.new()
  end)

  local function find(text)
    local first, found = completion.find(s, text)
    return first and text:sub(first), found
  end

  local function finds(text, name)
    for _, candidate in ipairs(select(2, find(text)) or {}) do
      if candidate == name then
        return true
      end
    end
    return false
  end

  it("knows_globals_keywords_and_the_sessions_locals", function()
    s:evaluate "local answer = 42"
    assert.are.same({"answer"}, (select(2, find "x = ans")))
    assert.is_true(finds("pri", "print"))
    assert.is_true(finds("whi", "while"))
    assert.is_true(finds("f(1, str", "string"))
    assert.is_true(finds("?pri", "print"))
    assert.is_true(finds("=pri", "print"))
  end)

  it("knows_fields_and_methods", function()
    s:evaluate "local t = {one = {two = {three = 1}}, f = function() end, [1] = {inside = 1}}"
    assert.are.same({"three"}, (select(2, find "t.one.two.")))
    assert.are.same({"f", "one"}, (select(2, find "t.")))
    assert.are.same({"f"}, (select(2, find "t:")))
    assert.are.same({"inside"}, (select(2, find "t[1].in")))
    assert.are.same({"two"}, (select(2, find "t['one'].")))
    assert.is_true(finds("weir.spa", "spawn"))
    assert.is_true(finds("weir.lo", "load"))
    assert.is_true(finds("('x'):up", "upper") == false and finds("s = 'x':up", "upper"))
    s:evaluate "local a = weir.self()"
    assert.is_true(finds("a:", "id"))
    assert.is_false(finds("a:", "__tostring"))
  end)

  it("runs_nobodys_code", function()
    s:evaluate "local t = setmetatable({}, {__index = function() called = true end})"
    assert.are.same({}, (select(2, find "t.x.y")))
    assert.are.same({}, (select(2, find "t.")))
    assert.is_nil(rawget(_G, "called"))
  end)

  it("knows_modules_in_require", function()
    assert.are.same({"weir.safetensors"}, (select(2, find 'require "weir.saf')))
    assert.are.same({"weir.safetensors"}, (select(2, find "local x = require('weir.saf")))
    assert.is_true(finds('require "wei', "weir"))
    assert.is_true(finds('require "weir.prompt', "weir.prompt"))
    assert.is_true(finds('require "weir.prompt.', "weir.prompt.session"))
    assert.are.equal("saf", (find 'require "saf'))
  end)

  it("has_nothing_to_say_in_strings_comments_and_numbers", function()
    for _, text in ipairs {"'pri", "-- pri", "[[pri", "1", "x = ", "f(", "nothing.here.", ")", "print()."} do
      local _, found = completion.find(s, text)
      assert.is_true(found == nil or #found == 0, text)
    end
  end)

  it("lists_in_columns", function()
    assert.are.equal("a    ccc\nbb   d", completion.list({"a", "bb", "ccc", "d"}, 10))
    assert.are.equal("a\nb", completion.list({"a", "b"}, 1))
  end)
end)

describe("documentation", function()
  it("tells_of_functions_by_name_and_by_value", function()
    for _, name in ipairs {"weir.spawn", "spawn"} do
      local text, known = documentation.of(name)
      assert.is_true(known)
      assert.is_truthy(text:find("weir.spawn(what, ...)\nStarts an actor", 1, true), text)
    end
    assert.are.equal((documentation.of "weir.sleep"), (documentation.of("anything", weir.sleep)))
    assert.is_truthy((documentation.of "m:generate"):find("Starts a generation", 1, true))
    assert.is_truthy((documentation.of "weir.error"):find("code (string)", 1, true))
    assert.is_truthy((documentation.of "weir.guard"):find("Guard mode", 1, true))
  end)

  it("tells_of_modules_and_codes", function()
    local text = documentation.of "weir"
    assert.is_truthy(text:find("actors and language models", 1, true) and text:find("weir.receive(timeout)", 1, true))
    assert.is_truthy((documentation.of "weir.tensor"):find("typed view", 1, true))
    assert.are.equal("EFULL (error 3): mailbox full. HTTP status 503; worth a retry", (documentation.of "EFULL"))
  end)

  it("tells_of_functions_of_ones_own", function()
    local path = helper.temporary ".lua"
    helper.write(path, "-- Doubles.\n-- @param x a number\nlocal function double(x)\n  return 2 * x\nend\n\nreturn double\n")
    assert.are.equal("local function double(x)\nDoubles.\n  x  a number", (documentation.of("double", dofile(path))))
    os.remove(path)
  end)

  it("suggests_near_names", function()
    for name, wanted in pairs {["weir.spwan"] = "weir.spawn", ["recieve"] = "weir.receive", EFUL = "EFULL", ["weir.modle"] = "weir.model"} do
      local text, known = documentation.of(name)
      assert.is_false(known)
      assert.is_truthy(text:find(wanted, 1, true), text)
    end
    assert.are.equal("nothing is written about qqqqqqqq", (documentation.of "qqqqqqqq"))
  end)
end)

describe("reload", function()
  local folder, path

  setup(function()
    folder = helper.temporary ".modules"
    helper.shell("mkdir -p " .. folder)
    path = package.path
    package.path = folder .. "/?.lua;" .. path
  end)
  teardown(function()
    package.path = path
    helper.shell("rm -rf " .. folder)
  end)
  after_each(function()
    package.loaded.reloaded = nil
  end)

  local function write(text)
    helper.write(folder .. "/reloaded.lua", text)
  end

  it("prompt_R11_holders_of_the_table_see_new_code", function()
    write "local M = {} function M.f() return 'old' end function M.gone() end return M"
    local held = require "reloaded"
    write "local M = {} function M.f() return 'new' end function M.more() return M.f() end return M"
    assert.are.equal(held, weir.reload "reloaded")
    assert.are.equal(held, require "reloaded")
    assert.are.same({"new", "new"}, {held.f(), held.more()})
    assert.is_nil(held.gone)
  end)

  it("prompt_R11_tables_that_functions_share_keep_what_is_in_them", function()
    local source = [[
      local M, state, meta = {kept = 1}, {count = 0}, {}
      meta.__index = meta
      function meta:name() return "%s" end
      local function bump() state.count = state.count + %d end
      function M.add() bump() return state.count end
      function M.get() return state.count end
      function M.new() return setmetatable({}, meta) end
      return M]]
    write(source:format("old", 1))
    local m = require "reloaded"
    m.add()
    m.kept = 2
    local object = m.new()
    write(source:format("new", 10))
    weir.reload "reloaded"
    assert.are.same({11, 11, 2, "new", "new"}, {m.add(), m.get(), m.kept, object:name(), m.new():name()})
  end)

  it("prompt_R11_migrate_carries_over_what_it_wants", function()
    write "local n = 0 local M = {data = 1} function M.add() n = n + 1 return n end function M.count() return n end return M"
    local m = require "reloaded"
    m.add()
    m.add()
    write [[
      local n = 0
      local M = {data = 7}
      function M.add() n = n + 10 return n end
      function M.migrate(old, new) n = old.count() new.was = old.data end
      return M]]
    weir.reload "reloaded"
    assert.are.same({12, 7, 1}, {m.add(), m.data, m.was})
    assert.is_nil(m.count)
  end)

  it("prompt_R11_a_broken_file_changes_nothing", function()
    write "return {f = function() return 1 end}"
    local m = require "reloaded"
    write "syntax error"
    assert.is_false((pcall(weir.reload, "reloaded")))
    write "error 'at load'"
    assert.is_false((pcall(weir.reload, "reloaded")))
    assert.are.equal(m, require "reloaded")
    assert.are.equal(1, m.f())
    helper.raises("ENOENT", weir.reload, "never.loaded")
  end)
end)

describe("prompt", function()
  local state, model

  setup(function()
    state = helper.temporary ".state"
    local ok, checkpoint = pcall(helper.reference, "models/stories260K/stories260K.bin")
    if ok then
      model = helper.temporary ".gguf"
      helper.weir {"convert", checkpoint, model}
    end
  end)
  teardown(function()
    helper.shell("rm -rf " .. state)
    os.remove(model or "")
  end)

  local function terminal(case, argument)
    if os.getenv "WEIR_SPEC_MODE" ~= "" then
      return -- the program that it starts knows no modes
    end
    local code, out, err = helper.shell(("env -u LD_PRELOAD XDG_STATE_HOME=%s python3 %s/tests/lua/prompt.py %s %s %s")
      :format(state, helper.quote(helper.root), helper.quote(helper.program), case, argument or ""))
    assert.are.equal("", out .. err)
    assert.are.equal(0, code)
  end

  for name, case in pairs {
    prompt_R1_a_syntax_error_is_forgotten = "r1", prompt_R3_unfinished_lines_are_continued = "r3", prompt_R9_syntax_errors_are_shown = "r9",
    prompt_R13_ctrl_c_at_the_prompt_gives_a_new_prompt = "r13", loop_E23_ctrl_c_stops_the_evaluation_only = "e23",
    actors_A37_dead_addresses_are_said_to_be_dead = "dead_addresses", actors_go_on_while_one_types_and_print_above = "actors_go_on",
    tab_completes_and_lists = "completion", functions_of_several_lines_errors_with_traceback_history = "functions_and_errors",
    question_marks_show_documentation = "documentation", ctrl_d_ends_and_runs_what_is_to_run = "end", os_exit_ends_with_its_code = "exits",
    sigterm_leaves_the_terminal_as_it_was = "terminate", ctrl_z_suspends_and_comes_back = "suspend", a_resized_window_is_drawn_anew = "resize",
    an_idle_prompt_sleeps = "idle", a_dumb_terminal_has_no_editor = "dumb",
  } do
    it(name, function()
      terminal(case)
    end)
  end

  it("ctrl_c_stops_a_generation_and_the_next_one_works", function()
    helper.reference "models/stories260K/stories260K.bin"
    terminal("generation", model)
  end)

  it("reads_statements_from_a_pipe", function()
    local code, out, err = helper.weir({}, "local x = 20\nfor i = 1, 2 do\n  x = x + i\nend\nx\n'a' .. io.read()\nthe next line\nweir.sleep(0.01)\n= x + 1")
    assert.are.equal("", err)
    assert.are.equal(0, code)
    assert.are.equal('23\n"athe next line"\n24\n', out)
    assert.are.equal(0, (helper.weir({}, "")))
  end)

  it("fails_with_1_when_a_line_of_a_pipe_fails_and_goes_on", function()
    local code, out, err = helper.weir({}, "hello)\nerror 'x'\n1 + 1\nfor i = 1, 2 do")
    assert.are.equal(1, code)
    assert.are.equal("2\n", out)
    assert.is_truthy(err:find("error: line 1: '=' expected near ')'", 1, true) and err:find("prompt:1: x", 1, true) and err:find("unfinished", 1, true))
  end)
end)
