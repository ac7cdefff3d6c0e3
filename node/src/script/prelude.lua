-- What scripts and functions see of Lua, and how they leave it. Runs once for each interpreter, with the host's
-- functions as its argument; gives the function `run`, the globals, and the table behind `redis`; and the same for
-- functions.
--
-- For: the globals that Redis gives to scripts and functions, which none can change; `redis.call` and `pcall` as Redis
-- has them; errors with the line of the script; functions of Lua that take time, as Lua code that can be stopped.
-- Not here: what the functions do (`host`, `text`, `json`, `msgpack`, `pack`, `bits`).

local host = ...
local G = _G
local error, type, tostring, select = error, type, tostring, select
local pcall, xpcall, rawget, rawset, setmetatable = pcall, xpcall, rawget, rawset, setmetatable
local pairs = pairs
local loadstring, setfenv, sub, concat = loadstring, setfenv, string.sub, table.concat
local gsub, floor, tonumber = string.gsub, math.floor, tonumber
local collectgarbage = collectgarbage

local READONLY = "Attempt to modify a readonly table"
local protected = setmetatable({}, { __mode = "k" })

local function readonly()
  error(READONLY, 2)
end

-- A table that can be read and not changed.
local function protect(real)
  local shown = setmetatable({}, { __index = real, __newindex = readonly, __metatable = false })
  protected[shown] = true
  return shown
end

-- Commands -------------------------------------------------------------------------------------------------------

-- `call` and `pcall` are set for each script. What raises errors is the host's own: a script that ends with
-- `return redis.call(…)` is still on the stack then, and its line can be told.
local redis = { setresp = host.setresp, sha1hex = host.sha1hex, log = host.log }

local function one_string(...)
  return select("#", ...) == 1 and type((...)) == "string"
end

function redis.error_reply(...)
  if not one_string(...) then return { err = "ERR wrong number or type of arguments" } end
  return { err = host.error_text((...)) }
end

function redis.status_reply(...)
  if not one_string(...) then return { err = "ERR wrong number or type of arguments" } end
  return { ok = (...) }
end

redis.acl_check_cmd = host.acl_check_cmd
function redis.replicate_commands() return true end

redis.set_repl = host.set_repl
function redis.breakpoint() return false end
function redis.debug() end

redis.LOG_DEBUG, redis.LOG_VERBOSE, redis.LOG_NOTICE, redis.LOG_WARNING = 0, 1, 2, 3
redis.REPL_NONE, redis.REPL_AOF, redis.REPL_SLAVE, redis.REPL_REPLICA, redis.REPL_ALL = 0, 1, 2, 2, 3
redis.REDIS_VERSION, redis.REDIS_VERSION_NUM = host.version, host.version_number

-- Globals --------------------------------------------------------------------------------------------------------

local base = {}
for _, name in ipairs({
  "_VERSION", "assert", "error", "gcinfo", "getmetatable", "ipairs", "next", "pairs", "rawequal", "rawget", "select",
  "tonumber", "tostring", "type",
}) do
  base[name] = G[name]
end

-- What a function that was called by one of the host's has raised, on its way through that.
local thrown

-- An error of the host as Lua has errors: a text, or of a command a table with it.
local function problem_of(problem)
  if type(problem) ~= "userdata" then return problem end
  local text, kind = host.raised(problem)
  if kind == "thrown" and thrown then
    local value = thrown[1]
    thrown = nil
    return problem_of(value)
  end
  if text == nil then return problem end
  return kind == "reply" and { err = text } or text
end

local function keep(ok, problem, ...)
  if not ok then thrown = { problem } end
  return ok, problem, ...
end

-- What the host calls functions and indexes tables of scripts by.
host.set_guard(function(call, ...)
  return keep(pcall(call, ...))
end, function(table, key)
  return table[key]
end)

-- An error of a command is a text for whoever catches it.
local function caught(ok, problem, ...)
  if ok then return ok, problem, ... end
  problem = problem_of(problem)
  if type(problem) == "table" and type(rawget(problem, "err")) == "string" then
    return false, rawget(problem, "err")
  end
  return false, problem
end

function base.pcall(...)
  return caught(pcall(...))
end

function base.xpcall(call, handler)
  return xpcall(call, function(problem) return handler(problem_of(problem)) end)
end

function base.rawset(table, key, value)
  if protected[table] then error(READONLY, 0) end
  return rawset(table, key, value)
end

function base.setmetatable(table, meta)
  if protected[table] then error(READONLY, 0) end
  return setmetatable(table, meta)
end

-- Only source text is loaded: bytes that claim to be compiled could break the interpreter.
function base.loadstring(text, name)
  if type(text) == "string" and sub(text, 1, 1) == "\27" then return nil, "compiled chunks are not loaded" end
  return loadstring(text, name)
end

function base.load(piece, name)
  local pieces = {}
  while true do
    local text = piece()
    if text == nil or text == "" then break end
    if type(text) ~= "string" then return nil, "reader function must return a string" end
    pieces[#pieces + 1] = text
  end
  return base.loadstring(concat(pieces), name or "=(load)")
end

-- A script may ask and help, not switch it off.
function base.collectgarbage(what)
  if what == nil or what == "collect" or what == "step" then host.look() end
  if what == nil or what == "collect" or what == "count" or what == "step" then return collectgarbage(what) end
  return 0
end

local math = {}
for name, value in pairs(G.math) do math[name] = value end
math.random, math.randomseed = host.random, host.randomseed

-- Searching takes as long as it takes: the host looks at the clock meanwhile.
local text = {}
for name, value in pairs(G.string) do text[name] = value end
text.dump, text.gfind = nil, nil
for name, value in pairs(host.text) do text[name] = value end

-- Comparing -------------------------------------------------------------------------------------------------------

-- An order as Lua has it, whose errors have no place, as those of a C function.
local function compare(a, b) return a < b end

local function less(a, b)
  local kind = type(a)
  if kind == type(b) and (kind == "number" or kind == "string") then return a < b end
  local ok, outcome = pcall(compare, a, b)
  if ok then return outcome end
  if type(outcome) == "string" then outcome = gsub(outcome, "^prelude:%d+: ", "") end
  error(outcome, 0)
end

local INVALID_ORDER = "invalid order function for sorting"

-- Lua's own `sort`, step by step, in Lua: one call of it could take hours.
local function sort_part(t, low, high, before)
  while low < high do
    local first, last = rawget(t, low), rawget(t, high)
    if before(last, first) then
      rawset(t, low, last)
      rawset(t, high, first)
    end
    if high - low == 1 then break end
    local i = floor((low + high) / 2)
    local middle, edge = rawget(t, i), rawget(t, low)
    if before(middle, edge) then
      rawset(t, i, edge)
      rawset(t, low, middle)
    else
      edge = rawget(t, high)
      if before(edge, middle) then
        rawset(t, i, edge)
        rawset(t, high, middle)
      end
    end
    if high - low == 2 then break end
    local pivot = rawget(t, i)
    rawset(t, i, rawget(t, high - 1))
    rawset(t, high - 1, pivot)
    i = low
    local j = high - 1
    while true do
      i = i + 1
      local left = rawget(t, i)
      while before(left, pivot) do
        if i > high then return true end
        i = i + 1
        left = rawget(t, i)
      end
      j = j - 1
      local right = rawget(t, j)
      while before(pivot, right) do
        if j < low then return true end
        j = j - 1
        right = rawget(t, j)
      end
      if j < i then break end
      rawset(t, i, right)
      rawset(t, j, left)
    end
    local moved = rawget(t, i)
    rawset(t, i, rawget(t, high - 1))
    rawset(t, high - 1, moved)
    if i - low < high - i then
      if sort_part(t, low, i - 1, before) then return true end
      low = i + 1
    else
      if sort_part(t, i + 1, high, before) then return true end
      high = i - 1
    end
  end
  return false
end

local function kind_of(...)
  return select("#", ...) == 0 and "no value" or type((...))
end

local tables = {}
for name, value in pairs(G.table) do tables[name] = value end

function tables.sort(...)
  local t, before = ...
  if type(t) ~= "table" then
    error("bad argument #1 to 'sort' (table expected, got " .. kind_of(...) .. ")", 2)
  end
  if before ~= nil and type(before) ~= "function" then
    error("bad argument #2 to 'sort' (function expected, got " .. type(before) .. ")", 2)
  end
  if sort_part(t, 1, #t, before or less) then error(INVALID_ORDER, 2) end
end

-- C counts results and moves in an int, which overflows, and takes as many steps as it is told.
local RESULTS_MAX, BEFORE_MAX, INT_MAX = 7900, 1000000, 2147483647
local unpack, insert = G.unpack, G.table.insert

local function must_be(wanted, number, name, ok, ...)
  if ok then return end
  local value = select("#", ...) == 0 and "no value" or type((...))
  error("bad argument #" .. number .. " to '" .. name .. "' (" .. wanted .. " expected, got " .. value .. ")", 3)
end

function base.unpack(...)
  local list, first, last = ...
  must_be("table", 1, "unpack", type(list) == "table", ...)
  local from, to = first == nil and 1 or tonumber(first), last == nil and #list or tonumber(last)
  must_be("number", 2, "unpack", from, first)
  must_be("number", 3, "unpack", to, last)
  if not (from > -INT_MAX and to < INT_MAX and to - from < RESULTS_MAX) then
    error("too many results to unpack", 2)
  end
  return unpack(list, from, to)
end

function tables.insert(...)
  local list, place, item = ...
  must_be("table", 1, "insert", type(list) == "table", ...)
  local count = select("#", ...)
  if count == 2 then return insert(list, place) end
  if count ~= 3 then error("wrong number of arguments to 'insert'", 2) end
  local at = tonumber(place)
  must_be("number", 2, "insert", at, place)
  if not (at > -BEFORE_MAX and at < INT_MAX) then error("bad argument #2 to 'insert' (position out of bounds)", 2) end
  return insert(list, at, item)
end

base.redis = protect(redis)
base.math = protect(math)
base.string = protect(text)
base.table = protect(tables)
-- Each coroutine that runs inside another takes stack of the thread, and Lua does not count them.
local COROUTINES_MAX = 100
local running = 0
local create, resume = G.coroutine.create, G.coroutine.resume

local function left(...)
  running = running - 1
  return ...
end

local function enter(thread, ...)
  if running >= COROUTINES_MAX then error("C stack overflow", 0) end
  running = running + 1
  return left(resume(thread, ...))
end

local function value_of(ok, problem, ...)
  if not ok then error(problem, 0) end
  return problem, ...
end

local coroutine = {}
for name, value in pairs(G.coroutine) do coroutine[name] = value end

function coroutine.resume(...)
  return caught(enter(...))
end

function coroutine.wrap(call)
  local thread = create(call)
  return function(...)
    return value_of(enter(thread, ...))
  end
end

base.coroutine = protect(coroutine)
base.os = protect({ clock = G.os.clock })
base.bit = protect(host.bit)
base.struct = protect(host.struct)
local cmsgpack = host.cmsgpack
cmsgpack._NAME, cmsgpack._VERSION = "cmsgpack", "lua-cmsgpack 0.4.0"
base.cmsgpack = protect(cmsgpack)
local cjson = host.cjson
cjson.null, cjson._NAME, cjson._VERSION = host.null, "cjson", "2.1.0"
-- Settings of the library are those of its beginning, for every script.
for name, value in pairs({
  decode_invalid_numbers = true, decode_max_depth = 128, encode_invalid_numbers = false, encode_keep_buffer = true,
  encode_max_depth = 128, encode_number_precision = 14, encode_sparse_array = false,
}) do
  cjson[name] = function() return value end
end
base.cjson = protect(cjson)
base._G = G

local strings = getmetatable("")
strings.__index, strings.__metatable = base.string, false

for name in pairs(G) do rawset(G, name, nil) end

local missing = {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
}

-- Functions ------------------------------------------------------------------------------------------------------

-- Functions have globals of their own, without `KEYS` and `ARGV`. While its library is loaded, a chunk sees `redis` with
-- a few fields, and nothing else.
local functions = {}
for name, value in pairs(base) do functions[name] = value end
local functions_redis = {}
for name, value in pairs(redis) do functions_redis[name] = value end
functions_redis.replicate_commands, functions_redis.breakpoint, functions_redis.debug = nil, nil, nil
functions.redis = protect(functions_redis)

local room_meta = { __index = functions, __newindex = readonly, __metatable = false }
local room = setmetatable({}, room_meta)
protected[room] = true
functions._G = room

local function in_room(chunk, problem)
  if chunk then setfenv(chunk, room) end
  return chunk, problem
end

function functions.loadstring(...) return in_room(base.loadstring(...)) end
function functions.load(...) return in_room(base.load(...)) end
setmetatable(functions, missing)

-- What the library that is loaded has registered.
local registered

local FLAGS = {
  ["no-writes"] = 1, ["allow-oom"] = 2, ["allow-stale"] = 4, ["no-cluster"] = 8, ["allow-cross-slot-keys"] = 16,
}

local function is_text(value) return type(value) == "string" or type(value) == "number" end

local function lower(value) return (host.lower(tostring(value))) end

local function flags_of(list)
  local flags, at = {}, 1
  while list[at] ~= nil do
    local flag = is_text(list[at]) and FLAGS[lower(list[at])]
    if not flag then error("unknown flag given", 0) end
    flags[flag] = true
    at = at + 1
  end
  local sum = 0
  for flag in pairs(flags) do sum = sum + flag end
  return sum
end

local function named_arguments(given)
  local name, callback, description, flags = nil, nil, nil, 0
  for key, value in pairs(given) do
    if not is_text(key) then error("named argument key given to redis.register_function is not a string", 0) end
    key = lower(key)
    if key == "function_name" then
      if not is_text(value) then
        error("function_name argument given to redis.register_function must be a string", 0)
      end
      name = tostring(value)
    elseif key == "description" then
      if not is_text(value) then
        error("description argument given to redis.register_function must be a string", 0)
      end
      description = tostring(value)
    elseif key == "callback" then
      if type(value) ~= "function" then
        error("callback argument given to redis.register_function must be a function", 0)
      end
      callback = value
    elseif key == "flags" then
      if type(value) ~= "table" then
        error("flags argument to redis.register_function must be a table representing function flags", 0)
      end
      flags = flags_of(value)
    else
      error("unknown argument given to redis.register_function", 0)
    end
  end
  if not name then error("redis.register_function must get a function name argument", 0) end
  if not callback then error("redis.register_function must get a callback argument", 0) end
  return name, callback, description, flags
end

local function arguments(...)
  local count = select("#", ...)
  local name, callback = ...
  if count == 0 or count > 2 then error("wrong number of arguments to redis.register_function", 0) end
  if count == 1 then
    if type(name) ~= "table" then
      error("calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).", 0)
    end
    return named_arguments(name)
  end
  if not is_text(name) then error("first argument to redis.register_function must be a string", 0) end
  if type(callback) ~= "function" then
    error("second argument to redis.register_function must be a function", 0)
  end
  return tostring(name), callback, nil, 0
end

local loading_redis = { log = host.log }
for name, value in pairs(redis) do
  if sub(name, 1, 4) == "LOG_" or sub(name, 1, 13) == "REDIS_VERSION" then loading_redis[name] = value end
end

function loading_redis.register_function(...)
  if not registered then
    error("redis.register_function can only be called on FUNCTION LOAD command", 0)
  end
  local name, callback, description, flags = arguments(...)
  if not host.is_name(name) then error(host.bad_name, 0) end
  if registered.names[lower(name)] then error("Function already exists in the library", 0) end
  registered.names[lower(name)] = true
  registered.list[#registered.list + 1] =
    { name = name, callback = callback, description = description, flags = flags }
end

setmetatable(loading_redis, missing)
local loading = setmetatable({ redis = protect(loading_redis) }, missing)

setmetatable(base, missing)
setmetatable(G, { __index = base, __newindex = readonly, __metatable = false })
protected[G] = true

-- Running --------------------------------------------------------------------------------------------------------

-- What becomes of an error that nobody caught: a table with the text and the line of the script.
local function outcome(problem)
  local line = host.line()
  problem = problem_of(problem)
  if type(problem) == "table" then
    return { err = rawget(problem, "err"), line = line }
  end
  return { err = "ERR " .. tostring(problem), line = line }
end

-- What stands in a table that only shows another one can only have come there past it: `table.insert` does that.
local function clean()
  for shown in pairs(protected) do
    for key in pairs(shown) do rawset(shown, key, nil) end
  end
end

local function cleaned(...)
  clean()
  return ...
end

-- Runs a compiled script: whether it came to its end, and its value or what stopped it.
local function run(script)
  running, thrown = 0, nil
  return cleaned(xpcall(script, outcome))
end

-- Calls a function of a library, in the same way.
local function call(callback, keys, words)
  running, thrown = 0, nil
  return cleaned(xpcall(function() return callback(keys, words) end, outcome))
end

-- Runs the chunk of a library: whether it came to its end, and what it has registered or what stopped it.
local function load_library(chunk)
  running, thrown = 0, nil
  registered = { list = {}, names = {} }
  room_meta.__index = loading
  local ok, problem = xpcall(chunk, outcome)
  local list = registered.list
  registered, room_meta.__index = nil, functions
  clean()
  if ok then return true, list end
  return false, problem
end

return run, base, redis, { room = room, redis = functions_redis, load = load_library, call = call }
