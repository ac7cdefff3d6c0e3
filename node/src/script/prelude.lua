-- What scripts see of Lua, and how they leave it. Runs once for each interpreter, with the host's functions as its
-- argument; gives the function `run`, the globals, and the table behind `redis`.
--
-- For: the globals that Redis gives to scripts, which no script can change; `redis.call` and `pcall` as Redis has them;
-- errors with the line of the script.
-- Not here: what the functions do (`host`, `json`, `msgpack`, `pack`, `bits`).

local host = ...
local G = _G
local error, type, tostring, select = error, type, tostring, select
local pcall, xpcall, rawget, rawset, setmetatable = pcall, xpcall, rawget, rawset, setmetatable
local loadstring, sub, concat = loadstring, string.sub, table.concat
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

function redis.acl_check_cmd() return true end
function redis.replicate_commands() return true end
function redis.set_repl() end
function redis.breakpoint() return false end
function redis.debug() end

redis.LOG_DEBUG, redis.LOG_VERBOSE, redis.LOG_NOTICE, redis.LOG_WARNING = 0, 1, 2, 3
redis.REPL_NONE, redis.REPL_AOF, redis.REPL_SLAVE, redis.REPL_REPLICA, redis.REPL_ALL = 0, 1, 2, 2, 3
redis.REDIS_VERSION, redis.REDIS_VERSION_NUM = host.version, host.version_number

-- Globals --------------------------------------------------------------------------------------------------------

local base = {}
for _, name in ipairs({
  "_VERSION", "assert", "error", "gcinfo", "getmetatable", "ipairs", "next", "pairs", "rawequal", "rawget", "select",
  "tonumber", "tostring", "type", "unpack",
}) do
  base[name] = G[name]
end

-- An error of the host as Lua has errors: a text, or of a command a table with it.
local function problem_of(problem)
  if type(problem) ~= "userdata" then return problem end
  local text, is_reply = host.raised(problem)
  if text == nil then return problem end
  return is_reply and { err = text } or text
end

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
  if what == nil or what == "collect" or what == "count" or what == "step" then return collectgarbage(what) end
  return 0
end

local math = {}
for name, value in pairs(G.math) do math[name] = value end
math.random, math.randomseed = host.random, host.randomseed

local text = {}
for name, value in pairs(G.string) do text[name] = value end
text.dump, text.gfind = nil, nil
-- The search takes stack for each part of a pattern: one of a hundred thousand parts would end the process.
local PATTERN_MAX = 4096
local function bounded(call)
  return function(subject, pattern, ...)
    if #tostring(pattern) > PATTERN_MAX then error("pattern too complex", 2) end
    return call(subject, pattern, ...)
  end
end
text.match, text.gmatch, text.gsub = bounded(text.match), bounded(text.gmatch), bounded(text.gsub)
local find = text.find
function text.find(subject, pattern, init, plain)
  if not plain and #tostring(pattern) > PATTERN_MAX then error("pattern too complex", 2) end
  return find(subject, pattern, init, plain)
end

base.redis = protect(redis)
base.math = protect(math)
base.string = protect(text)
base.table = protect(G.table)
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
setmetatable(base, {
  __index = function(_, name)
    error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
})
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

-- Runs a compiled script: whether it came to its end, and its value or what stopped it.
local function run(script)
  running = 0
  return xpcall(script, outcome)
end

return run, base, redis
