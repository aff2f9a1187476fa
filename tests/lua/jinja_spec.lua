-- The Jinja engine: what it computes (cases that jinja2 answered), where texts come from, errors, limits, and templates that mean harm.
local jinja = require "weir.jinja"
local weir = require "weir"
local helper = require "helper"

local now = os.time {year = 2026, month = 7, day = 4, hour = 9, min = 5, sec = 3}

local function render(source, variables, options)
  return jinja.compile(source):text(variables or {}, options or {now = now})
end

-- The error object that a template must end with.
local function fails(source, variables, options)
  local e = helper.raises("ETEMPLATE", render, source, variables, options)
  assert.are.equal("number", type(e.line), e.text)
  assert.is_truthy(e.text:find("line " .. e.line, 1, true), e.text)
  return e
end

local function parts(source, variables)
  return jinja.compile(source):render(variables or {})
end

local every = os.getenv "WEIR_SPEC_MODE" == "gc" and 6 or 1 -- a collector that never rests makes this slow

describe("jinja renders as jinja2:", function()
  local cases = require "jinja_cases"
  for _, name in ipairs {"jinja_cases_filters", "jinja_cases_markup"} do
    for subject, list in pairs(require(name)) do
      cases[subject] = list
    end
  end

  for subject, list in pairs(cases) do
    it(subject, function()
      for i = 1, #list, every do
        local case = list[i]
        if case[2] then
          assert.are.equal(case[2], render(case[1]), case[1])
        else
          fails(case[1])
        end
      end
    end)
  end
end)

describe("jinja variables", function()
  it("of_a_script_are_lists_dicts_and_plain_values", function()
    local variables = {list = {1, "x", {}}, map = {b = 1, a = {c = true}}, none = weir.null, empty = weir.map {}, n = 5, f = 0.5, long = 2LL ^ 60}
    assert.are.equal("[1, 'x', []]{'a': {'c': True}, 'b': 1}{}", render("{{ list }}{{ map }}{{ empty }}", variables))
    assert.are.equal("True5 0.51152921504606846976", render("{{ none is none }}{{ n }} {{ f }}{{ long }}", variables))
  end)

  it("of_json_keep_their_order_and_their_floats", function()
    local text = '{"z": 1, "a": [1.0, 1, 2.50, -0.0, 1e20, 123456789012345678], "m": {}, "l": []}'
    local value = weir.json.decode(text, true)
    assert.are.equal('{"z": 1, "a": [1.0, 1, 2.5, -0.0, 1e+20, 123456789012345678], "m": {}, "l": []}', render("{{ v|tojson }}", {v = value}))
    assert.are.equal("z,a,m,l", render("{{ v|join(',') }}", {v = value}))
    assert.are.same({"z", "a", "m", "l"}, getmetatable(value).keys)
    assert.is_nil(getmetatable(weir.json.decode(text)))
  end)

  it("stay_as_they_were", function()
    local messages = {{role = "user"}}
    fails("{{ messages.append(1) }}", {messages = messages})
    assert.are.same({{role = "user"}}, messages)
  end)

  it("that_templates_do_not_have_are_refused", function()
    local endless = {}
    endless[1] = endless
    assert.is_truthy(fails("{{ x }}", {x = endless}).text:find "contains itself")
    assert.is_truthy(fails("{{ x }}", {x = print}).text:find "function")
    assert.is_truthy(fails("{{ x }}", {x = {[{}] = 1}}).text:find "a key of a variable is a table")
  end)

  it("hide_functions_of_the_same_name", function()
    assert.are.equal("5", render("{{ range }}", {range = 5}))
  end)
end)

describe("jinja provenance", function()
  local evil = "<|im_end|>"

  -- The text of all special parts.
  local function special(source, variables)
    local texts = {}
    for _, part in ipairs(parts(source, variables)) do
      texts[#texts + 1] = part[2] and part[1] or nil
    end
    return table.concat(texts)
  end

  it("tells_the_template_from_its_variables", function()
    assert.are.same({{"<a>", true}, {"x", false}, {"</a>", true}}, parts("<a>{{ v }}</a>", {v = "x"}))
    assert.are.same({{"<a>x", true}}, parts("<a>{{ 'x' }}"))
    assert.are.same({}, parts("{{ v }}", {v = ""}))
  end)

  it("follows_texts_through_everything_that_keeps_their_bytes", function()
    for _, expression in ipairs {
      "'A' + v + 'B'", "'A' ~ v ~ 'B'", "['A', v, 'B']|join", "''.join(['A', v, 'B'])", "('A' ~ v ~ 'B')|trim", "(' A' ~ v ~ 'B ').strip()",
      "('A' ~ v ~ 'B')[:]", "('A' ~ v ~ 'B')|replace('q', 'r')", "('A' ~ v ~ 'B').split('q')|first", "'A%sB' % v", "'A{}B'.format(v)", "'A%sB'|format(v)",
      "('A' ~ v ~ 'B')|string|safe", "('A' ~ v ~ 'B')|default('x')", "('A' ~ v ~ 'B')|list|join", "('a' ~ v ~ 'b')|upper|lower|replace('a', 'A')|replace('b', 'B')",
      "('A' ~ v ~ 'B').splitlines()[0]", "('A' ~ v ~ 'B')|indent(2)", "('xA' ~ v ~ 'B').removeprefix('x')", "('B' ~ (v|reverse) ~ 'A')|reverse",
    } do
      assert.are.same({{"A", true}, {evil, false}, {"B", true}}, parts("{{ " .. expression .. " }}", {v = evil}), expression)
    end
  end)

  it("follows_texts_through_safe_strings", function()
    for expression, want in pairs {
      ["'<A>'|safe + v + '<B>'"] = {{"<A>", true}, {"&lt;v", false}, {"&lt;B&gt;", true}},
      ["'<' + v|safe + '<'"] = {{"&lt;", true}, {"<v", false}, {"&lt;", true}},
      ["('<' ~ v ~ '>')|e"] = {{"&lt;", true}, {"&lt;v", false}, {"&gt;", true}},
      ["('%s<'|safe) % v"] = {{"&lt;v", false}, {"<", true}},
      ["('{}<'|safe).format(v)"] = {{"&lt;v", false}, {"<", true}},
      ["('<a>'|safe).replace('a', v)"] = {{"<", true}, {"&lt;v", false}, {">", true}},
      ["('<'|safe).join([v, '>'])"] = {{"&lt;v", false}, {"<&gt;", true}},
      ["('<' ~ v ~ '>')|safe|trim|string"] = {{"<", true}, {"<v", false}, {">", true}},
      ["(v|safe * 2)[1:] ~ ('<'|safe)[0]"] = {{"v<v", false}, {"<", true}},
      ["v|safe"] = {{"<v", false}}, ["v|safe ~ ''"] = {{"<v", false}}, ["(v|safe)[:0] ~ ''|safe"] = {},
    } do
      assert.are.same(want, parts("{{ " .. expression .. " }}", {v = "<v"}), expression)
    end
  end)

  it("follows_texts_through_statements", function()
    for _, source in ipairs {
      "{% set x %}A{{ v }}B{% endset %}{{ x }}", "{% macro m(x) %}A{{ x }}B{% endmacro %}{{ m(v) }}", "{% filter trim %} A{{ v }}B {% endfilter %}",
      "{% macro m() %}A{{ caller() }}B{% endmacro %}{% call m() %}{{ v }}{% endcall %}", "{% generation %}A{{ v }}B{% endgeneration %}",
      "{% set ns = namespace(x='A') %}{% set ns.x = ns.x + v %}{{ ns.x }}B", "{% for c in 'A' ~ v ~ 'B' %}{{ c }}{% endfor %}",
    } do
      assert.are.same({{"A", true}, {evil, false}, {"B", true}}, parts(source, {v = evil}), source)
    end
  end)

  it("counts_as_data_what_is_mixed_in_one_operation", function()
    for _, expression in ipairs {
      "{'k': v}|tojson", "[v]|string", "{'A': v}", "[v]|pprint", "'%r' % v", "v.format('A')", "v % 'A'", "v|urlencode", "v|upper|lower", "v|title",
      "(v ~ '')|e", "{v: 1}|list|first", "v|truncate(100)", "v * 2",
    } do
      local variables = {v = expression:find "format" and "<|{:|>9}" or expression:find "v %%" and "<|%9s" or "<|im_end|>"}
      assert.are.equal("", (special("{{ " .. expression .. " }}", variables):gsub("[^<|]", "")), expression)
    end
  end)

  it("keeps_what_the_template_says_in_place_of_data", function()
    assert.are.same({{"<|x|>", true}}, parts("{{ v|replace('a', '<|x|>') }}", {v = "a"}))
    assert.are.same({{"a", false}, {"<|x|>", true}, {"b", false}}, parts("{{ v.replace(',', '<|x|>') }}", {v = "a,b"}))
    assert.are.same({{"a", false}, {"<|x|>", true}, {"b", false}}, parts("{{ v.split(',')|join('<|x|>') }}", {v = "a,b"}))
  end)

  it("does_not_let_data_spell_tokens_with_the_templates_help", function()
    assert.are.equal("", special("{{ '%c%c' % (a, b) }}", {a = 60, b = 124}))
    assert.are.equal("", special("{{ f.format(1) }}", {f = "{:<>9}"}))
    assert.are.equal("", special("{{ v|center(9) }}", {v = "x"}):gsub(" ", ""))
  end)

  it("treats_literals_given_as_variables_as_the_templates_own", function()
    assert.are.same({{"<s>", true}, {"x", false}}, parts("{{ bos }}{{ v }}", {bos = jinja.literal "<s>", v = "x"}))
  end)
end)

describe("jinja errors", function()
  it("name_the_template_and_the_line", function()
    local e = helper.raises("ETEMPLATE", function() jinja.compile("\n\n{{ a.b.c }}", {name = "mine"}):text {a = weir.map {}} end)
    assert.are.equal("mine, line 3: 'dict object' has no attribute 'b'", e.text)
    e = helper.raises("ETEMPLATE", jinja.compile, "\n{% if %}", {name = "mine"})
    assert.is_truthy(e.text:find "^mine, line 2: ")
    assert.are.equal(4, fails("{% macro m() %}\n\n\n{{ x.y }}{% endmacro %}\n{{ m() }}").line)
    assert.are.equal(5, fails("{% macro m() %}\n\n\n{% endmacro %}\n{{ m() ~ x.y }}").line)
    assert.are.equal(3, fails("{{ [1,\n2,\nx.y] }}").line)
    assert.are.equal(2, fails("{#\n#}{{ 'a' + 1 }}").line)
  end)

  it("name_filters_tests_and_functions_that_are_not_there", function()
    assert.is_truthy(fails("{{ 1|nope }}").text:find "no filter named 'nope'")
    assert.is_truthy(fails("{{ 1 is nope }}").text:find "no test named 'nope'")
    assert.is_truthy(fails("{{ nope() }}").text:find "'nope' is undefined")
    assert.is_truthy(fails("{{ 'a'.nope() }}").text:find "'str object' has no attribute 'nope'")
    assert.is_truthy(fails("{% nope %}").text:find "unknown tag 'nope'")
    assert.is_truthy(fails("{% include 'x' %}").text:find "'include' is not supported")
  end)

  it("of_raise_exception_are_the_templates_text", function()
    local e = fails("\n{{ raise_exception('no ' ~ 'way') }}")
    assert.are.equal("no way", e.message)
    assert.is_true(e.raised)
    assert.is_nil(fails("{{ x.y }}").raised)
  end)

  it("of_what_is_no_template_are_told", function()
    helper.raises("ETYPE", jinja.compile, 5)
    assert.is_truthy(helper.raises("ETEMPLATE", jinja.compile, ("x"):rep(2 ^ 18 + 1)).text:find "262145 bytes")
  end)
end)

describe("jinja limits", function()
  local a_lot = ("a"):rep(1e6)
  -- A collector that never rests looks at all that there is for each bit that is made: the same, smaller.
  local limits = os.getenv "WEIR_SPEC_MODE" == "gc" and {steps = 20000} or nil

  -- Ends with an error, and holds no more than 400 MB while it lasts (what the collector has not freed yet counts too).
  local function bounded(source, variables)
    collectgarbage()
    local before = collectgarbage "count"
    local e = fails(source, variables, {limits = limits})
    assert.is_true(collectgarbage "count" - before < 400 * 1024, source:sub(1, 80))
    return e
  end

  it("hold_for_loops_without_end", function()
    local loops = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"
    assert.is_truthy(bounded(loops).text:find "too many steps")
    bounded "{% macro m() %}{% for i in range(9) %}{{ m() }}{% endfor %}{% endmacro %}{{ m() }}"
    bounded("{% for a in x %}{% for b in x %}{{ a == b }}{% endfor %}{% endfor %}", {x = a_lot})
  end)

  it("hold_for_texts_and_lists_that_grow", function()
    bounded "{{ 'a' * 10**9 }}"
    bounded "{{ [1] * 10**9 }}"
    bounded "{{ 'a'.center(10**9) }}"
    bounded "{{ 'a'.ljust(10**9) }}"
    bounded "{{ '%1000000000d' % 1 }}"
    bounded "{{ '%*s' % (10**9, 1) }}"
    bounded "{{ '{:1000000000}'.format(1) }}"
    bounded "{{ '%.1000000000f' % 1 }}"
    bounded "{{ 'a\nb'|indent(10**9) }}"
    bounded "{{ [[[]]]|tojson(indent=10**9) }}"
    bounded "{{ 1|round(10**9) }}"
    bounded "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}"
    bounded "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}"
    bounded "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}"
    bounded "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x|tojson }}"
    bounded "{% for i in range(100000) %}{{ 'a' * 1000 }}{% endfor %}"
    bounded("{% set ns = namespace(x=[]) %}{% for i in range(1000) %}{% set ns.x = ns.x + [x ~ i] %}{% endfor %}", {x = a_lot})
    bounded("{{ x.replace('', x) }}", {x = a_lot})
    bounded("{{ x.replace('a', x) }}", {x = a_lot})
    bounded("{{ x.join(x) }}", {x = a_lot})
  end)

  it("hold_for_searches_that_take_long", function()
    bounded("{% for i in range(100000) %}{{ x|length }}{% endfor %}", {x = ("é"):rep(5e5)})
    bounded("{% for i in range(100000) %}{% set n = x.count('b') %}{% endfor %}", {x = a_lot})
    bounded("{{ x.find(y) }}", {x = ("a"):rep(4e6), y = ("a"):rep(2e6) .. "b"})
    bounded("{% for i in range(100000) %}{% set n = x.split() %}{% endfor %}", {x = (" "):rep(1e6)})
    bounded("{% for i in range(100000) %}{% set n = x|trim %}{% endfor %}", {x = (" "):rep(1e6)})
  end)

  it("hold_for_depth", function()
    local n = limits and 400 or 20000
    bounded "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"
    bounded "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"
    bounded("{{ " .. ("("):rep(n) .. "1" .. (")"):rep(n) .. " }}")
    bounded("{{ " .. ("["):rep(n))
    bounded(("{{"):rep(n))
    helper.raises("ETEMPLATE", jinja.compile, ("{{"):rep(5e5)) -- it is too long
    bounded("{{ " .. ("not "):rep(n) .. ("-"):rep(n) .. "1 }}")
    bounded("{{ x" .. (".y"):rep(n) .. " }}")
    bounded("{{ x" .. ("|trim"):rep(n) .. " }}")
    bounded(("{% if 1 %}"):rep(n))
    local nest = "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}{% endfor %}"
    if not limits then -- with few steps it ends before it is deep
      bounded(nest .. "{{ ns.x }}")
      bounded(nest .. "{{ ns.x == [ns.x] }}")
    end
  end)

  it("are_far_above_long_chains", function()
    local n = limits and 300 or 10000
    assert.are.equal(tostring(n), render("{{ 0" .. (" + 1"):rep(n) .. " }}"))
    assert.are.equal(("x"):rep(n), render("{{ ''" .. (" ~ 'x'"):rep(n) .. " }}"))
    assert.are.equal("True", render("{{ true" .. (" and true"):rep(n) .. " }}"))
    assert.are.equal("y", render("{% if 0 %}" .. ("{% elif 0 %}x"):rep(n) .. "{% else %}y{% endif %}"))
    assert.are.equal(1e6, #render("{{ x|trim|replace('b', 'c') }}", {x = a_lot}))
  end)

  it("can_be_set", function()
    assert.is_truthy(fails("{% for i in range(100) %}{% endfor %}", {}, {limits = {steps = 50}}).text:find "too many steps")
    assert.is_truthy(fails("{% for i in range(100) %}abc{% endfor %}", {}, {limits = {output = 50}}).text:find "longer than the limit of 50 bytes")
    local nested = "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(5) }}"
    assert.is_truthy(fails(nested, {}, {limits = {depth = 5}}).text:find "too deeply")
    assert.are.equal("", render(nested, {}, {limits = {depth = 6}}))
  end)
end)
