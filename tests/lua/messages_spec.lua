-- Lua values in messages: what arrives is what was sent, or an error names the place.
local ffi = require "ffi"
local weir = require "weir"
local helper = require "helper"

local function echo()
  while true do
    local m = weir.receive()
    m:reply(m:args())
  end
end

local peer

local function round(...)
  return weir.call(peer, "x", ...)
end

-- The keys of a table with their types, in order.
local function kinds(t)
  local keys = {}
  for k in pairs(t) do
    keys[#keys + 1] = type(k) .. ":" .. tostring(k)
  end
  table.sort(keys)
  return table.concat(keys, " ")
end

describe("messages", function()
  before_each(function()
    weir.shutdown()
    peer = weir.spawn(echo)
  end)

  it("carry_every_kind_of_value", function()
    local got = {round(true, false, 0, -1, 1.5, "text", {1, 2}, {a = {b = "c"}}, 2 ^ 52, -2 ^ 52, 1e300)}
    assert.are.same({true, false, 0, -1, 1.5, "text", {1, 2}, {a = {b = "c"}}, 2 ^ 52, -2 ^ 52, 1e300}, got)
  end)

  it("keep_nils_among_arguments", function()
    assert.are.equal(4, select("#", round(nil, 1, nil, nil)))
    assert.are.equal(0, select("#", round()))
  end)

  it("keep_bytes", function()
    local bytes = {}
    for i = 0, 255 do
      bytes[#bytes + 1] = string.char(i)
    end
    local all = table.concat(bytes)
    assert.are.equal(all, round(all))
    assert.are.equal(all, round(weir.bin(all)))
    helper.raises("ETYPE", weir.bin, 5)
  end)

  it("keep_special_numbers", function()
    assert.are.equal(math.huge, round(math.huge))
    assert.are.equal(-math.huge, round(-math.huge))
    local nan = round(0 / 0)
    assert.is_true(nan ~= nan)
    assert.are.equal(-math.huge, 1 / round(-0.0))
  end)

  it("carry_64_bit_integers_as_cdata", function()
    local big = round(9007199254740993LL)
    assert.is_true(ffi.istype("int64_t", big))
    assert.are.equal(9007199254740993LL, big)
    assert.are.equal(-9007199254740993LL, round(-9007199254740993LL))
    assert.are.equal(0x7fffffffffffffffLL, round(0x7fffffffffffffffLL))
    assert.are.equal(-0x7fffffffffffffffLL - 1, round(-0x7fffffffffffffffLL - 1))
    assert.is_true(ffi.istype("uint64_t", round(0xffffffffffffffffULL)))
    assert.are.equal(0xffffffffffffffffULL, round(0xffffffffffffffffULL))
    assert.are.equal(5, round(5LL))
  end)

  it("put_long_bytes_into_a_buffer", function()
    local long = ("0123456789abcdef"):rep(1024)
    local got = round(weir.bin(long))
    assert.are.equal("userdata", type(got))
    assert.are.equal(#long, got:size())
    assert.are.equal(long, got:string())
    assert.are.equal("3456", got:string(3, 4))
    assert.are.equal(long, round(got):string())
    helper.raises("EINVAL", got.string, got, 0, #long + 1)
    assert.are.equal(("0"):byte(), got:pointer()[0])
    assert.are.equal(long, round(long))
  end)

  it("empty_a_buffer_when_its_system_goes", function()
    local got = round(weir.bin(("x"):rep(5000)))
    weir.shutdown()
    helper.raises("ESTOPPING", got.string, got)
  end)

  it("decode_arguments_one_by_one", function()
    local main = weir.self()
    weir.send(main, "x", "a", {1}, nil, 4)
    local m = weir.receive()
    assert.are.equal("a", m[1])
    assert.are.same({1}, m[2])
    assert.is_nil(m[3])
    assert.are.equal(4, m[4])
    assert.is_nil(m[5])
    assert.is_nil(m[0])
    assert.is_nil(m[1.5])
  end)

  it("carry_bodies_of_every_size_around_the_one_that_is_copied", function()
    for size = 230, 280 do
      local text = ("\214"):rep(size % 3) .. ("x"):rep(size)
      weir.send(weir.self(), "x", text, size)
      local m = weir.receive()
      collectgarbage()
      assert.are.equal(text, m[1])
      assert.are.equal(size, select(2, m:args()))
    end
  end)

  it("keep_a_message_usable_after_shutdown", function()
    weir.send(weir.self(), "x", "a")
    local m = weir.receive()
    weir.shutdown()
    assert.is_nil(m[1])
    assert.is_nil(m.verb)
    m:reply(1)
  end)

  it("msgpack_M19_deep_tables_with_a_full_stack", function()
    local function nested(depth)
      local t = {}
      for _ = 2, depth do
        t = {t}
      end
      return t
    end
    local many = {}
    for i = 1, 200 do
      many[i] = i
    end
    many[201] = nested(60)
    local got = {round(unpack(many))}
    assert.are.same(nested(60), got[201])
    assert.is_truthy(round(nested(63)))
    helper.raises("EDEPTH", round, nested(65))
    helper.raises("EDEPTH", round, nested(10000))
  end)

  it("msgpack_M5_whatever_is_encoded_is_decoded", function()
    for depth = 60, 66 do
      local t = {}
      for _ = 2, depth do
        t = {t}
      end
      local ok, e = pcall(round, t)
      assert.is_true(ok or weir.is_error(e, "EDEPTH"))
    end
  end)

  it("msgpack_a_table_that_contains_itself", function()
    local t = {}
    t.self = t
    assert.is_truthy(helper.raises("EDEPTH", round, t).text:find "itself")
  end)

  it("msgpack_M27_keys_that_have_no_place_in_Lua", function()
    for _, key in ipairs {"\192", "\145\1", "\128", "\203\127\248\0\0\0\0\0\0", "\207\255\255\255\255\255\255\255\255"} do
      assert.is_truthy(helper.raises("ETYPE", weir.unpack, "\145\129" .. key .. "\1").text:find "key")
    end
    assert.are.equal("yes", round({[true] = "yes"})[true])
  end)

  it("refuse_malformed_bytes", function()
    for _, bytes in ipairs {"", "\1", "\145", "\221\255\255\255\255", "\145\219\255\255\255\255Z", "\144\144", "\145\193"} do
      helper.raises("EMSGPACK", weir.unpack, bytes)
    end
    helper.raises("EDEPTH", weir.unpack, ("\145"):rep(100000) .. "\192")
    helper.raises("ETYPE", weir.unpack, "\145\212\3\0")
  end)

  it("have_the_shortest_bytes", function()
    assert.are.equal("\149\1\255\161a\196\1b\192", weir.pack(1, -1, "a", weir.bin "b", nil))
    assert.are.equal("\147\146\1\2\129\161a\195\144", weir.pack({1, 2}, {a = true}, {}))
    assert.are.equal("\145\128", weir.pack(weir.map {}))
    assert.are.equal("\144", weir.pack())
    assert.are.equal("\145\129\1\2", weir.pack(weir.map {[1] = 2}))
    assert.are.equal("\145\203\63\248\0\0\0\0\0\0", weir.pack(1.5))
  end)

  it("msgpack_M29_null_marks_nil_in_arrays", function()
    local got = round({1, weir.null, 3, weir.null})
    assert.are.equal(4, #got)
    assert.are.equal(weir.null, got[2])
    assert.are.equal(weir.null, got[4])
    assert.are.same({1}, round({1, nil}))
    assert.are.equal(weir.null, round({a = weir.null}).a)
  end)

  it("msgpack_M31_a_hole_is_an_error_that_names_its_place", function()
    local e = helper.raises("ETYPE", round, {true, nil, {}})
    assert.is_truthy(e.text:find "hole at 2" and e.text:find "weir.null")
    e = helper.raises("ETYPE", round, 1, {a = {list = {"x", [3] = "y"}}})
    assert.is_truthy(e.text:find("argument 2.a.list: an array with a hole at 2", 1, true))
    helper.raises("ETYPE", round, {[2] = "x"})
  end)

  it("msgpack_M33_arrays_with_holes_made_in_other_ways", function()
    local t = {"1", "2", "5"}
    t[2] = nil
    helper.raises("ETYPE", round, t)
    t[2] = weir.null
    assert.are.equal(3, #round(t))
  end)

  it("msgpack_M35_string_keys_are_not_integers", function()
    assert.are.equal("string:1", kinds(round({["1"] = 1})))
    assert.are.equal("number:1.5", kinds(round({[1.5] = 1})))
    assert.are.equal("number:0", kinds(round({[0] = 1})))
    assert.are.equal("number:-1", kinds(round({[-1] = 1})))
    assert.are.equal(1, round({[2 ^ 52] = 1})[2 ^ 52])
    assert.are.equal(1, round({[2 ^ 53 + 2] = 1})[2 ^ 53 + 2])
    assert.are.equal("number:1 string:x", kinds(round({1, x = 2})))
  end)

  it("send_any_table_as_a_map_when_told_so", function()
    assert.are.equal("number:7", kinds(round(weir.map {[7] = "x"})))
    assert.are.same({}, round(weir.map {}))
  end)

  it("name_what_cannot_travel_and_where", function()
    for _, value in ipairs {print, coroutine.create(print), io.stdout, ffi.new "int[2]"} do
      local e = helper.raises("ETYPE", round, 1, {list = {"ok", value}})
      assert.is_truthy(e.text:find("argument 2.list[2]: ", 1, true))
    end
    assert.is_truthy(helper.raises("ETYPE", round, {[{}] = 1}).text:find "a key of type table")
  end)

  it("survive_thousands_of_arguments", function()
    local many = {}
    for i = 1, 3000 do
      many[i] = i
    end
    assert.are.equal(3000, select("#", round(unpack(many))))
  end)

  it("carry_large_arrays", function()
    local t = {}
    for i = 1, 100000 do
      t[i] = i
    end
    local got = round(t)
    assert.are.equal(100000, #got)
    assert.are.equal(100000, got[100000])
  end)
end)

describe("json", function()
  local json = weir.json

  it("decodes_and_encodes", function()
    assert.are.same({a = {1, 2.5, "x", true, false}}, json.decode '{"a":[1,2.5,"x",true,false]}')
    assert.are.equal('{"a":[1,2.5,"x",true,null],"b":{}}', json.encode {a = {1, 2.5, "x", true, weir.null}, b = weir.map {}})
    assert.are.equal("[0.1,0.040086]", json.encode {0.1, 0.040086})
    assert.are.equal(1 / 3, json.decode(json.encode {0.1, {1 / 3}})[2][1])
    assert.are.equal("[]", json.encode {})
    assert.are.equal(weir.null, json.decode "null")
  end)

  it("keeps_integers_exact", function()
    local n = json.decode "9007199254740993"
    assert.are.equal(9007199254740993LL, n)
    assert.are.equal("9007199254740993", json.encode(n))
    assert.are.equal("-9223372036854775808", json.encode(-0x7fffffffffffffffLL - 1))
    helper.raises("ETYPE", json.encode, 0xffffffffffffffffULL)
    helper.raises("EFORMAT", json.decode, "9223372036854775808")
  end)

  it("names_line_and_column_of_bad_input", function()
    local e = helper.raises("EFORMAT", json.decode, '{"a":\n[1,}')
    assert.is_truthy(e.text:find "line 2")
    helper.raises("EFORMAT", json.decode, '"\255"')
    helper.raises("EFORMAT", json.decode, '{"a":1,"a":2}')
    helper.raises("EFORMAT", json.decode, ("["):rep(100000))
  end)

  it("refuses_what_JSON_cannot_say", function()
    helper.raises("ETYPE", json.encode, {1, nil, 3})
    helper.raises("ETYPE", json.encode, {[1.5] = 1})
    helper.raises("ETYPE", json.encode, "\255")
    helper.raises("ETYPE", json.encode, 0 / 0)
    helper.raises("ETYPE", json.encode, print)
    local t = {}
    t[1] = t
    helper.raises("EDEPTH", json.encode, t)
  end)

  it("keeps_zero_bytes_in_strings", function()
    assert.are.equal("a\0b", json.decode '"a\\u0000b"')
    assert.are.equal('"a\\u0000b"', json.encode "a\0b")
  end)
end)
