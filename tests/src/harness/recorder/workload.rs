//! Which command a client calls next: chance over a few hot keys; every value is written once.

use std::time::Duration;

use rand::{Rng, RngExt};

use crate::check::{Command, Condition, Fresh, Kind, list};

/// Lifetimes, ms: few, so that unknown outcomes are alike; below and above a failover.
const LIFETIMES_MS: [u64; 3] = [40, 200, 1500];
/// How long a client waits for an item, ms: shorter than its patience.
const WAITS_MS: [u64; 3] = [50, 400, 1_500];

/// The keys that a client uses; not all empty.
#[derive(Clone, Default, Debug)]
pub struct Keys {
    /// Those that hold texts.
    pub texts: Vec<String>,
    /// Those that hold counters.
    pub counters: Vec<String>,
    /// Those that hold something else, and what.
    pub others: Vec<(Kind, String)>,
    /// Queues of which the client only waits for items.
    pub waits_for: Vec<String>,
}

impl Keys {
    /// All of them, with the command that reads all of what a key holds.
    pub fn readings(&self) -> impl Iterator<Item = (String, Command)> {
        let texts = self.texts.iter().chain(&self.counters).map(|key| (key.clone(), Command::Get));
        texts.chain(self.others.iter().map(|(kind, key)| (key.clone(), kind.read())))
    }

    /// Those of both.
    pub fn extend(&mut self, more: &Keys) {
        self.texts.extend_from_slice(&more.texts);
        self.counters.extend_from_slice(&more.counters);
        self.others.extend_from_slice(&more.others);
    }

    /// The queues among them, for a client that only waits.
    #[must_use]
    pub fn to_wait_for(&self) -> Self {
        let queues = self.others.iter().filter(|(kind, _)| *kind == Kind::Queue);
        Self { waits_for: queues.map(|(_, key)| key.clone()).collect(), ..Self::default() }
    }
}

/// A command on one of the keys; `value` was never written.
pub(super) fn next(random: &mut impl Rng, keys: &Keys, value: &str) -> (String, Command) {
    if !keys.waits_for.is_empty() {
        let key = &keys.waits_for[random.random_range(0..keys.waits_for.len())];
        let wait = Some(Duration::from_millis(WAITS_MS[random.random_range(0..WAITS_MS.len())]));
        return (key.clone(), Command::List(list::Command::Pop { wait }));
    }
    let (texts, counters) = (keys.texts.len(), keys.counters.len());
    let place = random.random_range(0..texts + counters + keys.others.len());
    if place < texts {
        (keys.texts[place].clone(), on_text(random, value))
    } else if place < texts + counters {
        (keys.counters[place - texts].clone(), on_counter(random))
    } else {
        let (kind, key) = &keys.others[place - texts - counters];
        (key.clone(), kind.choose(random, Fresh { text: value.to_owned(), id: (0, 0) }))
    }
}

fn on_counter(random: &mut impl Rng) -> Command {
    match random.random_range(0..20) {
        0..12 => Command::Incr,
        12..18 => Command::Get,
        18 => Command::Del,
        _ => Command::set(random.random_range(1000..2000).to_string().as_bytes()),
    }
}

fn on_text(random: &mut impl Rng, value: &str) -> Command {
    let lifetime = Duration::from_millis(LIFETIMES_MS[random.random_range(0..LIFETIMES_MS.len())]);
    let set =
        |condition, get, expire| Command::Set { value: value.as_bytes().into(), condition, get, expire };
    match random.random_range(0..40) {
        0..14 => Command::Get,
        14..22 => set(Condition::Always, false, None),
        22..25 => set(Condition::Missing, false, None),
        25..27 => set(Condition::Existing, false, None),
        27..30 => set(Condition::Always, true, None),
        30 | 31 => set(Condition::Always, false, Some(lifetime)),
        32..35 => Command::Append(value.as_bytes().into()),
        35 | 36 => Command::Del,
        37 => Command::GetDel,
        38 => Command::Expire(lifetime),
        _ => Command::Incr,
    }
}
