-- The line editor: keys in, text and screen out; the history's file.
local editor = require "weir.editor"
local history = require "weir.editor.history"
local keys = require "weir.editor.keys"
local screen = require "weir.editor.screen"
local width = require "weir.editor.width"
local helper = require "helper"
local model = require "terminal_model"

local UP, DOWN, RIGHT, LEFT = "\27[A", "\27[B", "\27[C", "\27[D"

-- Types bytes; returns the last thing that the editor had to say.
local function type_in(e, bytes)
  local what, value
  for _, key in ipairs(keys.new():feed(bytes)) do
    local w, v = e:key(key)
    what, value = w or what, v or value
  end
  return what, value
end

local function edited(bytes, options)
  local e = editor.new(options)
  e:begin("> ", ". ")
  type_in(e, bytes)
  return e
end

-- The text with | at the cursor.
local function shown(e)
  return table.concat(e.characters, "", 1, e.cursor) .. "|" .. table.concat(e.characters, "", e.cursor + 1)
end

-- Feeds bytes key by key to an editor that is drawn on a terminal model after each.
local function on_screen(bytes, columns, rows, options)
  local e, s, m = editor.new(options), screen.new(), model.new(columns, rows)
  e:begin("> ", ". ")
  m:feed(s:draw(e:view(), columns, rows or 24))
  for _, key in ipairs(keys.new():feed(bytes)) do
    e:key(key)
    m:feed(s:draw(e:view(), columns, rows or 24))
  end
  return m, e, s
end

describe("editor", function()
  it("moves_and_changes_as_its_keys_say", function()
    for _, case in ipairs {
      {"abc", "abc|"}, {"abc" .. LEFT .. "x", "abx|c"}, {"abc\1x", "x|abc"}, {"abc\1\5x", "abcx|"}, {"abc\27[Hx\27[Fy", "xabcy|"},
      {"ab\127c", "ac|"}, {"abc\1\27[3~", "|bc"}, {"abc\1\4", "|bc"}, {"abc def\23", "abc |"}, {"abc def\21x", "x|"},
      {"abc def\27b\11", "abc |"}, {"abc def\27b\27bx", "x|abc def"}, {"abc def\1\27fx", "abcx| def"}, {"abc def\1\27d", "| def"},
      {"abc def\23\25\25", "abc defdef|"}, {"abc def\1\11\25", "abc def|"}, {"foo.bar\27\127", "foo.|"}, {"a b\27[1;5Dx", "a x|b"},
      {"a b\1\27[1;5Cx", "ax| b"}, {"a\2b", "b|a"}, {"ab\1\6c", "ac|b"}, {"a\27\rb", "a\nb|"}, {"\27[99~\27[Z\27Pa", "a|"},
    } do
      local e = edited(case[1])
      assert.are.equal(case[2], shown(e), ("%q"):format(case[1]))
    end
  end)

  it("counts_characters_not_bytes_and_keeps_marks_with_their_letters", function()
    assert.are.equal("éb|", shown(edited("éa\127b")))
    assert.are.equal("漢x|字", shown(edited("漢字" .. LEFT .. "x")))
    assert.are.equal("|e\204\129a", shown(edited("e\204\129a" .. LEFT .. LEFT)))
    assert.are.equal("a|", shown(edited("ae\204\129\127")))
    assert.are.equal("\239\191\189a|", shown(edited("\255a")))
  end)

  it("takes_sequences_that_come_in_pieces", function()
    local k = keys.new()
    local all = {}
    for byte in ("\27[1;5D漢\27[200~a\r\nb\27[201~\27"):gmatch "." do
      for _, key in ipairs(k:feed(byte)) do
        all[#all + 1] = key.key or key.text
      end
    end
    assert.are.same({"ctrl-left", "漢", "a\nb"}, all)
    assert.are.same({{key = "alt-b"}}, k:feed "b")
  end)

  it("pastes_lines_without_entering_them", function()
    local e = editor.new {continues = function() return false end}
    e:begin("> ", ". ")
    assert.is_nil((type_in(e, "\27[200~for i = 1, 2 do\r  print(i)\rend\r\27[201~")))
    assert.are.equal("for i = 1, 2 do\n  print(i)\nend", e:text())
    assert.are.equal("submit", (type_in(e, "\r")))
  end)

  it("enters_what_is_finished_and_goes_on_with_what_is_not", function()
    local e = editor.new {continues = function(text) return not text:find "end$" end}
    e:begin("> ", ". ")
    assert.is_nil((type_in(e, "do\r")))
    assert.are.equal("do\n|", shown(e))
    local what, text = type_in(e, "end\r")
    assert.are.same({"submit", "do\nend"}, {what, text})
  end)

  it("ctrl_d_ends_an_empty_text_only", function()
    assert.are.equal("end", (type_in(editor.new(), "\4")))
    assert.is_nil((type_in(edited "a", "\4")))
  end)

  it("ctrl_c_empties_the_text_and_ends_a_search", function()
    local e = edited("abc\nd", {history = {entries = {"old"}, find = history.find}})
    e:interrupt()
    assert.are.equal("|", shown(e))
    type_in(e, "new\18ol")
    assert.is_truthy(e:view().prompt:find("search 'ol'", 1, true))
    e:interrupt()
    assert.are.equal("> ", e:view().prompt)
  end)

  it("moves_between_lines_before_it_moves_in_the_history", function()
    local h = history.open()
    h:add "one"
    h:add "two\nlines"
    assert.are.equal("two\nlines|", shown(edited("draft" .. UP, {history = h})))
    assert.are.equal("two|\nlines", shown(edited("draft" .. UP .. UP, {history = h})))
    assert.are.equal("one|", shown(edited("draft" .. UP .. UP .. UP, {history = h})))
    assert.are.equal("draft|", shown(edited("draft" .. UP .. UP .. UP .. DOWN .. DOWN .. DOWN, {history = h})))
    assert.are.equal("one|", shown(edited("\16\16\16\16", {history = h})))
  end)

  it("searches_the_history", function()
    local h = history.open()
    for _, entry in ipairs {"x = 1", "print(x)", "y = 2", "print(y)"} do
      h:add(entry)
    end
    assert.are.equal("print(y)", edited("\18pri", {history = h}):text())
    assert.are.equal("print(x)", edited("\18pri\18", {history = h}):text())
    assert.are.equal("x = 1", edited("\18prix\127\127\127\127x =", {history = h}):text())
    assert.are.equal("draft", edited("draft\18pri\7", {history = h}):text())
    local e = edited("\18nothing", {history = h})
    assert.is_truthy(e:view().prompt:find("failed", 1, true))
    assert.are.same({"submit", "y = 2"}, {type_in(edited("\18y =", {history = h}), "\r")})
    assert.are.equal("y = |2", shown(edited("\18y =" .. LEFT .. RIGHT .. LEFT, {history = h})))
  end)

  it("completes_the_common_part_and_lists_at_the_second_tab", function()
    local words = {"spawn", "spawn_with", "send"}
    local options = {complete = function(text)
      local first = text:match "()%w*$"
      local found = {}
      for _, word in ipairs(words) do
        found[#found + 1] = word:sub(1, #text - first + 1) == text:sub(first) and word or nil
      end
      return first, found
    end}
    assert.are.equal("x.spawn|", shown(edited("x.sp\t", options)))
    assert.are.equal("x.send|", shown(edited("x.se\t", options)))
    assert.are.equal("x.s|", shown(edited("x.s\t", options)))
    assert.are.equal("x.q|", shown(edited("x.q\t\t", options)))
    local e = editor.new(options)
    assert.is_nil((type_in(e, "x.s\t")))
    local what, list = type_in(e, "\t")
    assert.are.equal("list", what)
    assert.are.same(words, list)
    assert.are.equal("  |", shown(edited("\t", options)))
  end)

  it("asks_for_what_only_the_terminal_can_do", function()
    assert.are.equal("clear", (type_in(editor.new(), "\12")))
    assert.are.equal("suspend", (type_in(editor.new(), "\26")))
  end)
end)

describe("screen", function()
  it("shows_prompt_text_and_cursor", function()
    local m = on_screen("print(1)" .. LEFT, 20)
    assert.are.equal("> print(1)", m:text())
    assert.are.same({1, 10}, {m.row, m.column})
  end)

  it("wraps_long_lines_and_keeps_the_cursor_in_the_width", function()
    local m = on_screen("abcdefgh", 10)
    assert.are.equal("> abcdefgh", m:text())
    assert.are.same({2, 1}, {m.row, m.column})
    m = on_screen("abcdefghij\1x", 10)
    assert.are.equal("> xabcdefg\nhij", m:text())
    assert.are.same({1, 4}, {m.row, m.column})
    m = on_screen("abcdefghij" .. ("\127"):rep(5), 10)
    assert.are.equal("> abcde", m:text())
    assert.are.same({1, 8}, {m.row, m.column})
  end)

  it("does_not_cut_wide_characters_in_two", function()
    local m = on_screen("漢字漢字漢", 9)
    assert.are.equal("> 漢字漢\n字漢", m:text())
    assert.are.same({2, 5}, {m.row, m.column})
    m = on_screen("e\204\129a" .. LEFT, 9)
    assert.are.equal("> e\204\129a", m:text())
    assert.are.equal(4, m.column)
  end)

  it("puts_the_continuation_before_further_lines", function()
    local m = on_screen("do\27\rx\27\rend" .. UP, 20)
    assert.are.equal("> do\n. x\n. end", m:text())
    assert.are.same({2, 4}, {m.row, m.column})
  end)

  it("shows_control_characters", function()
    assert.are.equal("> a    b^A", on_screen("\27[200~a\tb\1\27[201~", 20):text())
  end)

  it("shows_a_part_of_what_is_higher_than_the_terminal", function()
    local m = on_screen(("x\27\r"):rep(9) .. "y", 20, 4)
    assert.are.equal(". x\n. x\n. x\n. y", m:text():match "([^\n]*\n[^\n]*\n[^\n]*\n[^\n]*)$")
    assert.are.same({4, 4}, {m.row, m.column})
  end)

  it("goes_away_and_comes_back_for_output_above_it", function()
    local m, e, s = on_screen("abcdefghij", 10)
    m:feed(s:hide(10))
    assert.are.equal("", m:text())
    m:feed "tick\r\n"
    m:feed(s:draw(e:view(), 10, 24))
    assert.are.equal("tick\n> abcdefgh\nij", m:text())
    m:feed(s:leave(e:view(), 10, 24))
    assert.are.equal(4, m.row)
  end)

  it("is_drawn_anew_when_the_width_has_changed", function()
    local e, s = editor.new(), screen.new()
    e:begin("> ", ". ")
    type_in(e, "abcdefghij")
    s:draw(e:view(), 10, 24)
    local m = model.new(6):feed "> abcd\r\nefgh\r\nij" -- as a terminal of 6 columns has broken it anew
    m:feed(s:draw(e:view(), 6, 24))
    assert.are.equal("> abcd\nefghij", m:text())
  end)

  it("knows_the_widths_of_blocks", function()
    for text, columns in pairs {a = 1, ["é"] = 1, ["漢"] = 2, ["한"] = 2, ["ｱ"] = 1, ["Ａ"] = 2, ["\204\129"] = 0, ["😀"] = 2, ["\226\128\139"] = 0} do
      assert.are.equal(columns, width.text(text), text)
    end
  end)
end)

describe("history", function()
  local folder, path

  before_each(function()
    folder = helper.temporary ".state"
    path = folder .. "/deep/history"
  end)
  after_each(function()
    helper.shell("rm -rf " .. folder)
  end)

  it("comes_back_with_lines_and_backslashes", function()
    local entries = {"x = 1", "for i = 1, 2 do\n  print '\\n'\nend", "\\", "é"}
    local h = history.open(path)
    for _, entry in ipairs(entries) do
      assert.is_nil(h:add(entry))
    end
    assert.are.same(entries, history.open(path).entries)
    assert.are.equal("600\n", select(2, helper.shell("stat -c %a " .. path)))
    assert.are.equal("history\n", select(2, helper.shell("ls -A " .. folder .. "/deep")))
  end)

  it("leaves_out_blanks_and_repetitions", function()
    local h = history.open(path)
    for _, entry in ipairs {"a", "a", " ", "", "b", "a"} do
      h:add(entry)
    end
    assert.are.same({"a", "b", "a"}, h.entries)
  end)

  it("is_bounded_in_entries_and_bytes", function()
    helper.shell("mkdir -p " .. folder .. "/deep")
    local lines = {}
    for i = 1, 3000 do
      lines[i] = "x = " .. i
    end
    helper.write(path, table.concat(lines, "\n") .. "\n")
    local h = history.open(path)
    assert.are.equal(1000, #h.entries)
    assert.are.equal("x = 3000", h.entries[1000])
    for i = 1, 12 do
      h:add(("x"):rep(60000) .. i)
    end
    assert.is_true(#helper.read(path) <= 256 * 1024)
    assert.are.equal(4, #history.open(path).entries)
  end)

  it("keeps_what_two_programs_add", function()
    local a, b = history.open(path), history.open(path)
    a:add "one"
    b:add "two"
    a:add "three"
    assert.are.same({"one", "two", "three"}, history.open(path).entries)
  end)

  it("says_why_it_cannot_be_kept_and_stays_usable", function()
    local h = history.open "/proc/nowhere/history"
    assert.is_truthy(h:add("x"):find("/proc/nowhere", 1, true))
    assert.are.same({"x"}, h.entries)
  end)

  it("lies_in_the_state_folder", function()
    local line = "XDG_STATE_HOME=%s HOME=/home/x %s -e 'print(require \"weir.editor.history\".place())'"
    assert.are.equal("/s/weir/history\n", select(2, helper.shell(line:format("/s", helper.program))))
    assert.are.equal("/home/x/.local/state/weir/history\n", select(2, helper.shell(line:format("", helper.program))))
  end)
end)
