//! What a key is used for, and which command on it comes next.
//!
//! For: one workload for simulated and real clusters: kinds of keys, and commands by chance, a function for each kind.
//! Not here: when and through which door (`sim/workload`, `harness::recorder`), what commands mean (`model`).

use std::time::Duration;

use rand::{Rng, RngExt};

use super::model::{Bytes, Command, Condition, hash, list, pair, set, sorted_set, stream};

/// Lifetimes, ms.
const LIFETIME_MS: std::ops::Range<u64> = 100..3_000;
/// How long a client waits for something, ms; some give up soon, some live through a failover.
const WAITS_MS: [u64; 4] = [30, 200, 700, 2_000];

/// What a key is used for, always the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A string that counts.
    Counter,
    /// A string that grows.
    Appended,
    /// A string with deadlines.
    Fleeting,
    /// A string that is set and read, on conditions.
    Register,
    /// A string that is changed under `WATCH`.
    Swapped,
    /// A hash.
    Hash,
    /// A list as a queue.
    Queue,
    /// Two lists that items go through.
    Rail,
    /// A set.
    Set,
    /// A sorted set.
    SortedSet,
    /// A stream and its group.
    Stream,
    /// Two counters that change together.
    Pair,
}

/// What nobody else writes.
#[derive(Clone, Debug)]
pub struct Fresh {
    /// A text that was never written.
    pub text: String,
    /// An id above those before, as far as clients know them.
    pub id: stream::Id,
}

impl Kind {
    /// Strings.
    pub const TEXTS: [Kind; 4] = [Kind::Counter, Kind::Appended, Kind::Fleeting, Kind::Register];
    /// What needs more than one command, one value or one key.
    pub const OTHERS: [Kind; 8] = [
        Kind::Queue,
        Kind::Rail,
        Kind::Hash,
        Kind::Pair,
        Kind::SortedSet,
        Kind::Stream,
        Kind::Swapped,
        Kind::Set,
    ];

    /// The command that reads all of it.
    #[must_use]
    pub fn read(self) -> Command {
        match self {
            Kind::Counter | Kind::Appended | Kind::Fleeting | Kind::Register | Kind::Swapped => Command::Get,
            Kind::Hash => Command::Hash(hash::Command::Read),
            Kind::Queue => Command::List(list::Command::Read),
            Kind::Rail => Command::List(list::Command::ReadBoth),
            Kind::Set => Command::Members(set::Command::Read),
            Kind::SortedSet => Command::SortedSet(sorted_set::Command::Read),
            Kind::Stream => Command::Stream(stream::Command::Read),
            Kind::Pair => Command::Pair(pair::Command::Read { in_unit: false }),
        }
    }

    /// A command that waits until there is something, if the kind has one.
    #[must_use]
    pub fn wait(self, random: &mut impl Rng) -> Option<Command> {
        let wait = Some(Duration::from_millis(WAITS_MS[random.random_range(0..WAITS_MS.len())]));
        match self {
            Kind::Queue => Some(Command::List(list::Command::Pop { wait })),
            Kind::Rail if random.random_range(0..2) == 0 => Some(Command::List(list::Command::Move { wait })),
            Kind::Rail => Some(Command::List(list::Command::Take { wait })),
            Kind::SortedSet => Some(Command::SortedSet(sorted_set::Command::PopLeast { wait })),
            Kind::Stream => Some(Command::Stream(stream::Command::Next { wait })),
            Kind::Counter
            | Kind::Appended
            | Kind::Fleeting
            | Kind::Register
            | Kind::Swapped
            | Kind::Hash
            | Kind::Set
            | Kind::Pair => None,
        }
    }

    /// A command that is answered at once.
    #[must_use]
    pub fn choose(self, random: &mut impl Rng, fresh: Fresh) -> Command {
        let dice = random.random_range(0..100);
        let value: Bytes = fresh.text.as_bytes().into();
        match self {
            Kind::Counter => counter(dice),
            Kind::Appended => appended(dice, value),
            Kind::Fleeting => fleeting(dice, value, Duration::from_millis(random.random_range(LIFETIME_MS))),
            Kind::Register => register(dice, value),
            Kind::Swapped => swapped(dice, value),
            Kind::Hash => in_hash(dice, value, random),
            Kind::Queue => queue(dice, value),
            Kind::Rail => rail(dice, value),
            Kind::Set => in_set(dice, random),
            Kind::SortedSet => in_sorted_set(dice, random),
            Kind::Stream => in_stream(dice, fresh.id),
            Kind::Pair => in_pair(dice),
        }
    }
}

fn set(value: Bytes, condition: Condition, get: bool, expire: Option<Duration>) -> Command {
    Command::Set { value, condition, get, expire }
}

fn counter(dice: u32) -> Command {
    match dice {
        0..40 => Command::Get,
        40..80 => Command::Incr,
        80..90 => Command::Del,
        _ => Command::GetDel,
    }
}

fn appended(dice: u32, value: Bytes) -> Command {
    match dice {
        0..45 => Command::Get,
        45..85 => Command::Append(value),
        _ => Command::Del,
    }
}

fn fleeting(dice: u32, value: Bytes, lifetime: Duration) -> Command {
    match dice {
        0..40 => Command::Get,
        40..80 => set(value, Condition::Always, false, Some(lifetime)),
        80..90 => Command::Expire(lifetime),
        _ => set(value, Condition::Missing, false, None),
    }
}

fn register(dice: u32, value: Bytes) -> Command {
    match dice {
        0..45 => Command::Get,
        45..70 => set(value, Condition::Always, false, None),
        70..80 => set(value, Condition::Missing, false, None),
        80..90 => set(value, Condition::Existing, true, None),
        90..95 => Command::GetDel,
        _ => Command::Del,
    }
}

/// What is expected, whoever swaps has to read first.
fn swapped(dice: u32, value: Bytes) -> Command {
    match dice {
        0..30 => Command::Get,
        30..85 => Command::Swap { expected: None, value },
        85..95 => set(value, Condition::Always, false, None),
        _ => Command::Del,
    }
}

fn in_hash(dice: u32, value: Bytes, random: &mut impl Rng) -> Command {
    let field = hash::FIELDS[random.random_range(0..hash::FIELDS.len())];
    match dice {
        0..20 => Command::Hash(hash::Command::Get(field)),
        20..35 => Command::Hash(hash::Command::Read),
        35..60 => Command::Hash(hash::Command::Set(field, value)),
        60..85 => Command::Hash(hash::Command::Count { by_script: dice.is_multiple_of(2) }),
        85..95 => Command::Hash(hash::Command::Delete(field)),
        _ => Command::Del,
    }
}

fn queue(dice: u32, item: Bytes) -> Command {
    match dice {
        0..48 => Command::List(list::Command::Push(item)),
        48..85 => Command::List(list::Command::Pop { wait: None }),
        _ => Command::List(list::Command::Read),
    }
}

fn rail(dice: u32, item: Bytes) -> Command {
    match dice {
        0..35 => Command::List(list::Command::Push(item)),
        35..60 => Command::List(list::Command::Move { wait: None }),
        60..90 => Command::List(list::Command::Take { wait: None }),
        _ => Command::List(list::Command::ReadBoth),
    }
}

fn in_set(dice: u32, random: &mut impl Rng) -> Command {
    let member = set::MEMBERS[random.random_range(0..set::MEMBERS.len())];
    match dice {
        0..35 => Command::Members(set::Command::Read),
        35..70 => Command::Members(set::Command::Add(member)),
        70..96 => Command::Members(set::Command::Remove(member)),
        _ => Command::Del,
    }
}

fn in_sorted_set(dice: u32, random: &mut impl Rng) -> Command {
    let member = sorted_set::MEMBERS[random.random_range(0..sorted_set::MEMBERS.len())];
    match dice {
        0..25 => Command::SortedSet(sorted_set::Command::Read),
        25..70 => Command::SortedSet(sorted_set::Command::Raise(member)),
        70..88 => Command::SortedSet(sorted_set::Command::PopLeast { wait: None }),
        88..97 => Command::SortedSet(sorted_set::Command::Remove(member)),
        _ => Command::Del,
    }
}

fn in_stream(dice: u32, id: stream::Id) -> Command {
    match dice {
        0..20 => Command::Stream(stream::Command::Read),
        20..25 => Command::Stream(stream::Command::Create),
        25..60 => Command::Stream(stream::Command::Add(id)),
        60..95 => Command::Stream(stream::Command::Next { wait: None }),
        _ => Command::Del,
    }
}

fn in_pair(dice: u32) -> Command {
    match dice {
        0..50 => Command::Pair(pair::Command::Transfer { by_script: dice.is_multiple_of(2) }),
        _ => Command::Pair(pair::Command::Read { in_unit: dice.is_multiple_of(2) }),
    }
}
