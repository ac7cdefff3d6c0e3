//! One Lua interpreter for each thread, and one script at a time in it.
//!
//! For: compiling scripts once, running them with limits, and the text of what stopped one.
//! Not here: what scripts see (`prelude`, `host`).
//!
//! **A script that is stopped keeps what it has written**, as one that ends with an error does: all of it is one set of
//! effects, which is replicated as a whole.
//! Time is looked at after every so many instructions. An error that the script catches does not save it: from then on
//! the next instruction fails too, whatever it is.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use korum_protocol::resp::Args;
use mlua::chunk::ChunkMode;
use mlua::{
    Function, HookTriggers, Lua, LuaOptions, LuaString, MultiValue, StdLib, Table, Value, Variadic, VmState,
};

use super::cache::{Digest, Scripts, hex};
use super::host::{self, Commands};
use super::{bits, convert, json, msgpack, pack, raise};
use crate::command::Call;
use crate::command::connection::REDIS_VERSION;
use crate::env::{Clock, Tick};

/// Memory of an interpreter, bytes.
const MEMORY_MAX: usize = 128 << 20;
/// An interpreter that holds more than this after a script is given up: the next one begins small.
const MEMORY_KEPT: usize = 32 << 20;
/// Instructions between two looks at the clock: some hundred microseconds.
const INSTRUCTIONS: u32 = 10_000;
/// Scripts that a thread keeps compiled.
const COMPILED_MAX: usize = 1024;
/// How scripts are called in errors.
const CHUNK_NAME: &str = "@user_script";
const PRELUDE: &str = include_str!("prelude.lua");

/// A script and its arguments.
pub struct Script<'s> {
    /// Of the source.
    pub digest: Digest,
    /// The whole source.
    pub source: &'s [u8],
    /// `KEYS`.
    pub keys: Args<'s>,
    /// `ARGV`.
    pub arguments: Args<'s>,
    /// The slot of the keys; `None` without keys.
    pub slot: Option<u16>,
    /// It may not write.
    pub reads_only: bool,
}

thread_local! {
    static VM: RefCell<Option<Vm>> = const { RefCell::new(None) };
}

struct Vm {
    lua: Lua,
    /// Runs a function: whether it came to its end, and what it gave.
    run: Function,
    /// The globals.
    base: Table,
    /// What stands behind `redis`.
    redis: Table,
    compiled: HashMap<Digest, Function>,
    watch: Rc<Watch>,
}

/// What a running script is told and asked.
#[derive(Default)]
struct Watch {
    until: Cell<Tick>,
    limit_ms: Cell<u128>,
    /// The node's scripts, and how often `SCRIPT KILL` was said when this one began.
    scripts: RefCell<Option<(Arc<Scripts>, u64)>>,
    stopped: RefCell<Option<String>>,
    is_resp3: Cell<bool>,
    random: Cell<u64>,
}

/// Runs a script; its value, or what stopped it, is the call's reply.
pub fn run(call: &mut Call<'_>, script: &Script<'_>) {
    let header = match Header::read(script.source) {
        Ok(header) => header,
        Err(text) => return call.reply.error(&text),
    };
    let outcome = VM.with_borrow_mut(|place| {
        let vm = ready(place)?;
        let function = vm.compile(script.digest, header.body)?;
        call.scripts.keep(script.digest, script.source);
        let outcome = vm.run(call, script, function, header.reads_only || script.reads_only);
        let stopped = vm.watch.stopped.take();
        let is_worn = stopped.is_some() || vm.lua.used_memory() > MEMORY_KEPT;
        let outcome = match (stopped, outcome) {
            (Some(text), _) | (None, Err(text)) => Err(text),
            // Before the interpreter, which holds the value, is given up.
            (None, Ok((value, is_resp3))) => {
                convert::reply(&value, is_resp3, &mut call.reply);
                Ok(())
            }
        };
        if is_worn {
            *place = None;
        }
        outcome
    });
    if let Err(text) = outcome {
        call.reply.error(&text);
    }
}

/// Whether a script can be compiled.
///
/// # Errors
/// With the text of the error reply.
pub fn check(digest: Digest, source: &[u8]) -> Result<(), String> {
    let header = Header::read(source)?;
    VM.with_borrow_mut(|place| ready(place)?.compile(digest, header.body).map(drop))
}

fn ready(place: &mut Option<Vm>) -> Result<&mut Vm, String> {
    match place {
        Some(vm) => Ok(vm),
        None => match Vm::new() {
            Ok(vm) => Ok(place.insert(vm)),
            Err(error) => Err(format!("ERR the interpreter does not start: {error}")),
        },
    }
}

impl Vm {
    fn new() -> mlua::Result<Self> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::OS;
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        let watch = Rc::new(Watch::default());
        let (run, base, redis) =
            lua.load(PRELUDE)
                .set_name("@prelude")
                .set_mode(ChunkMode::Text)
                .call::<(Function, Table, Table)>(host_functions(&lua, &watch)?)?;
        lua.set_memory_limit(MEMORY_MAX)?;
        let looking = Rc::clone(&watch);
        lua.set_global_hook(HookTriggers::new().every_nth_instruction(INSTRUCTIONS), move |lua, _| {
            looking.look(lua)
        })?;
        Ok(Self { lua, run, base, redis, compiled: HashMap::new(), watch })
    }

    fn compile(&mut self, digest: Digest, body: &[u8]) -> Result<Function, String> {
        if let Some(function) = self.compiled.get(&digest) {
            return Ok(function.clone());
        }
        let chunk = self.lua.load(body).set_name(CHUNK_NAME).set_mode(ChunkMode::Text);
        let function = chunk.into_function().map_err(|error| match error {
            mlua::Error::SyntaxError { message, .. } => {
                format!("ERR Error compiling script (new function): {message}")
            }
            other => format!("ERR Error compiling script (new function): {other}"),
        })?;
        if self.compiled.len() >= COMPILED_MAX {
            self.compiled.clear();
        }
        self.compiled.insert(digest, function.clone());
        Ok(function)
    }

    fn run(
        &self,
        call: &mut Call<'_>,
        script: &Script<'_>,
        function: Function,
        reads_only: bool,
    ) -> Result<(Value, bool), String> {
        let scripts = Arc::clone(call.scripts);
        let _running = scripts.begin();
        let limit = scripts.time_limit();
        self.watch.until.set(Clock::system().now() + limit);
        self.watch.limit_ms.set(limit.as_millis());
        self.watch.scripts.replace(Some((Arc::clone(&scripts), scripts.kills())));
        self.watch.is_resp3.set(false);
        self.watch.random.set(seed(0));
        let outcome = self.call(call, script, function, reads_only);
        match outcome {
            Ok((true, value)) => Ok((value, self.watch.is_resp3.get())),
            Ok((false, problem)) => Err(self.problem(&problem, script)),
            Err(error) => Err(format!("ERR {}", raise::read(&error).0)),
        }
    }

    fn call(
        &self,
        call: &mut Call<'_>,
        script: &Script<'_>,
        function: Function,
        reads_only: bool,
    ) -> mlua::Result<(bool, Value)> {
        self.base.raw_set("KEYS", self.table(&script.keys)?)?;
        self.base.raw_set("ARGV", self.table(&script.arguments)?)?;
        let commands = RefCell::new(Commands::new(call, script.slot, reads_only));
        let watch = &self.watch;
        let invoke = |lua: &Lua, words: &MultiValue| {
            let mut commands = commands.try_borrow_mut().map_err(|_| mlua::Error::RecursiveMutCallback)?;
            commands.invoke(lua, words, watch.is_resp3.get())
        };
        self.lua.scope(|scope| {
            let call = |lua: &Lua, words: MultiValue| invoke(lua, &words)?.map_err(raise::reply);
            self.redis.raw_set("call", scope.create_function(call)?)?;
            let pcall = |lua: &Lua, words: MultiValue| match invoke(lua, &words)? {
                Ok(value) => Ok(value),
                Err(text) => convert::error(lua, &text),
            };
            self.redis.raw_set("pcall", scope.create_function(pcall)?)?;
            self.run.call(function)
        })
    }

    fn table(&self, words: &Args<'_>) -> mlua::Result<Table> {
        let table = self.lua.create_table_with_capacity(words.len(), 0)?;
        for (at, word) in words.iter().enumerate() {
            table.raw_set(at + 1, self.lua.create_string(word)?)?;
        }
        Ok(table)
    }

    /// The text for what stopped a script, with the place in it.
    fn problem(&self, problem: &Value, script: &Script<'_>) -> String {
        let (text, line) = match problem {
            Value::Table(table) => {
                let text = table.raw_get::<Option<LuaString>>("err").ok().flatten();
                let text = text.map_or_else(|| "ERR unknown error".to_owned(), |text| text.to_string_lossy());
                (text, table.raw_get::<Option<usize>>("line").ok().flatten())
            }
            Value::String(text) => (format!("ERR {}", text.to_string_lossy()), None),
            other => (format!("ERR {}", other.type_name()), None),
        };
        match line {
            Some(line) => format!("{text} script: {}, on {CHUNK_NAME}:{line}.", hex(&script.digest)),
            None => format!("{text} script: {}", hex(&script.digest)),
        }
    }
}

impl Watch {
    fn look(&self, lua: &Lua) -> mlua::Result<VmState> {
        let is_killed =
            self.scripts.borrow().as_ref().is_some_and(|(scripts, kills)| scripts.kills() != *kills);
        let text = if is_killed {
            "ERR Script killed by user with SCRIPT KILL.".to_owned()
        } else if Clock::system().now() > self.until.get() {
            format!(
                "ERR Script killed: it ran for more than {} ms (lua-time-limit). What it had written stays.",
                self.limit_ms.get()
            )
        } else {
            return Ok(VmState::Continue);
        };
        self.stopped.replace(Some(text));
        let stop = || mlua::Error::RuntimeError("the script was stopped".to_owned());
        lua.set_global_hook(HookTriggers::new().every_nth_instruction(1), move |_, _| Err(stop()))?;
        Err(stop())
    }

    /// A number in `0..=1`, from the generator that Redis gives to scripts.
    fn random(&self) -> f64 {
        let next = self.random.get().wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & 0xFFFF_FFFF_FFFF;
        self.random.set(next);
        const MOST: u64 = i32::MAX as u64;
        ((next >> 17) % MOST) as f64 / MOST as f64
    }
}

/// The state of the generator after `math.randomseed(number)`.
fn seed(number: i64) -> u64 {
    (number.cast_unsigned() & 0xFFFF_FFFF) << 16 | 0x330E
}

/// What a script's first line says, if it begins with `#!`.
struct Header<'s> {
    reads_only: bool,
    /// The source without that line, but with its end, so that lines keep their numbers.
    body: &'s [u8],
}

impl<'s> Header<'s> {
    fn read(source: &'s [u8]) -> Result<Self, String> {
        if !source.starts_with(b"#!") {
            return Ok(Self { reads_only: false, body: source });
        }
        let Some(end) = memchr::memchr(b'\n', source) else {
            return Err("ERR Invalid script shebang".to_owned());
        };
        let line = String::from_utf8_lossy(&source[..end]);
        let mut words = line.split_whitespace();
        let engine = words.next().unwrap_or_default();
        if engine != "#!lua" {
            return Err(format!("ERR Unexpected engine in script shebang: {engine}"));
        }
        let mut reads_only = false;
        for word in words {
            let Some(flags) = word.strip_prefix("flags=") else {
                return Err(format!("ERR Unknown lua shebang option: {word}"));
            };
            for flag in flags.split(',').filter(|flag| !flag.is_empty()) {
                match flag {
                    "no-writes" => reads_only = true,
                    "allow-oom" | "allow-stale" | "no-cluster" | "allow-cross-slot-keys" => {}
                    _ => return Err(format!("ERR Unexpected flag in script shebang: {flag}")),
                }
            }
        }
        Ok(Self { reads_only, body: &source[end..] })
    }
}

/// The table that the prelude is given.
fn host_functions(lua: &Lua, watch: &Rc<Watch>) -> mlua::Result<Table> {
    let host = lua.create_table()?;
    host.raw_set("version", REDIS_VERSION)?;
    let numbers = REDIS_VERSION.split('.').filter_map(|part| part.parse::<i64>().ok());
    host.raw_set("version_number", numbers.fold(0, |number, part| number << 8 | part))?;
    host.raw_set("null", Value::NULL)?;
    let told = Rc::clone(watch);
    let setresp = move |_: &Lua, words: MultiValue| {
        let version = match words.front() {
            _ if words.len() != 1 => return Err(raise::plain("redis.setresp() requires one argument.")),
            Some(Value::Integer(version @ 2..=3)) => *version,
            _ => return Err(raise::plain("RESP version must be 2 or 3.")),
        };
        told.is_resp3.set(version == 3);
        Ok(())
    };
    host.raw_set("setresp", lua.create_function(setresp)?)?;
    let error_text = |lua: &Lua, text: LuaString| lua.create_string(host::error_text(&text.as_bytes()));
    host.raw_set("error_text", lua.create_function(error_text)?)?;
    let sha1hex = |_: &Lua, words: Variadic<LuaString>| match &words[..] {
        [text] => Ok(hex(&super::digest(&text.as_bytes()))),
        _ => Err(raise::plain("wrong number of arguments")),
    };
    host.raw_set("sha1hex", lua.create_function(sha1hex)?)?;
    host.raw_set("log", lua.create_function(|_, words: MultiValue| log(&words))?)?;
    let raised = |_: &Lua, problem: Value| {
        Ok(match problem {
            Value::Error(error) => {
                let (text, is_reply) = raise::read(&error);
                (Some(text), is_reply)
            }
            _ => (None, false),
        })
    };
    host.raw_set("raised", lua.create_function(raised)?)?;
    host.raw_set("line", lua.create_function(|lua, ()| Ok(line(lua)))?)?;
    let drawn = Rc::clone(watch);
    let draw = move |lua: &Lua, bounds: MultiValue| {
        random(&drawn, &bounds).map_err(|problem| raise::at(lua, problem))
    };
    host.raw_set("random", lua.create_function(draw)?)?;
    let seeded = Rc::clone(watch);
    host.raw_set(
        "randomseed",
        lua.create_function(move |_, number: f64| {
            seeded.random.set(seed(number as i64));
            Ok(())
        })?,
    )?;
    host.raw_set("cjson", json::functions(lua)?)?;
    host.raw_set("cmsgpack", msgpack::functions(lua)?)?;
    host.raw_set("struct", pack::functions(lua)?)?;
    host.raw_set("bit", bits::functions(lua)?)?;
    Ok(host)
}

/// `redis.log(level, word, …)`
fn log(words: &MultiValue) -> mlua::Result<()> {
    if words.len() < 2 {
        return Err(raise::plain("redis.log() requires two arguments or more."));
    }
    let Some(Value::Integer(level)) = words.front() else {
        return Err(raise::plain("First argument must be a number (log level)."));
    };
    let told: Vec<String> = words.iter().skip(1).map(|word| word.to_string().unwrap_or_default()).collect();
    let text = told.join(" ");
    match level {
        0 | 1 => tracing::debug!(%text, "a script says"),
        2 => tracing::info!(%text, "a script says"),
        3 => tracing::warn!(%text, "a script says"),
        _ => return Err(raise::plain("Invalid log level.")),
    }
    Ok(())
}

/// The line at which the script stands, in its innermost function.
fn line(lua: &Lua) -> Option<usize> {
    for level in 1.. {
        let found = lua.inspect_stack(level, |frame| {
            let is_script = frame.source().source.is_some_and(|source| source == CHUNK_NAME);
            frame.current_line().filter(|_| is_script)
        });
        if let Some(line) = found? {
            return Some(line);
        }
    }
    None
}

/// `math.random`.
fn random(watch: &Watch, bounds: &MultiValue) -> Result<f64, &'static str> {
    let number = |at: usize| match bounds.get(at) {
        Some(Value::Integer(number)) => Some(*number as f64),
        Some(Value::Number(number)) => Some(*number),
        _ => None,
    };
    let drawn = watch.random();
    let (low, high) = match bounds.len() {
        0 => return Ok(drawn),
        1 => (Some(1.0), number(0)),
        2 => (number(0), number(1)),
        _ => return Err("wrong number of arguments"),
    };
    match (low, high) {
        (Some(low), Some(high)) if low <= high => Ok((drawn * (high - low + 1.0)).floor() + low),
        (Some(_), Some(_)) => Err("bad argument #1 to 'random' (interval is empty)"),
        _ => Err("bad argument #1 to 'random' (number expected)"),
    }
}

#[cfg(test)]
#[path = "vm_tests.rs"]
mod tests;
