//! Which command a client calls next: chance over a few hot keys; every value is written once.

use std::time::Duration;

use rand::{Rng, RngExt};

use crate::check::{Command, Condition};

/// Lifetimes, ms: few, so that unknown outcomes are alike; below and above a failover.
const LIFETIMES_MS: [u64; 3] = [40, 200, 1500];

/// The keys that a client uses; not both empty.
#[derive(Clone, Default, Debug)]
pub struct Keys {
    /// Those that hold texts.
    pub texts: Vec<String>,
    /// Those that hold counters.
    pub counters: Vec<String>,
}

impl Keys {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &String> {
        self.texts.iter().chain(&self.counters)
    }

    /// Those of both.
    pub fn extend(&mut self, more: &Keys) {
        self.texts.extend_from_slice(&more.texts);
        self.counters.extend_from_slice(&more.counters);
    }
}

/// A command on one of the keys; `value` was never written.
pub(super) fn next(random: &mut impl Rng, keys: &Keys, value: &str) -> (String, Command) {
    let place = random.random_range(0..keys.texts.len() + keys.counters.len());
    match keys.texts.get(place) {
        Some(key) => (key.clone(), on_text(random, value)),
        None => (keys.counters[place - keys.texts.len()].clone(), on_counter(random)),
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
