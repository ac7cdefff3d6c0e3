//! Scripts on one partition, answered as Redis 7.0 does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use korum_protocol::resp::{Args, ProtocolVersion, ReplyWriter};
use korum_protocol::rope::Rope;
use rand::SeedableRng;

use super::{Script, check, run};
use crate::command::{Call, Looks, Names};
use crate::env::random::Random;
use crate::replication::effect::Effects;
use crate::script::cache::Kind;
use crate::script::{Scripts, digest};
use crate::store::{Keyspace, Source};

/// A partition, and scripts that are given the key `{k}`.
struct Room {
    keyspace: Keyspace,
    scripts: Arc<Scripts>,
    version: ProtocolVersion,
    effects: usize,
}

impl Room {
    fn new() -> Self {
        Self {
            keyspace: Keyspace::new(7),
            scripts: Arc::default(),
            version: ProtocolVersion::Resp2,
            effects: 0,
        }
    }

    fn run_as(&mut self, source: &str, words: &[&str], reads_only: bool) -> String {
        let (mut buffer, mut ranges) = (Vec::new(), Vec::new());
        for word in words {
            ranges.push(buffer.len()..buffer.len() + word.len());
            buffer.extend_from_slice(word.as_bytes());
        }
        let args = Args::new(&buffer, &ranges);
        let (mut out, mut effects) = (Rope::new(), Effects::new(true));
        let mut call = Call {
            args,
            names: &Names::new(&self.keyspace.databases.clone(), 0, false),
            keyspace: &mut self.keyspace,
            now_ms: 1_700_000_000_000,
            random: &mut Random::seed_from_u64(1),
            effects: &mut effects,
            looks: &mut Looks::default(),
            source: &Source::none(),
            scripts: &self.scripts,
            reply: ReplyWriter::holding(&mut out, self.version),
        };
        let script = Script {
            digest: digest(source.as_bytes()),
            source: source.as_bytes(),
            keys: args.part(0, 1),
            arguments: args.tail(1),
            slot: args.get(0).map(korum_protocol::placement::slot::slot_of),
            reads_only,
        };
        run(&mut call, &script);
        self.effects = effects.count();
        String::from_utf8_lossy(&out.into_bytes()).replace("\r\n", "|")
    }

    fn run(&mut self, source: &str) -> String {
        self.run_as(source, &["{k}", "one", "2"], false)
    }

    fn expect(&mut self, cases: &[(&str, &str)]) {
        for (source, answer) in cases {
            assert_eq!(self.run(source), *answer, "{source}");
        }
    }
}

/// What stopped a script, without its digest.
fn problem(answer: &str) -> String {
    let (text, rest) = answer.split_once(" script: ").unwrap_or((answer, ""));
    format!("{text}{}", rest.split_once(", on @user_script").map_or("", |(_, line)| line))
}

#[test]
fn values_become_replies() {
    Room::new().expect(&[
        ("return 3.99", ":3|"),
        ("return -3.99", ":-3|"),
        ("return 1e300", ":-9223372036854775808|"),
        ("return true", ":1|"),
        ("return false", "$-1|"),
        ("return nil", "$-1|"),
        ("return 'a\\r\\nb'", "$4|a|b|"),
        ("return {1,2,nil,4}", "*2|:1|:2|"),
        ("return {1,{2,{3,'x'}},false,true}", "*4|:1|*2|:2|*2|:3|$1|x|$-1|:1|"),
        ("return {}", "*0|"),
        ("return function() end", "$-1|"),
        ("return {ok='fine'}", "+fine|"),
        ("return {err='a b'}", "-a b|"),
        ("return redis.status_reply('fine')", "+fine|"),
        ("return redis.error_reply('My Err')", "-My Err|"),
        ("return redis.error_reply('one')", "-ERR one|"),
        ("return redis.error_reply()", "-ERR wrong number or type of arguments|"),
        ("return {double=3.5}", "$3|3.5|"),
        ("return {map={a=1}}", "*2|$1|a|:1|"),
        ("return {big_number='123'}", "$3|123|"),
        ("return {verbatim_string={format='txt',string='x'}}", "$1|x|"),
        (
            "return {KEYS[1], ARGV[1], ARGV[2], #KEYS, #ARGV, type(ARGV[2])}",
            "*6|$3|{k}|$3|one|$1|2|:1|:2|$6|string|",
        ),
    ]);
    let mut room = Room::new();
    room.version = ProtocolVersion::Resp3;
    room.expect(&[
        ("return true", ":1|"),
        ("return false", "_|"),
        ("redis.setresp(3) return {true, false}", "*2|#t|#f|"),
        ("return {double=3.5}", ",3.5|"),
        ("return {map={a=1}}", "%1|$1|a|:1|"),
        ("return {set={a=true}}", "~1|$1|a|"),
        ("return {big_number='123'}", "(123|"),
        ("return {verbatim_string={format='txt',string='x'}}", "=5|txt:x|"),
        ("redis.setresp(3) return redis.call('get','{k}no') == nil", "#t|"),
        ("return redis.call('get','{k}no') == false", ":1|"),
    ]);
}

#[test]
fn commands_run_on_the_partition_and_are_one_set_of_effects() {
    let mut room = Room::new();
    let transfer = "redis.call('set', KEYS[1], 5) redis.call('decrby', KEYS[1], ARGV[2])
        redis.call('append', '{k}log', 'x') return {redis.call('get', KEYS[1]), redis.call('exists', '{k}log')}";
    assert_eq!(room.run(transfer), "*2|$1|3|:1|");
    assert_eq!(room.effects, 3);
    room.expect(&[
        ("return redis.call('set', '{k}', 1.5)", "+OK|"),
        ("return redis.call('get', '{k}')", "$3|1.5|"),
        ("return type(redis.call('set', '{k}', 1)) .. type(redis.call('get', '{k}no'))", "$12|tableboolean|"),
        ("return redis.call('set', '{k}', 1).ok", "$2|OK|"),
        ("return redis.call('incr', '{k}')", ":2|"),
        ("return redis.call('mget', '{k}', '{k}no')", "*2|$1|2|$-1|"),
        ("return redis.call('ping')", "+PONG|"),
        ("return redis.call('echo', 'x')", "$1|x|"),
        ("return redis.call('time')", "*2|$10|1700000000|$1|0|"),
        ("return redis.pcall('incr', '{k}log')", "-ERR value is not an integer or out of range|"),
        ("return redis.pcall('incr', '{k}log').err", "$43|ERR value is not an integer or out of range|"),
        (
            "local ok, e = pcall(redis.call, 'incr', '{k}log') return e",
            "$43|ERR value is not an integer or out of range|",
        ),
        ("local ok, e = pcall(error, {a=1}) return type(e)", "$5|table|"),
        ("return redis.sha1hex('abc')", "$40|a9993e364706816aba3e25717850c26c9cd0d89d|"),
        ("return redis.sha1hex(nil)", "$40|da39a3ee5e6b4b0d3255bfef95601890afd80709|"),
        ("return redis.log(redis.LOG_WARNING, 'x')", "$-1|"),
        ("return redis.REDIS_VERSION", "$5|7.2.0|"),
        ("return redis.REDIS_VERSION_NUM", ":459264|"),
        ("return redis.replicate_commands()", ":1|"),
    ]);
}

#[test]
fn errors_have_the_texts_of_redis() {
    let mut room = Room::new();
    room.run("return redis.call('set', '{k}', 'x')");
    for (source, text) in [
        ("return redis.call('incr','{k}')", "-ERR value is not an integer or out of range:1.|"),
        ("\n\nreturn redis.call('incr','{k}')", "-ERR value is not an integer or out of range:3.|"),
        (
            "return foo",
            "-ERR user_script:1: Script attempted to access nonexistent global variable 'foo':1.|",
        ),
        ("foo = 1", "-ERR user_script:1: Attempt to modify a readonly table:1.|"),
        ("KEYS = 1", "-ERR user_script:1: Attempt to modify a readonly table:1.|"),
        ("redis.call = 1", "-ERR user_script:1: Attempt to modify a readonly table:1.|"),
        ("string.foo = 1", "-ERR user_script:1: Attempt to modify a readonly table:1.|"),
        ("rawset(_G, 'x', 1)", "-ERR Attempt to modify a readonly table:1.|"),
        ("setmetatable(_G, {})", "-ERR Attempt to modify a readonly table:1.|"),
        ("return redis.call()", "-ERR Please specify at least one argument for this redis lib call:1.|"),
        ("return redis.call('nosuch')", "-ERR Unknown Redis command called from script:1.|"),
        ("return redis.call('get')", "-ERR Wrong number of args calling Redis command from script:1.|"),
        (
            "return redis.call('eval', 'return 1', 0)",
            "-ERR This Redis command is not allowed from script:1.|",
        ),
        ("return redis.call('multi')", "-ERR This Redis command is not allowed from script:1.|"),
        ("return redis.call('korum', 'clear', 0)", "-ERR This Redis command is not allowed from script:1.|"),
        ("return redis.call('flushall')", "-ERR This Redis command is not allowed from script:1.|"),
        ("return redis.call({})", "-ERR Lua redis lib command arguments must be strings or integers:1.|"),
        (
            "return redis.call('get', 'other')",
            "-ERR Script attempted to access keys that do not hash to the same slot:1.|",
        ),
        ("return error('boom')", "-ERR user_script:1: boom:1.|"),
        ("error({err='E x'})", "-E x:1.|"),
        ("return nil + 1", "-ERR user_script:1: attempt to perform arithmetic on a nil value:1.|"),
        ("return redis.sha1hex()", "-ERR wrong number of arguments:1.|"),
        ("return redis.setresp(4)", "-ERR RESP version must be 2 or 3.:1.|"),
        (
            "return dofile('x')",
            "-ERR user_script:1: Script attempted to access nonexistent global variable 'dofile':1.|",
        ),
        (
            "return cjson.decode('[1,2')",
            "-ERR user_script:1: Expected comma or array end but found T_END at character 5:1.|",
        ),
        (
            "return cjson.encode(function() end)",
            "-ERR user_script:1: Cannot serialise function: type not supported:1.|",
        ),
        ("bad bad", "-ERR Error compiling script (new function): user_script:1: '=' expected near 'bad'|"),
        (
            "#!lua flags=no-writes\nreturn redis.call('set','{k}',1)",
            "-ERR Write commands are not allowed from read-only scripts.:2.|",
        ),
        ("#!lua flags=bad\nreturn 1", "-ERR Unexpected flag in script shebang: bad|"),
        ("#!js\nreturn 1", "-ERR Unexpected engine in script shebang: #!js|"),
    ] {
        assert_eq!(problem(&room.run(source)), text, "{source}");
    }
    let answer = room.run_as("return redis.call('set', '{k}', 1)", &["{k}"], true);
    assert_eq!(problem(&answer), "-ERR Write commands are not allowed from read-only scripts.:1.|");
    let answer = room.run_as("return redis.call('get', '{k}')", &[], false);
    assert!(answer.starts_with("-ERR Script attempted to access keys, and was given none"), "{answer}");
    assert!(
        check(digest(b"bad bad"), b"bad bad").is_err() && check(digest(b"return 1"), b"return 1").is_ok()
    );
}

#[test]
fn nothing_is_left_behind_for_the_next_script() {
    let mut room = Room::new();
    for source in [
        "getmetatable('').__index = nil",
        "string.upper = nil",
        "math.random = nil",
        "cjson.encode = nil",
        "_G.x = 1",
        "setmetatable(redis, nil)",
        "KEYS.x = 1 ARGV[9] = 1",
        "redis.setresp(3)",
    ] {
        let _ = room.run(source);
    }
    room.expect(&[
        ("return ('x'):upper() .. type(math.random) .. type(cjson.encode)", "$17|Xfunctionfunction|"),
        ("return {tostring(KEYS.x), #ARGV, tostring(rawget(_G, 'x'))}", "*3|$3|nil|:2|$3|nil|"),
        ("return false", "$-1|"),
        ("return tostring(loadstring('\\27Lua'))", "$3|nil|"),
        ("return loadstring('return 1 + 1')()", ":2|"),
        ("local n = 0 return load(function() n = n + 1 return ({'return ', '7'})[n] end)()", ":7|"),
        ("math.randomseed(1) return math.random(100)", ":5|"),
        (
            "local co = coroutine.wrap(function() coroutine.yield(redis.call('ping').ok) end) return co()",
            "$4|PONG|",
        ),
        ("local t = {3,1,2} table.sort(t) return table.concat(t, ',')", "$5|1,2,3|"),
        ("return os.clock() >= 0", ":1|"),
    ]);
}

#[test]
fn libraries_convert_there_and_back() {
    Room::new().expect(&[
        ("return cjson.encode({1, 2.5, 'a\"/\\n', {a = true}, cjson.null})", "$33|[1,2.5,\"a\\\"\\/\\n\",{\"a\":true},null]|"),
        ("return cjson.encode({})", "$2|{}|"),
        ("return cjson.encode(1/3)", "$16|0.33333333333333|"),
        ("local t = cjson.decode('{\"a\": [1, -2.5e1, \"\\\\u00e9\\\\ud83d\\\\ude00\", null, false]}') return {t.a[1], t.a[2], t.a[3], t.a[4] == cjson.null, t.a[5]}",
            "*5|:1|:-25|$6|é😀|:1|$-1|"),
        ("return pcall(cjson.encode, {[1]=1, [100]=2}) == false", ":1|"),
        ("local t = {} for i = 1, 999 do t = {t} end return #cjson.encode(t)", ":2000|"),
        ("local t = {} for i = 1, 999 do t = {a = t} end local text = cjson.encode(t) return cjson.encode(cjson.decode(text)) == text", ":1|"),
        ("return #cjson.decode('[[],{},[1,{\"a\":[]},\"x\"]]')[3]", ":3|"),
        ("return cjson.encode(cjson.decode('{\"a\":{\"b\":[1,2,{\"c\":null}]}}'))", "$28|{\"a\":{\"b\":[1,2,{\"c\":null}]}}|"),
        ("return type(cjson.decode(('['):rep(1000) .. (']'):rep(1000)))", "$5|table|"),
        ("local a, b, c, d = cmsgpack.unpack(cmsgpack.pack(1, -200, 'x', {1, {k = 1.5}})) return {a, b, c, d[1], tostring(d[2].k)}",
            "*5|:1|:-200|$1|x|:1|$3|1.5|"),
        ("local o, v = cmsgpack.unpack_one(cmsgpack.pack(7, 8)) return {o, v}", "*2|:1|:7|"),
        ("return pcall(cmsgpack.unpack, '\\161')", "$-1|"),
        ("return cmsgpack.pack({a = 1})", "$4|\u{fffd}\u{fffd}a\u{1}|"),
        ("return struct.pack('>HBi3', 258, 7, -2)", "$6|\u{1}\u{2}\u{7}\u{fffd}\u{fffd}\u{fffd}|"),
        ("local a, b, c, n = struct.unpack('<Hsc2', '\\1\\2ab\\0xyz') return {a, b, c, n}", "*4|:513|$2|ab|$2|xy|:8|"),
        ("return struct.size('!4bi4d')", ":16|"),
        ("return pcall(struct.unpack, 'I4', 'ab')", "$-1|"),
        ("return {bit.band(255, 15, 9), bit.bor(1, 2), bit.bxor(5, 1), bit.bnot(0), bit.lshift(1, 31), bit.rshift(-1, 28)}",
            "*6|:9|:3|:4|:-1|:-2147483648|:15|"),
        ("return bit.tohex(255, 4) .. bit.tohex(-1, -2)", "$6|00ffFF|"),
        ("return {bit.rol(0x12345678, 8), bit.bswap(1), bit.arshift(-8, 1), bit.tobit(0xffffffff)}",
            "*4|:878082066|:16777216|:-4|:-1|"),
    ]);
}

#[test]
fn a_script_that_does_not_end_is_ended_and_keeps_what_it_wrote() {
    let mut room = Room::new();
    room.scripts.set_time_limit(60);
    for endless in [
        "redis.call('set', KEYS[1], 'there') while true do end",
        "redis.call('set', KEYS[1], 'there') while true do pcall(function() while true do end end) end",
        "redis.call('set', KEYS[1], 'there') while true do pcall(redis.call, 'get', KEYS[1]) end",
        "redis.call('set', KEYS[1], 'there') while true do coroutine.wrap(function() while true do end end)() end",
    ] {
        let began = Instant::now();
        let answer = room.run(endless);
        assert!(answer.starts_with("-ERR Script killed: it ran for more than 60 ms"), "{answer}");
        assert!(began.elapsed() < Duration::from_secs(5));
        assert_eq!(room.effects, 1);
        assert_eq!(room.run("return redis.call('getdel', KEYS[1])"), "$5|there|");
    }
}

#[test]
fn a_script_that_takes_too_much_is_refused() {
    let mut room = Room::new();
    room.scripts.set_time_limit(20_000);
    let answer = room.run("return #string.rep('x', 500000000)");
    assert!(answer.starts_with("-ERR not enough memory"), "{answer}");
    let answer = room.run("local t = {} for i = 1, 1e9 do t[i] = {i} end");
    assert!(answer.starts_with("-ERR not enough memory"), "{answer}");
    let answer = room.run("return string.find(('a'):rep(300000), ('a?'):rep(300000))");
    assert_eq!(answer, ":1|");
    let answer = room.run("return #string.gsub(('a'):rep(20000), 'a', ('b'):rep(20000))");
    assert!(answer.starts_with("-ERR not enough memory"), "{answer}");
    let answer = room.run("return (('a'):rep(9000)):find(('a'):rep(5000), 1, true)");
    assert_eq!(answer, ":1|");
    let nested = "local function f() return (string.gsub('x', 'x', f)) end return f()";
    assert!(room.run(nested).starts_with("-ERR "), "C functions in each other");
    let nested = "local function f() return coroutine.wrap(f)() end return f()";
    assert!(room.run(nested).starts_with("-ERR "), "coroutines in each other");
    assert_eq!(room.run("return coroutine.wrap(function() return 7 end)()"), ":7|");
    let answer = room.run("local s, t = ('x'):rep(1000000), {} for i = 1, 1000 do t[i] = s end return t");
    assert_eq!(answer, "-ERR the reply of the script is too large|");
    assert_eq!(room.run("return 1"), ":1|");
}

#[test]
fn no_single_call_outlasts_the_limit() {
    let mut room = Room::new();
    room.scripts.set_time_limit(60);
    for endless in [
        "return string.find(('a'):rep(40), ('a?'):rep(40) .. ('a'):rep(40) .. 'b')",
        "return pcall(string.match, ('a'):rep(100000), '.-.-.-.-b')",
        "return string.gsub(('a'):rep(40), ('a?'):rep(40) .. ('a'):rep(40) .. 'b', 'x')",
        "for x in string.gmatch(('a'):rep(100000), '.-.-.-.-b') do end",
        "return string.gsub(('a'):rep(1e6), 'a', function() while true do end end)",
        "local t = {} for i = 1, 3000 do t[i] = ('x'):rep(1000000) end table.sort(t)",
        "local s, t = ('x'):rep(10000000), {} for i = 1, 1000 do t[i] = s .. '' end table.sort(t)",
        "local t = {} for i = 1, 60 do t = {t, t} end return cjson.encode(t)",
        "local t = {} for i = 1, 60 do t = {t, t} end return t",
        "while true do collectgarbage() end",
        "local s = ('x'):rep(100000) return #string.gsub(s:rep(10), '.', s)",
        "local a, b = ('x'):rep(2e7) .. 'a', ('x'):rep(2e7) .. 'b' while true do local c = a < b end",
    ] {
        let began = Instant::now();
        let answer = room.run(endless);
        assert!(answer.starts_with("-ERR Script killed: it ran for more than 60 ms"), "{endless} {answer}");
        assert!(began.elapsed() < Duration::from_secs(20), "{endless} {:?}", began.elapsed());
    }
    assert_eq!(room.run("return string.rep('', 2000000000)"), "$0||");
}

/// Of C functions of Lua 5.1, each of which would end the process or run for minutes.
#[test]
fn numbers_that_c_cannot_count_to_are_refused() {
    let mut room = Room::new();
    for script in [
        "return unpack({}, -2^31, 2^31 - 1)",
        "local x = unpack({}, 0, 2^31 - 1) return 1",
        "return unpack({}, -1, 2^31 - 2)",
        "return unpack({1, 2}, 1, 1e9)",
        "return unpack({1}, 2^31 - 1, 2^31)",
        "return unpack({}, 0/0)",
        "return unpack({}, -math.huge, -math.huge)",
    ] {
        let answer = room.run(script);
        assert!(
            answer.starts_with("-ERR ") && answer.contains("too many results to unpack"),
            "{script} {answer}"
        );
    }
    room.expect(&[
        ("return {unpack({1, 2, 3})}", "*3|:1|:2|:3|"),
        ("return {unpack({1, 2, 3}, '2', 3.9)}", "*2|:2|:3|"),
        ("return select('#', unpack({1, 2, 3}, 5, 1))", ":0|"),
        ("local t = {} for i = 1, 7000 do t[i] = i end return select('#', unpack(t))", ":7000|"),
        ("return {pcall(unpack, {}, -2^31, 2^31 - 1)}", "*2|$-1|$26|too many results to unpack|"),
        (
            "local t = {1, 3} table.insert(t, 2, 2) table.insert(t, 4) table.insert(t, '1', 0) return t",
            "*5|:0|:1|:2|:3|:4|",
        ),
        ("local t = {} table.insert(t, -3, 1) return t[-3]", ":1|"),
    ]);
    for (script, error) in [
        ("table.insert({}, -2^31, 1)", "bad argument #2 to 'insert' (position out of bounds)"),
        ("table.insert({}, 2^31, 1)", "bad argument #2 to 'insert' (position out of bounds)"),
        ("table.insert({}, 'x', 1)", "bad argument #2 to 'insert' (number expected, got string)"),
        ("table.insert({}, 1, 2, 3)", "wrong number of arguments to 'insert'"),
        ("table.insert()", "bad argument #1 to 'insert' (table expected, got no value)"),
        ("unpack()", "bad argument #1 to 'unpack' (table expected, got no value)"),
        ("unpack({}, {})", "bad argument #2 to 'unpack' (number expected, got table)"),
    ] {
        let answer = room.run(script);
        assert!(answer.starts_with(&format!("-ERR user_script:1: {error}")), "{script} {answer}");
    }
}

#[test]
fn what_a_function_in_a_search_raises_comes_through() {
    let mut room = Room::new();
    room.expect(&[
        ("local ok, e = pcall(string.gsub, 'x', 'x', function() error({a = 7}) end) return e.a", ":7|"),
        ("local ok, e = pcall(string.gsub, 'x', 'x', function() error({err = 'A b'}) end) return e", "$3|A b|"),
        ("local ok, e = pcall(string.gsub, 'x', 'x', function() return redis.call('incr') end) return e", "$58|ERR Wrong number of args calling Redis command from script|"),
        ("return {pcall(string.gsub, 'x', 'x', function() error('boom', 0) end)}", "*2|$-1|$4|boom|"),
        ("return (string.gsub('abc', '%w', {a = '1', b = true and 'B'}))", "$3|1Bc|"),
        ("return (string.gsub('hello world', '(o)', '<%1>'))", "$15|hell<o> w<o>rld|"),
        ("local t = {} for k, v in string.gmatch('a=1, b=2', '(%w+)=(%w+)') do t[#t + 1] = k .. v end return t", "*2|$2|a1|$2|b2|"),
        ("return {('x'):rep(3), ('a,b'):find(',', 1, true)}", "*3|$3|xxx|:2|:2|"),
    ]);
    for (source, text) in [
        (
            "local a = string.find('x', '%') return a",
            "-ERR user_script:1: malformed pattern (ends with '%'):1.|",
        ),
        (
            "return string.find(nil, 'x')",
            "-ERR user_script:1: bad argument #1 to 'find' (string expected, got nil):1.|",
        ),
        (
            "local a = ('x'):find() return a",
            "-ERR user_script:1: bad argument #1 to 'find' (string expected, got no value):1.|",
        ),
        ("local a = string.gsub('x', 'x', '%2') return a", "-ERR user_script:1: invalid capture index:1.|"),
        (
            "local a = string.gsub('x', 'x', function() error('boom') end) return a",
            "-ERR user_script:1: boom:1.|",
        ),
        ("local a = table.sort({3, 'x'}) return a", "-ERR attempt to compare string with number:1.|"),
        (
            "local a = table.sort(1) return a",
            "-ERR user_script:1: bad argument #1 to 'sort' (table expected, got number):1.|",
        ),
        (
            "local t = {} for i = 1, 100 do t[i] = i end table.sort(t, function() return true end)",
            "-ERR user_script:1: invalid order function for sorting:1.|",
        ),
    ] {
        assert_eq!(problem(&room.run(source)), text, "{source}");
    }
}

#[test]
fn tables_are_sorted() {
    let random = "math.randomseed(tonumber(ARGV[1])) local t = {} for i = 1, tonumber(ARGV[2]) do t[i] = math.random(1000) end ";
    let check = "for i = 2, #t do if t[i - 1] > t[i] then return {i, t[i - 1], t[i]} end end return #t";
    let mut room = Room::new();
    for count in ["0", "1", "2", "3", "4", "5", "10", "100", "3000"] {
        for seed in ["1", "2", "3"] {
            for sort in [
                "table.sort(t) ",
                "table.sort(t, function(a, b) return a > b end) for i = 1, #t / 2 do t[i], t[#t + 1 - i] = t[#t + 1 - i], t[i] end ",
            ] {
                let answer = room.run_as(&[random, sort, check].concat(), &["{k}", seed, count], false);
                assert_eq!(answer, format!(":{count}|"), "{sort}");
            }
        }
    }
    assert_eq!(
        room.run("local t = {'b', 'a', 'c', 'ab'} table.sort(t) return table.concat(t, ' ')"),
        "$8|a ab b c|"
    );
}

#[test]
fn rights_and_replication_are_answered_as_redis_does() {
    let mut room = Room::new();
    room.expect(&[
        ("return redis.acl_check_cmd('get', 'x')", ":1|"),
        ("return redis.acl_check_cmd('get')", ":1|"),
        ("return redis.acl_check_cmd('config', 'get', 'x')", ":1|"),
        ("return redis.set_repl(redis.REPL_ALL)", "$-1|"),
        ("return table.insert(redis, 1) == nil and rawget(redis, 1)", ":1|"),
        ("return tostring(rawget(redis, 1))", "$3|nil|"),
    ]);
    for (source, text) in [
        ("return redis.acl_check_cmd('nosuch')", "-ERR Invalid command passed to redis.acl_check_cmd():1.|"),
        (
            "return redis.acl_check_cmd('config', 'nosuch')",
            "-ERR Invalid command passed to redis.acl_check_cmd():1.|",
        ),
        (
            "return redis.acl_check_cmd()",
            "-ERR Please specify at least one argument for this redis lib call:1.|",
        ),
        (
            "return redis.acl_check_cmd({})",
            "-ERR Lua redis lib command arguments must be strings or integers:1.|",
        ),
        ("return redis.set_repl()", "-ERR redis.set_repl() requires two arguments.:1.|"),
        (
            "return redis.set_repl(9)",
            "-ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.:1.|",
        ),
        (
            "local t = {} for i = 1, 1000 do t = {t} end return cjson.encode(t)",
            "-ERR user_script:1: Cannot serialise, excessive nesting (1001):1.|",
        ),
        (
            "return cjson.decode(('['):rep(1001))",
            "-ERR user_script:1: Found too many nested data structures (1001) at character 1001:1.|",
        ),
        (
            "return cjson.decode('{\"a\":1,}')",
            "-ERR user_script:1: Expected object key string but found T_OBJ_END at character 8:1.|",
        ),
        (
            "return cjson.decode('[1]x')",
            "-ERR user_script:1: Expected the end but found invalid token at character 4:1.|",
        ),
        (
            "return cjson.decode('{\"a\" 1}')",
            "-ERR user_script:1: Expected colon but found T_NUMBER at character 6:1.|",
        ),
    ] {
        assert_eq!(problem(&room.run(source)), text, "{source}");
    }
}

#[test]
fn a_script_can_be_killed() {
    let mut room = Room::new();
    room.scripts.set_time_limit(60_000);
    let scripts = Arc::clone(&room.scripts);
    let killer = std::thread::spawn(move || {
        let until = Instant::now() + Duration::from_secs(30);
        while !scripts.kill(Kind::Script) {
            assert!(Instant::now() < until, "the script never ran");
            std::thread::yield_now();
        }
    });
    let answer = room.run("while true do end");
    killer.join().unwrap();
    assert!(answer.starts_with("-ERR Script killed by user with SCRIPT KILL."), "{answer}");
}
