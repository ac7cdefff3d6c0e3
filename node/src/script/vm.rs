//! One Lua interpreter for each thread, and one script or function at a time in it.
//!
//! For: compiling scripts and libraries once, running them with limits, and the text of what stopped one.
//! Not here: what scripts see (`prelude`, `host`, `text`), which functions there are (`functions`).
//!
//! **A script that is stopped keeps what it has written**, as one that ends with an error does: all of it is one set of
//! effects, which is replicated as a whole.
//! Time is looked at after every so many instructions, fewer when there are large values, of which one instruction may
//! compare or copy tens of MB. An error that the script catches does not save it: from then on the next instruction fails
//! too, whatever it is. Functions of the host that may take long look at the clock themselves ([`Watch::look`]).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use korum_protocol::resp::Args;
use mlua::chunk::ChunkMode;
use mlua::{Function, HookTriggers, Lua, LuaOptions, LuaString, MultiValue, StdLib, Table, Value, VmState};

use super::cache::{Digest, Kind, Scripts, hex};
use super::format::general;
use super::functions::Kept;
use super::host::{self, Commands};
use super::library::{self, Function as FunctionOf, Library};
use super::text::Guard;
use super::{bits, convert, json, msgpack, pack, raise, text};
use crate::command::Call;
use crate::command::connection::REDIS_VERSION;
use crate::env::{Clock, Tick};

/// Memory of an interpreter, bytes; and of what a function of the host makes.
pub const MEMORY_MAX: usize = 128 << 20;
/// An interpreter that holds more than this after a script is given up: the next one begins small.
const MEMORY_KEPT: usize = 32 << 20;
/// Instructions between two looks at the clock, by the memory that is used: some microseconds each time. What one
/// instruction can do to a value takes at most about 20 ms, since that is all that memory allows.
const INSTRUCTIONS: [(usize, u32); 3] = [(4 << 20, 1000), (32 << 20, 200), (usize::MAX, 40)];
/// Scripts that a thread keeps compiled.
const COMPILED_MAX: usize = 1024;
/// Libraries that it does, older versions of them included.
const LIBRARIES_MAX: usize = 256;
/// How long the code of a library may run that registers its functions.
const LOAD_LIMIT: Duration = Duration::from_millis(500);
/// How scripts are called in errors.
const CHUNK_NAME: &str = "@user_script";
/// How functions are.
const FUNCTION_CHUNK_NAME: &str = "@user_function";
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

/// A call of a function.
pub struct FunctionCall<'s> {
    /// Its library.
    pub kept: &'s Kept,
    /// The function.
    pub function: &'s FunctionOf,
    /// The command that calls it.
    pub command: &'s [u8],
    /// Its arguments.
    pub words: Args<'s>,
    /// Its first argument.
    pub keys: Args<'s>,
    /// Its second argument.
    pub arguments: Args<'s>,
    /// The slot of the keys; `None` without keys.
    pub slot: Option<u16>,
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
    functions: Room,
    watch: Rc<Watch>,
}

/// Where functions run.
struct Room {
    /// Their globals.
    globals: Table,
    /// What stands behind their `redis`.
    redis: Table,
    /// Runs the code of a library: whether it came to its end, and what it has registered.
    load: Function,
    /// Calls a function: whether it came to its end, and what it gave.
    call: Function,
    /// The functions of libraries by name, in a table each, by the digests of their code and when they were loaded.
    compiled: HashMap<(Digest, u64), Table>,
}

/// What a library has registered.
struct Registered {
    functions: Vec<FunctionOf>,
    /// By name. One value of Lua that is held from outside, whatever the number: there can be some thousand of those.
    callbacks: Table,
}

/// What runs.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Running {
    #[default]
    Script,
    Function,
    /// The code of a library, which registers its functions.
    Load,
}

/// What a running script is told and asked.
#[derive(Default)]
pub struct Watch {
    running: Cell<Running>,
    until: Cell<Tick>,
    limit_ms: Cell<u128>,
    /// Instructions between two looks at the clock.
    instructions: Cell<u32>,
    /// The node's scripts, and how often `SCRIPT KILL`, or `FUNCTION KILL`, was said when this one began.
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
    let outcome = with_vm(|vm| {
        let function = vm.compile(script.digest, header.body)?;
        call.scripts.keep(script.digest, script.source);
        let scripts = Arc::clone(call.scripts);
        let _running = scripts.begin(Kind::Script, None);
        vm.begin(&scripts, Running::Script, scripts.time_limit());
        let reads_only = header.reads_only || script.reads_only;
        let commands = Commands::new(call, script.slot, reads_only);
        let outcome = vm.run(commands, &vm.redis, || {
            vm.base.raw_set("KEYS", vm.table(&script.keys)?)?;
            vm.base.raw_set("ARGV", vm.table(&script.arguments)?)?;
            vm.run.call(function)
        });
        vm.reply(outcome, call, || hex(&script.digest), CHUNK_NAME)
    });
    if let Err(text) = outcome {
        call.reply.error(&text);
    }
}

/// Calls a function; its value, or what stopped it, is the call's reply.
pub fn call(call: &mut Call<'_>, which: &FunctionCall<'_>) {
    let name = || String::from_utf8_lossy(&which.function.name).into_owned();
    let outcome = with_vm(|vm| {
        let function = vm.function_of(which.kept, &which.function.name)?;
        let scripts = Arc::clone(call.scripts);
        let _running =
            scripts.begin(Kind::Function, Some((&which.function.name, which.command, which.words)));
        vm.begin(&scripts, Running::Function, scripts.time_limit());
        let commands = Commands::new(call, which.slot, which.function.reads_only());
        let outcome = vm.run(commands, &vm.functions.redis, || {
            let (keys, arguments) = (vm.table(&which.keys)?, vm.table(&which.arguments)?);
            vm.functions.call.call((function, keys, arguments))
        });
        vm.reply(outcome, call, name, FUNCTION_CHUNK_NAME)
    });
    if let Err(text) = outcome {
        call.reply.error(&text);
    }
}

/// Reads the code of a library and runs it, so that it registers its functions.
///
/// # Errors
/// With the text of the error reply.
pub fn register(code: &[u8], scripts: &Arc<Scripts>) -> Result<Library, String> {
    let (name, body) = library::read_header(code)?;
    if code.len() > library::CODE_BYTES_MAX {
        return Err(library::TOO_LONG.into());
    }
    let functions = with_vm(|vm| vm.load(body, scripts).map(|registered| registered.functions))?;
    if functions.is_empty() {
        return Err("ERR No functions registered".into());
    }
    Ok(Library { name, code: Bytes::copy_from_slice(code), functions, loaded: 0 })
}

/// Whether a script can be compiled.
///
/// # Errors
/// With the text of the error reply.
pub fn check(digest: Digest, source: &[u8]) -> Result<(), String> {
    let header = Header::read(source)?;
    with_vm(|vm| vm.compile(digest, header.body).map(drop))
}

/// Uses the interpreter of this thread, and gives it up if it was stopped, or has grown.
fn with_vm<R>(work: impl FnOnce(&mut Vm) -> Result<R, String>) -> Result<R, String> {
    VM.with_borrow_mut(|place| {
        let vm = ready(place)?;
        let outcome = work(vm);
        let stopped = vm.watch.stopped.take();
        if stopped.is_some() || vm.lua.used_memory() > MEMORY_KEPT {
            *place = None;
        }
        match stopped {
            Some(text) => Err(text),
            None => outcome,
        }
    })
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
        let (run, base, redis, room) = lua
            .load(PRELUDE)
            .set_name("@prelude")
            .set_mode(ChunkMode::Text)
            .call::<(Function, Table, Table, Table)>(host_functions(&lua, &watch)?)?;
        lua.set_memory_limit(MEMORY_MAX)?;
        let functions = Room {
            globals: room.raw_get("room")?,
            redis: room.raw_get("redis")?,
            load: room.raw_get("load")?,
            call: room.raw_get("call")?,
            compiled: HashMap::new(),
        };
        Ok(Self { lua, run, base, redis, compiled: HashMap::new(), functions, watch })
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

    /// Runs the code of a library: what it has registered.
    fn load(&self, body: &[u8], scripts: &Arc<Scripts>) -> Result<Registered, String> {
        let chunk = self.lua.load(body).set_name(FUNCTION_CHUNK_NAME).set_mode(ChunkMode::Text);
        let chunk = chunk.set_environment(self.functions.globals.clone());
        let chunk = chunk.into_function().map_err(|error| match error {
            mlua::Error::SyntaxError { message, .. } => format!("ERR Error compiling function: {message}"),
            other => format!("ERR Error compiling function: {other}"),
        })?;
        self.begin(scripts, Running::Load, LOAD_LIMIT);
        let outcome = self.functions.load.call::<(bool, Value)>(chunk);
        let text = match outcome {
            Ok((true, Value::Table(list))) => {
                return self.registered(&list).map_err(|error| format!("ERR {}", raise::read(&error).0));
            }
            Ok((_, problem)) => problem_text(&problem).0,
            Err(error) => format!("ERR {}", raise::read(&error).0),
        };
        Err(format!("ERR Error registering functions: {text}"))
    }

    /// A function, whose library is run first if it was not yet in this interpreter.
    fn function_of(&mut self, kept: &Kept, name: &[u8]) -> Result<Function, String> {
        let which = (kept.digest, kept.library.loaded);
        if !self.functions.compiled.contains_key(&which) {
            let (_, body) = library::read_header(&kept.library.code)?;
            let scripts = Arc::default();
            let functions = self.load(body, &scripts)?;
            if self.functions.compiled.len() >= LIBRARIES_MAX {
                self.functions.compiled.clear();
            }
            self.functions.compiled.insert(which, functions.callbacks);
        }
        let callbacks = self.functions.compiled.get(&which);
        let name = self.lua.create_string(name).map_err(|error| format!("ERR {error}"))?;
        let found = callbacks.and_then(|callbacks| callbacks.raw_get::<Function>(name).ok());
        found.ok_or_else(|| "ERR Function not found".to_owned())
    }

    /// Takes over what a library has registered.
    fn registered(&self, list: &Table) -> mlua::Result<Registered> {
        let (mut functions, callbacks) = (Vec::new(), self.lua.create_table()?);
        for entry in list.sequence_values::<Table>() {
            let entry = entry?;
            let text = |name: &str| entry.raw_get::<Option<LuaString>>(name);
            let bytes = |text: LuaString| Bytes::copy_from_slice(&text.as_bytes());
            callbacks.raw_set(entry.raw_get::<Value>("name")?, entry.raw_get::<Value>("callback")?)?;
            functions.push(FunctionOf {
                name: text("name")?.map(bytes).unwrap_or_default(),
                description: text("description")?.map(bytes),
                flags: entry.raw_get("flags")?,
            });
        }
        Ok(Registered { functions, callbacks })
    }

    /// Sets the clock for what is run next.
    fn begin(&self, scripts: &Arc<Scripts>, running: Running, limit: Duration) {
        self.watch.running.set(running);
        self.watch.until.set(Clock::system().now() + limit);
        self.watch.limit_ms.set(limit.as_millis());
        let kind = if running == Running::Script { Kind::Script } else { Kind::Function };
        self.watch.scripts.replace(Some((Arc::clone(scripts), scripts.kills(kind))));
        self.watch.is_resp3.set(false);
        self.watch.random.set(seed(0));
        self.watch.arm(&self.lua);
    }

    /// Runs something that may run commands through `redis`.
    fn run(
        &self,
        commands: Commands<'_, '_>,
        redis: &Table,
        run: impl FnOnce() -> mlua::Result<(bool, Value)>,
    ) -> mlua::Result<(bool, Value)> {
        let commands = RefCell::new(commands);
        let watch = &self.watch;
        let invoke = |lua: &Lua, words: &MultiValue| {
            let mut commands = commands.try_borrow_mut().map_err(|_| mlua::Error::RecursiveMutCallback)?;
            commands.invoke(lua, words, watch.is_resp3.get())
        };
        self.lua.scope(|scope| {
            let call = |lua: &Lua, words: MultiValue| invoke(lua, &words)?.map_err(raise::reply);
            redis.raw_set("call", scope.create_function(call)?)?;
            let pcall = |lua: &Lua, words: MultiValue| match invoke(lua, &words)? {
                Ok(value) => Ok(value),
                Err(text) => convert::error(lua, &text),
            };
            redis.raw_set("pcall", scope.create_function(pcall)?)?;
            run()
        })
    }

    /// Writes the value as the reply; else the text for what stopped the script, with its name and the place in it.
    fn reply(
        &self,
        outcome: mlua::Result<(bool, Value)>,
        call: &mut Call<'_>,
        name: impl FnOnce() -> String,
        chunk: &str,
    ) -> Result<(), String> {
        match outcome {
            Ok((true, value)) if self.watch.stopped.borrow().is_none() => {
                let mut goes_on = || self.watch.look(&self.lua).is_ok();
                // If it is stopped meanwhile, its caller tells why.
                convert::reply(&value, self.watch.is_resp3.get(), &mut goes_on, &mut call.reply);
                Ok(())
            }
            Ok((_, problem)) => Err(match problem_text(&problem) {
                (text, Some(line)) => format!("{text} script: {}, on {chunk}:{line}.", name()),
                (text, None) => format!("{text} script: {}", name()),
            }),
            Err(error) => Err(format!("ERR {}", raise::read(&error).0)),
        }
    }

    fn table(&self, words: &Args<'_>) -> mlua::Result<Table> {
        let table = self.lua.create_table_with_capacity(words.len(), 0)?;
        for (at, word) in words.iter().enumerate() {
            table.raw_set(at + 1, self.lua.create_string(word)?)?;
        }
        Ok(table)
    }
}

/// The text for what stopped a script, and the line in it.
fn problem_text(problem: &Value) -> (String, Option<usize>) {
    match problem {
        Value::Table(table) => {
            let text = table.raw_get::<Option<LuaString>>("err").ok().flatten();
            let text = text.map_or_else(|| "ERR unknown error".to_owned(), |text| text.to_string_lossy());
            (text, table.raw_get::<Option<usize>>("line").ok().flatten())
        }
        Value::String(text) => (format!("ERR {}", text.to_string_lossy()), None),
        other => (format!("ERR {}", other.type_name()), None),
    }
}

impl Watch {
    /// Sets a limit from now on.
    #[cfg(test)]
    pub fn begin_for_test(&self, limit: Duration) {
        self.stopped.replace(None);
        self.until.set(Clock::system().now() + limit);
    }

    /// Has the script the right to go on? Once it has not, it never has again.
    ///
    /// # Errors
    /// When it has to stop: the error ends it.
    pub fn look(&self, lua: &Lua) -> mlua::Result<()> {
        let stop = || mlua::Error::RuntimeError("the script was stopped".to_owned());
        if self.stopped.borrow().is_some() {
            return Err(stop());
        }
        let running = self.running.get();
        let kind = if running == Running::Script { Kind::Script } else { Kind::Function };
        let is_killed =
            self.scripts.borrow().as_ref().is_some_and(|(scripts, kills)| scripts.kills(kind) != *kills);
        let text = if is_killed && running != Running::Load {
            let name = if running == Running::Script { "SCRIPT" } else { "FUNCTION" };
            format!("ERR Script killed by user with {name} KILL.")
        } else if Clock::system().now() > self.until.get() {
            match running {
                Running::Load => "ERR Error registering functions: ERR FUNCTION LOAD timeout".to_owned(),
                Running::Script | Running::Function => format!(
                    "ERR Script killed: it ran for more than {} ms (lua-time-limit). What it had written stays.",
                    self.limit_ms.get()
                ),
            }
        } else {
            return Ok(());
        };
        self.stopped.replace(Some(text));
        lua.set_global_hook(HookTriggers::new().every_nth_instruction(1), move |_, _| Err(stop()))?;
        Err(stop())
    }

    /// Sees to it that the clock is looked at often enough for the memory that is used now.
    fn arm(self: &Rc<Self>, lua: &Lua) {
        let used = lua.used_memory();
        let instructions = INSTRUCTIONS.iter().find(|(most, _)| used <= *most).map_or(1, |(_, count)| *count);
        let is_same = self.instructions.replace(instructions) == instructions;
        // A coroutine that was there before has the hook of then.
        if is_same && instructions == INSTRUCTIONS[0].1 {
            return;
        }
        let watch = Rc::clone(self);
        let triggers = HookTriggers::new().every_nth_instruction(instructions);
        // It fails for want of memory only, and then the old one goes on.
        let _ = lua.set_global_hook(triggers, move |lua, _| {
            watch.look(lua)?;
            watch.arm(lua);
            Ok(VmState::Continue)
        });
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
    let (guard, watched) = (Rc::new(Guard::default()), Rc::clone(watch));
    host.raw_set("text", text::functions(lua, watch, &guard)?)?;
    let set_guard = move |_: &Lua, (call, index): (Function, Function)| {
        guard.set(call, index);
        Ok(())
    };
    host.raw_set("set_guard", lua.create_function(set_guard)?)?;
    host.raw_set("look", lua.create_function(move |lua, ()| watched.look(lua))?)?;
    let lower = |lua: &Lua, text: LuaString| lua.create_string(text.as_bytes().to_ascii_lowercase());
    host.raw_set("lower", lua.create_function(lower)?)?;
    let is_name = |_: &Lua, text: LuaString| Ok(library::is_name(&text.as_bytes()));
    host.raw_set("is_name", lua.create_function(is_name)?)?;
    host.raw_set("bad_name", library::BAD_NAME)?;
    let acl =
        |_: &Lua, words: MultiValue| host::may_run(&words).map_err(|text| raise::reply(text.to_owned()));
    host.raw_set("acl_check_cmd", lua.create_function(acl)?)?;
    host.raw_set("set_repl", lua.create_function(|_, words: MultiValue| set_repl(&words))?)?;
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
    let sha1hex = |_: &Lua, words: MultiValue| match (words.front(), words.len()) {
        (Some(Value::String(text)), 1) => Ok(hex(&super::digest(&text.as_bytes()))),
        (Some(Value::Integer(number)), 1) => Ok(hex(&super::digest(general(*number as f64, 14).as_bytes()))),
        (Some(Value::Number(number)), 1) => Ok(hex(&super::digest(general(*number, 14).as_bytes()))),
        // As Redis, which sees no text there.
        (Some(_), 1) => Ok(hex(&super::digest(b""))),
        _ => Err(raise::plain("wrong number of arguments")),
    };
    host.raw_set("sha1hex", lua.create_function(sha1hex)?)?;
    host.raw_set("log", lua.create_function(|_, words: MultiValue| log(&words))?)?;
    let raised = |_: &Lua, problem: Value| {
        Ok(match problem {
            Value::Error(error) => {
                let (text, kind) = raise::read(&error);
                (Some(text), kind.name())
            }
            _ => (None, raise::Kind::Text.name()),
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
    host.raw_set("cjson", json::functions(lua, watch)?)?;
    host.raw_set("cmsgpack", msgpack::functions(lua, watch)?)?;
    host.raw_set("struct", pack::functions(lua)?)?;
    host.raw_set("bit", bits::functions(lua)?)?;
    Ok(host)
}

/// `redis.set_repl(flags)`: all effects are replicated, whatever a script asks for.
fn set_repl(words: &MultiValue) -> mlua::Result<()> {
    let flags = match words.front() {
        _ if words.len() != 1 => return Err(raise::plain("redis.set_repl() requires two arguments.")),
        Some(Value::Integer(flags)) => *flags,
        Some(Value::Number(flags)) => convert::cut(*flags),
        _ => 0,
    };
    if (0..=3).contains(&flags) {
        return Ok(());
    }
    Err(raise::plain("Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE."))
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
            let source = frame.source().source;
            let is_script =
                source.is_some_and(|source| source == CHUNK_NAME || source == FUNCTION_CHUNK_NAME);
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
