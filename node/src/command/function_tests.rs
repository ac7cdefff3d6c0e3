//! Functions on one partition, answered as Redis 7.0 does, and their libraries under their key.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use korum_protocol::id::{Epoch, Incarnation};
use korum_protocol::resp::{Args, ProtocolVersion, ReplyWriter};
use korum_protocol::rope::Rope;
use rand::SeedableRng;

use super::{call_request, change, dump, fcall, fcall_ro, libraries, list, nested, stats};
use crate::command::{Call, Looks, Names, partition};
use crate::env::Tick;
use crate::env::random::Random;
use crate::replication::effect::Effects;
use crate::script::Scripts;
use crate::script::library::{Change, Libraries, Policy};
use crate::script::vm::register;
use crate::store::reserved::FUNCTIONS;
use crate::store::{Keyspace, Source};

/// A partition that keeps the libraries, on a node that knows them.
struct Room {
    keyspace: Keyspace,
    scripts: Arc<Scripts>,
    version: ProtocolVersion,
    effects: usize,
    random: Random,
}

fn with_args<R>(words: &[&[u8]], run: impl FnOnce(Args<'_>) -> R) -> R {
    let (mut buffer, mut ranges) = (Vec::new(), Vec::new());
    for word in words {
        ranges.push(buffer.len()..buffer.len() + word.len());
        buffer.extend_from_slice(word);
    }
    run(Args::new(&buffer, &ranges))
}

impl Room {
    fn new() -> Self {
        Self {
            keyspace: Keyspace::new(7),
            scripts: Arc::default(),
            version: ProtocolVersion::Resp2,
            effects: 0,
            random: Random::seed_from_u64(1),
        }
    }

    fn run(&mut self, words: &[&[u8]], command: impl FnOnce(&mut Call<'_>)) -> Vec<u8> {
        let (mut out, mut effects) = (Rope::new(), Effects::new(true));
        let names = Names::new(&self.keyspace.databases.clone(), 0, false);
        with_args(words, |args| {
            command(&mut Call {
                args,
                names: &names,
                keyspace: &mut self.keyspace,
                now_ms: 1_700_000_000_000,
                random: &mut self.random,
                effects: &mut effects,
                looks: &mut Looks::default(),
                source: &Source::none(),
                scripts: &self.scripts,
                reply: ReplyWriter::holding(&mut out, self.version),
            });
        });
        self.effects = effects.count();
        out.into_bytes().to_vec()
    }

    fn change(&mut self, what: &Change) -> String {
        let encoded = what.encode();
        let answer = self.run(&[b"KORUM", b"CHANGE-LIBRARIES", b"1", &encoded], change);
        let version = self.scripts.functions.latest().version.to_string();
        let asked = self.scripts.functions.ask(Tick(1), Incarnation(1));
        let reply = self.run(&[b"KORUM", b"LIBRARIES", b"1", version.as_bytes(), b"0"], libraries);
        let body = reply.iter().position(|&byte| byte == b'\n').map(|at| &reply[at + 1..]).unwrap();
        let known = body.strip_suffix(b"\r\n").and_then(Libraries::decode);
        self.scripts.functions.answer(asked, known);
        text(&answer)
    }

    fn load(&mut self, code: &str) -> String {
        match register(code.as_bytes(), &self.scripts) {
            Ok(library) => self.change(&Change::Load { library, replaces: true }),
            Err(text) => text,
        }
    }

    /// `FCALL line`
    fn fcall(&mut self, line: &str) -> String {
        let words: Vec<&[u8]> = std::iter::once("FCALL").chain(line.split(' ')).map(str::as_bytes).collect();
        text(&self.run(&words, |call| nested(call, false)))
    }

    fn fcall_ro(&mut self, line: &str) -> String {
        let words: Vec<&[u8]> =
            std::iter::once("FCALL_RO").chain(line.split(' ')).map(str::as_bytes).collect();
        text(&self.run(&words, |call| nested(call, true)))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace("\r\n", "|")
}

const LIBRARY: &str = "#!lua name=lib
local n = 0
local function w(keys, args) return redis.call('set', keys[1], args[1] or 'v') end
redis.register_function('w', w)
redis.register_function{function_name='r', callback=function(k) return redis.call('get', k[1]) end, flags={'no-writes','allow-oom'}, description='reads'}
redis.register_function{function_name='rw', callback=w, flags={'no-writes'}}
redis.register_function('n', function() n = n + 1 return n end)
redis.register_function('args', function(...) return {select('#', ...), type(KEYS)} end)
redis.register_function('both', function(k, a) return {#k, #a, k, a} end)
redis.register_function('e1', function() error('boom') end)
redis.register_function('e2', function() error({err='CODE x'}) end)
redis.register_function('e3', function() return redis.call('incr') end)
redis.register_function('e5', function() foo = 1 end)
redis.register_function('e6', function() return foo end)
redis.register_function('e7', function() return redis.error_reply('X y') end)
redis.register_function('e8', function() return redis.register_function('a', function() end) end)
redis.register_function('six', function() return {type(cjson), type(string), type(redis.sha1hex), type(_G), tostring(redis.breakpoint), type(redis.call)} end)
redis.register_function('loaded', function() return loadstring('return type(redis)')() end)
redis.register_function('hidden', function() return loadstring('return KEYS')() end)
redis.register_function('endless', function(k) redis.call('set', k[1], 'there') while true do end end)
redis.register_function('map', function() redis.setresp(3) return {map={a=1}} end)
redis.register_function('nested', function() return redis.call('fcall', 'n', 0) end)
";

#[test]
fn functions_run_as_in_redis() {
    let mut room = Room::new();
    assert_eq!(room.load(LIBRARY), ":0|");
    assert_eq!(room.effects, 0, "the last look changes nothing");
    for (line, answer) in [
        ("w 1 {k} v1", "+OK|"),
        ("r 1 {k}", "$2|v1|"),
        ("W 1 {k} v2", "+OK|"),
        ("R 1 {k}", "$2|v2|"),
        (
            "rw 1 {k}",
            "-ERR Write commands are not allowed from read-only scripts. script: rw, on @user_function:3.|",
        ),
        ("n 0", ":1|"),
        ("n 1 {k}", ":2|"),
        (
            "args 0",
            "-ERR user_function:8: Script attempted to access nonexistent global variable 'KEYS' script: args, on @user_function:8.|",
        ),
        ("both 1 a b c", "*4|:1|:2|*1|$1|a|*2|$1|b|$1|c|"),
        ("both 0", "*4|:0|:0|*0|*0|"),
        ("e1 0", "-ERR user_function:10: boom script: e1, on @user_function:10.|"),
        ("e2 0", "-CODE x script: e2, on @user_function:11.|"),
        (
            "e3 0",
            "-ERR Wrong number of args calling Redis command from script script: e3, on @user_function:12.|",
        ),
        (
            "e5 0",
            "-ERR user_function:13: Attempt to modify a readonly table script: e5, on @user_function:13.|",
        ),
        (
            "e6 0",
            "-ERR user_function:14: Script attempted to access nonexistent global variable 'foo' script: e6, on @user_function:14.|",
        ),
        ("e7 0", "-X y|"),
        (
            "e8 0",
            "-ERR user_function:16: attempt to call field 'register_function' (a nil value) script: e8, on @user_function:16.|",
        ),
        ("six 0", "*6|$5|table|$5|table|$8|function|$5|table|$3|nil|$8|function|"),
        ("loaded 0", "$5|table|"),
        ("map 0", "*2|$1|a|:1|"),
        (
            "nested 0",
            "-ERR This Redis command is not allowed from script script: nested, on @user_function:22.|",
        ),
        ("nosuch 0", "-ERR Function not found|"),
        ("nosuch x", "-ERR Function not found|"),
        ("n x", "-ERR Bad number of keys provided|"),
        ("n -1", "-ERR Number of keys can't be negative|"),
        ("n 5 a", "-ERR Number of keys can't be greater than number of args|"),
    ] {
        assert_eq!(room.fcall(line), answer, "{line}");
    }
    assert!(room.fcall("hidden 0").contains("nonexistent global variable 'KEYS'"));
    assert_eq!(room.load(LIBRARY), ":0|");
    assert_eq!(room.fcall("n 0"), ":1|", "what is loaded again begins anew");
    assert_eq!(room.fcall_ro("r 1 {k}"), "$2|v2|");
    assert_eq!(
        room.fcall_ro("w 1 {k}"),
        "-ERR Can not execute a script with write flag using *_ro command.|"
    );
    assert_eq!(room.fcall_ro("nosuch 0"), "-ERR Function not found|");
    let internal: &[&[u8]] = &[b"KORUM", b"FCALL", b"1", b"both", b"1", b"a", b"b"];
    assert_eq!(text(&room.run(internal, fcall)), "*4|:1|:1|*1|$1|a|*1|$1|b|");
    assert_eq!(text(&room.run(&[b"KORUM", b"FCALL-RO", b"x", b"n", b"0"], fcall_ro)), "-ERR syntax error|");
    with_args(&[b"fcall", b"f", b"1", b"k", b"a"], |args| {
        assert_eq!(
            call_request(7, &args, true),
            "*7\r\n$5\r\nKORUM\r\n$8\r\nFCALL-RO\r\n$1\r\n7\r\n$1\r\nf\r\n$1\r\n1\r\n$1\r\nk\r\n$1\r\na\r\n"
        );
    });
}

#[test]
fn functions_have_the_limits_of_scripts() {
    let mut room = Room::new();
    room.load(LIBRARY);
    room.scripts.set_time_limit(60);
    let began = Instant::now();
    assert!(room.fcall("endless 1 {k}").starts_with("-ERR Script killed: it ran for more than 60 ms"));
    assert!(began.elapsed() < Duration::from_secs(5));
    assert_eq!((room.effects, room.fcall("r 1 {k}")), (1, "$5|there|".to_owned()));
    assert_eq!(room.fcall("n 0"), ":1|", "a new interpreter");
}

#[test]
fn what_a_library_registers_is_judged_as_in_redis() {
    let mut room = Room::new();
    let register_only = "Error registering functions: ERR";
    for (code, outcome) in [
        ("", "ERR No functions registered".to_owned()),
        ("return 1", "ERR No functions registered".to_owned()),
        ("bad bad", "ERR Error compiling function: user_function:2: '=' expected near 'bad'".to_owned()),
        ("foo = 1", format!("ERR {register_only} user_function:2: Attempt to modify a readonly table")),
        ("redis.x = 1", format!("ERR {register_only} user_function:2: Attempt to modify a readonly table")),
        (
            "local x = string",
            format!(
                "ERR {register_only} user_function:2: Script attempted to access nonexistent global variable 'string'"
            ),
        ),
        (
            "redis.call('get', 'x')",
            format!(
                "ERR {register_only} user_function:2: Script attempted to access nonexistent global variable 'call'"
            ),
        ),
        (
            "redis.register_function()",
            format!("ERR {register_only} wrong number of arguments to redis.register_function"),
        ),
        (
            "redis.register_function('g')",
            format!(
                "ERR {register_only} calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments)."
            ),
        ),
        (
            "redis.register_function('g', 1)",
            format!("ERR {register_only} second argument to redis.register_function must be a function"),
        ),
        (
            "redis.register_function('g-1', function() end)",
            format!(
                "ERR {register_only} Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"
            ),
        ),
        (
            "redis.register_function('g', function() end, {})",
            format!("ERR {register_only} wrong number of arguments to redis.register_function"),
        ),
        (
            "redis.register_function{}",
            format!("ERR {register_only} redis.register_function must get a function name argument"),
        ),
        (
            "redis.register_function{function_name='g'}",
            format!("ERR {register_only} redis.register_function must get a callback argument"),
        ),
        (
            "redis.register_function{function_name='g', callback=1}",
            format!(
                "ERR {register_only} callback argument given to redis.register_function must be a function"
            ),
        ),
        (
            "redis.register_function{function_name='g', callback=function() end, flags=1}",
            format!(
                "ERR {register_only} flags argument to redis.register_function must be a table representing function flags"
            ),
        ),
        (
            "redis.register_function{function_name='g', callback=function() end, flags={'x'}}",
            format!("ERR {register_only} unknown flag given"),
        ),
        (
            "redis.register_function{function_name='g', callback=function() end, foo=1}",
            format!("ERR {register_only} unknown argument given to redis.register_function"),
        ),
        (
            "redis.register_function('g', function() end) redis.register_function('g', function() end)",
            format!("ERR {register_only} Function already exists in the library"),
        ),
        ("while true do end", format!("ERR {register_only} FUNCTION LOAD timeout")),
        ("redis.register_function(1, function() return 7 end)", ":0|".to_owned()),
        (
            "redis.log(redis.LOG_WARNING, 'x') redis.register_function{FUNCTION_NAME='g', Callback=function() end, FLAGS={'NO-WRITES', 'no-writes'}, description=1}",
            ":0|".to_owned(),
        ),
    ] {
        assert_eq!(room.load(&format!("#!lua name=b\n{code}")), outcome, "{code}");
    }
    assert!(
        room.load(&format!("#!lua name=b\n{}", " ".repeat(1 << 20)))
            .starts_with("ERR the libraries are too long")
    );
    assert_eq!(room.load("#!lua name=c\nlocal r = redis.register_function r('h', function() local x = r('i', function() end) return x end)"), ":0|");
    assert_eq!(
        room.fcall("h 0"),
        "-ERR redis.register_function can only be called on FUNCTION LOAD command script: h, on @user_function:2.|"
    );
}

#[test]
fn libraries_are_listed_counted_and_dumped() {
    let mut room = Room::new();
    room.load("#!lua name=one\nredis.register_function{function_name='f', callback=function() end, flags={'allow-oom','no-writes'}, description='d'}");
    room.load("#!lua name=two\nredis.register_function('g', function() end)");
    let show = |words: &[&[u8]], version, room: &Room| {
        let mut out = Rope::new();
        with_args(words, |args| {
            list(&args, &room.scripts.functions.latest(), &mut ReplyWriter::holding(&mut out, version));
        });
        text(&out.into_bytes())
    };
    let two = "*6|$12|library_name|$3|two|$6|engine|$3|LUA|$9|functions|*1|*6|$4|name|$1|g|$11|description|$-1|$5|flags|*0|";
    let one = "%3|$12|library_name|$3|one|$6|engine|$3|LUA|$9|functions|*1|%3|$4|name|$1|f|$11|description|$1|d|$5|flags|~2|+no-writes|+allow-oom|";
    let resp2 = ProtocolVersion::Resp2;
    assert_eq!(show(&[b"function", b"list", b"LibraryName", b"TW*"], resp2, &room), format!("*1|{two}"));
    assert_eq!(
        show(&[b"function", b"list", b"libraryname", b"one"], ProtocolVersion::Resp3, &room),
        format!("*1|{one}")
    );
    assert!(show(&[b"function", b"list", b"withcode"], resp2, &room).contains("$12|library_code|"));
    for (words, answer) in [
        (&[&b"libraryname"[..]][..], "-ERR library name argument was not given|"),
        (&[b"foo"], "-ERR Unknown argument foo|"),
        (&[b"withcode", b"withcode"], "-ERR Unknown argument withcode|"),
        (&[b"libraryname", b"x"], "*0|"),
    ] {
        let words: Vec<&[u8]> =
            [&b"function"[..], b"list"].into_iter().chain(words.iter().copied()).collect();
        assert_eq!(show(&words, resp2, &room), answer);
    }
    let mut out = Rope::new();
    stats(
        &room.scripts.functions.latest(),
        &room.scripts,
        Tick(1),
        &mut ReplyWriter::holding(&mut out, resp2),
    );
    assert_eq!(
        text(&out.into_bytes()),
        "*4|$14|running_script|$-1|$7|engines|*2|$3|LUA|*4|$15|libraries_count|:2|$15|functions_count|:2|"
    );
    let mut out = Rope::new();
    dump(&room.scripts.functions.latest(), &mut ReplyWriter::holding(&mut out, resp2));
    assert!(out.into_bytes().starts_with(b"$"));
}

#[test]
fn the_keeper_tells_versions_and_refuses_who_is_ahead_of_its_map() {
    let mut room = Room::new();
    let ask = |room: &mut Room, version: &[u8], epoch: &[u8]| {
        text(&room.run(&[b"KORUM", b"LIBRARIES", b"1", version, epoch], libraries))
    };
    assert_eq!(ask(&mut room, b"0", b"0"), "$-1|", "nothing, and that is known");
    assert!(ask(&mut room, b"9", b"0").starts_with('$'), "what was lost is told");
    assert!(ask(&mut room, b"0", b"5").starts_with("-TRYAGAIN"));
    room.scripts.functions.adopt(Epoch(5));
    assert_eq!(ask(&mut room, b"0", b"5"), "$-1|");
    assert_eq!(room.load("#!lua name=a\nredis.register_function('f', function() return 1 end)"), ":5|");
    let version = room.scripts.functions.latest().version.to_string();
    assert_eq!(ask(&mut room, version.as_bytes(), b"5"), "$-1|");
    assert_eq!(room.fcall("f 0"), ":1|");
    assert_eq!(room.load("#!lua name=a\nredis.register_function('f', function() return 2 end)"), ":5|");
    assert_eq!(room.fcall("f 0"), ":2|");
    assert_eq!(room.change(&Change::Delete(Bytes::from_static(b"b"))), "-ERR Library not found|");
    assert_eq!(room.change(&Change::Restore { libraries: Vec::new(), policy: Policy::Flush }), ":5|");
    assert!(room.keyspace.is_empty());
}

#[test]
fn functions_stay_when_keys_go_and_are_no_keys() {
    let mut room = Room::new();
    room.load("#!lua name=a\nredis.register_function('f', function() return 1 end)");
    assert!(room.keyspace.contains(FUNCTIONS));
    let part = |room: &mut Room, words: &[&[u8]]| {
        let words: Vec<&[u8]> =
            [&b"KORUM"[..], b"PART", b"0"].into_iter().chain(words.iter().copied()).collect();
        text(&room.run(&words, partition::part))
    };
    assert_eq!(part(&mut room, &[b"COUNT"]), ":0|");
    assert_eq!(part(&mut room, &[b"RANDOM"]), "$-1|");
    assert_eq!(part(&mut room, &[b"KEYS", b"*"]), "*0|");
    assert!(part(&mut room, &[b"SCAN", b"0", b"10"]).ends_with("*0|"));
    let cleared = room.run(&[b"KORUM", b"CLEAR", b"0"], partition::clear);
    assert_eq!((text(&cleared), room.effects), ("+OK|".to_owned(), 2));
    assert!(room.keyspace.contains(FUNCTIONS));
    room.keyspace.check();
}
