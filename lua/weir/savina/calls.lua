--- Benchmarks in Lua: logistic map, banking, N queens: calls and their replies, and work that is handed out.
-- @module weir.savina.calls
local weir = require "weir"
local receive, call = weir.receive, weir.call

-- ---- logistic map: terms of all = terms x series; the last term of each must be what a plain loop gives ----

local function computer(rate)
  while true do
    local m = receive()
    local x = m[1]
    m:reply(rate * x * (1 - x))
  end
end

local function series(run, rate, terms)
  local to, x, plain = weir.spawn(computer, rate), 0.01, 0.01
  for _ = 1, terms do
    x, plain = call(to, "next", x), rate * plain * (1 - plain)
  end
  assert(x == plain, "the last term is not what a plain loop gives")
  run:add(terms)
end

local logistic = {
  name = "logistic", counts = "terms", parameters = {{name = "terms", few = 50, full = 25000}, {name = "series", few = 4, full = 10}},
  start = function(run, terms, n)
    for i = 0, n - 1 do
      weir.spawn(series, run, 3.46 + 0.0025 * i, terms)
    end
  end,
  expected = function(terms, n) return terms * n end,
}

-- ---- banking: the sum of all balances, which transfers leave alone, and the transfers made. From an account with a lower number to one with a higher, so
-- that calls make no cycle; tellers have one transfer each under way ----

local OPENING, AMOUNT, TELLERS = 1000000, 100, 50

local function account()
  local balance = OPENING
  while true do
    local m = receive()
    if m.verb == "debit" then
      balance = balance - m[2]
      call(m[1], "credit", m[2])
    elseif m.verb == "credit" then
      balance = balance + m[1]
    end
    m:reply(balance)
  end
end

local function teller(run, accounts, transfers, random)
  local n = #accounts
  for _ = 1, transfers do
    random = random * 16807 % 2147483647 -- Lehmer's generator
    local from = random % math.floor(n / 10 * 8) + 1
    local to = from + 1 + math.floor(random / n) % (n - from)
    call(accounts[from], "debit", accounts[to], AMOUNT)
    run:add(1)
  end
end

local function bank(run, n, transfers)
  local accounts, tellers = {}, 0
  for i = 1, n do
    accounts[i] = weir.spawn(account)
  end
  for i = 1, TELLERS do
    weir.monitor(weir.spawn(teller, run, accounts, transfers / TELLERS, i))
    tellers = tellers + 1
  end
  while tellers > 0 do
    local _, e = receive():args()
    if e then
      error(e, 0)
    end
    tellers = tellers - 1
  end
  for i = 1, n do
    run:add(call(accounts[i], "balance"))
  end
end

local banking = {
  name = "banking", counts = "balances and transfers",
  parameters = {{name = "accounts", few = 20, full = 1000}, {name = "transfers", few = 200, full = 50000}},
  start = function(run, n, transfers)
    weir.spawn(bank, run, n, transfers)
  end,
  expected = function(n, transfers) return n * OPENING + transfers end,
}

-- ---- queens: solutions (OEIS A000170). A master keeps a stack of boards and gives one at a time to each worker, which asks with what came of the last ----

local DEEP = 4 -- rows from which on a worker solves the rest by itself
local SOLUTIONS = {1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200}

-- A board is an array of columns, from 0.
local function safe(board, rows, column)
  for i = 1, rows do
    local away, beside = rows + 1 - i, column - board[i]
    if beside == 0 or beside == away or beside == -away then
      return false
    end
  end
  return true
end

local function solve(board, rows, n)
  if rows == n then
    return 1
  end
  local found = 0
  for column = 0, n - 1 do
    if safe(board, rows, column) then
      board[rows + 1] = column
      found = found + solve(board, rows + 1, n)
    end
  end
  return found
end

local function expand(board, n)
  local boards = {}
  for column = 0, n - 1 do
    if safe(board, #board, column) then
      local next_board = {unpack(board)}
      next_board[#board + 1] = column
      boards[#boards + 1] = next_board
    end
  end
  return boards
end

local function solver(master, n)
  local found, boards = 0, {}
  while true do
    local board = call(master, "next", found, boards)
    if not board then
      return
    elseif #board >= DEEP then
      found, boards = solve(board, #board, n), {}
    else
      found, boards = 0, expand(board, n)
    end
  end
end

local function keeper(run, n, workers)
  local stack, idle, sum = {{}}, {}, 0
  for _ = 1, workers do
    weir.spawn(solver, weir.self(), n)
  end
  while #stack > 0 or #idle < workers do
    local m = receive():defer()
    sum = sum + m[1]
    for _, board in ipairs(m[2]) do
      stack[#stack + 1] = board
    end
    idle[#idle + 1] = m
    while #stack > 0 and #idle > 0 do
      table.remove(idle):reply(table.remove(stack))
    end
  end
  for _, m in ipairs(idle) do
    m:reply()
  end
  run:add(sum)
end

local queens = {
  name = "queens", counts = "solutions", parameters = {{name = "queens", few = 7, full = 12}, {name = "workers", few = 4, full = 20}},
  start = function(run, n, workers)
    weir.spawn(keeper, run, n, workers)
  end,
  expected = function(n) return SOLUTIONS[n] end,
}

return {logistic, banking, queens}
