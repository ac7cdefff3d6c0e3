//! Drives commands directly, one keyspace and a clock that stands still unless told.

use std::sync::Arc;

use bytes::Bytes;
use korum_protocol::command::resolve::wrong_arity;
use korum_protocol::command::{CommandSpec, table};
use korum_protocol::resp::{Args, ProtocolVersion, ReplyWriter};
use korum_protocol::rope::Rope;
use rand::SeedableRng;

use super::{Call, Looks, Names};
use crate::dispatch::execute;
use crate::env::random::Random;
use crate::replication::effect::{Effect, Effects};
use crate::store::{Classes, Garbage, Keyspace, Notice, Source};

/// The moment at which tests begin, Unix ms.
pub const NOW_MS: u64 = 1_700_000_000_000;

/// A primary and a replica that applies its effects.
pub struct Bench {
    pub keyspace: Keyspace,
    pub replica: Keyspace,
    pub now_ms: u64,
    pub version: ProtocolVersion,
    pub database: u8,
    random: Random,
    /// Effects of the last command.
    pub count: usize,
    /// What it told of keys.
    pub notices: Vec<Notice>,
}

impl Bench {
    pub fn new() -> Self {
        Self {
            keyspace: Keyspace::new(7),
            replica: Keyspace::new(7),
            now_ms: NOW_MS,
            version: ProtocolVersion::Resp2,
            database: 0,
            random: Random::seed_from_u64(1),
            count: 0,
            notices: Vec::new(),
        }
    }

    /// Runs a command and checks that the replica follows.
    pub fn run(&mut self, arguments: &[&[u8]]) -> Vec<u8> {
        let mut buffer = Vec::new();
        let mut ranges = Vec::new();
        for argument in arguments {
            ranges.push(buffer.len()..buffer.len() + argument.len());
            buffer.extend_from_slice(argument);
        }
        let source = Source::of(Bytes::copy_from_slice(&buffer));
        let mut out = Rope::new();
        let mut effects = Effects::new(true);
        effects.notices.want(Classes::parse("AKEmn"));
        let mut call = Call {
            args: Args::new(source.buffer(), &ranges),
            names: &Names::new(&self.keyspace.databases.clone(), self.database, false),
            keyspace: &mut self.keyspace,
            now_ms: self.now_ms,
            random: &mut self.random,
            effects: &mut effects,
            looks: &mut Looks::default(),
            source: &source,
            scripts: &Arc::default(),
            reply: ReplyWriter::holding(&mut out, self.version),
        };
        let mut name = String::from_utf8(arguments[0].to_ascii_lowercase()).unwrap();
        if matches!(&name[..], "object" | "memory" | "xgroup" | "xinfo" | "korum") {
            name = format!("{name}|{}", String::from_utf8_lossy(arguments[1]).to_ascii_lowercase());
        }
        let spec = lookup_whole(&name).unwrap_or_else(|| panic!("no command {name}"));
        call.looks.prepare(spec, true);
        if spec.accepts(arguments.len()) {
            execute::run(spec.id, &mut call);
        } else {
            call.reply.error(&wrong_arity(spec));
        }
        self.count = effects.count();
        self.notices = effects.notices.take().1;
        for (position, bytes) in effects.iter() {
            let bytes = bytes.into_bytes();
            let mut input = &bytes[..];
            let effect = Effect::decode(&mut input).unwrap();
            assert!(input.is_empty());
            assert_eq!(effect.key().map(|key| self.replica.hash_position(key)), position);
            self.replica.apply(&effect, &Source::none(), &mut Garbage::default());
        }
        self.keyspace.check();
        self.replica.check();
        let state = |keyspace: &Keyspace| -> Vec<_> {
            let all = keyspace.scan(Default::default(), usize::MAX).entries;
            all.iter().map(|e| (e.key().to_vec(), e.value().to_value(), e.deadline_ms())).collect()
        };
        assert_eq!(state(&self.keyspace), state(&self.replica), "the replica follows");
        out.into_bytes().to_vec()
    }

    /// Runs a command of words; the answer with `|` for line ends.
    pub fn words(&mut self, line: &str) -> String {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        String::from_utf8_lossy(&self.run(&words)).replace("\r\n", "|")
    }

    /// Runs lines and compares the answers.
    pub fn expect(&mut self, lines: &[(&str, &str)]) {
        for (line, answer) in lines {
            assert_eq!(self.words(line), *answer, "{line}");
        }
    }
}

/// The command, or the subcommand, of this whole name.
fn lookup_whole(name: &str) -> Option<&'static CommandSpec> {
    let (container, sub) = name.split_once('|').unwrap_or((name, ""));
    let spec = table::lookup(container.as_bytes())?;
    if sub.is_empty() { Some(spec) } else { table::lookup_in(spec, sub.as_bytes()) }
}
