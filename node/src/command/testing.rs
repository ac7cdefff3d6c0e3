//! Drives commands directly, one keyspace and a clock that stands still unless told.

use bytes::Bytes;
use korum_protocol::resp::{Args, ProtocolVersion, ReplyWriter};
use korum_protocol::rope::Rope;
use rand::SeedableRng;

use super::{Call, Looks, key, string};
use crate::env::random::Random;
use crate::replication::effect::{Effect, Effects};
use crate::store::{Garbage, Keyspace, Source};

/// The moment at which tests begin, Unix ms.
pub const NOW_MS: u64 = 1_700_000_000_000;

/// A primary and a replica that applies its effects.
pub struct Bench {
    pub keyspace: Keyspace,
    pub replica: Keyspace,
    pub now_ms: u64,
    pub version: ProtocolVersion,
    random: Random,
    /// Effects of the last command.
    pub count: usize,
}

impl Bench {
    pub fn new() -> Self {
        Self {
            keyspace: Keyspace::new(7),
            replica: Keyspace::new(7),
            now_ms: NOW_MS,
            version: ProtocolVersion::Resp2,
            random: Random::seed_from_u64(1),
            count: 0,
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
        let mut call = Call {
            args: Args::new(source.buffer(), &ranges),
            keyspace: &mut self.keyspace,
            now_ms: self.now_ms,
            random: &mut self.random,
            effects: &mut effects,
            looks: &mut Looks::default(),
            source: &source,
            reply: ReplyWriter::holding(&mut out, self.version),
        };
        let mut name = String::from_utf8(arguments[0].to_ascii_lowercase()).unwrap();
        if name == "object" || name == "memory" {
            name = format!("{name}|{}", String::from_utf8_lossy(arguments[1]).to_ascii_lowercase());
        }
        command(&name)(&mut call);
        self.count = effects.count();
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

fn command(name: &str) -> fn(&mut Call<'_>) {
    match name {
        "get" => string::get,
        "set" => string::set,
        "setnx" => string::setnx,
        "setex" => string::setex,
        "psetex" => string::psetex,
        "getset" => string::getset,
        "getdel" => string::getdel,
        "getex" => string::getex,
        "mget" => string::mget,
        "mset" => string::mset,
        "msetnx" => string::msetnx,
        "append" => string::append,
        "strlen" => string::strlen,
        "getrange" => string::getrange,
        "substr" => string::substr,
        "setrange" => string::setrange,
        "incr" => string::incr,
        "decr" => string::decr,
        "incrby" => string::incrby,
        "decrby" => string::decrby,
        "incrbyfloat" => string::incrbyfloat,
        "lcs" => string::lcs,
        "del" => key::del,
        "unlink" => key::unlink,
        "exists" => key::exists,
        "touch" => key::touch,
        "type" => key::type_,
        "expire" => key::expire,
        "pexpire" => key::pexpire,
        "expireat" => key::expireat,
        "pexpireat" => key::pexpireat,
        "ttl" => key::ttl,
        "pttl" => key::pttl,
        "expiretime" => key::expiretime,
        "pexpiretime" => key::pexpiretime,
        "persist" => key::persist,
        "rename" => key::rename,
        "renamenx" => key::renamenx,
        "copy" => key::copy,
        "dump" => key::dump,
        "restore" => key::restore,
        "object|encoding" => key::object_encoding,
        "object|freq" => key::object_freq,
        "object|idletime" => key::object_idletime,
        "object|refcount" => key::object_refcount,
        "memory|usage" => key::memory_usage,
        _ => panic!("no command {name}"),
    }
}
