//! Name → command.
//!
//! For: the list of families, and the one lookup that every request makes.
//! Not here: what stands in the families; arity and subcommands (`resolve`).

use super::CommandSpec;
use super::{
    bitmap, cluster, connection, geo, hash, hyperloglog, key, korum, list, pubsub, scripting, server, set,
    sorted_set, stream, string, transaction,
};

/// All families, in the order in which `COMMAND` prints them.
static FAMILIES: &[&[CommandSpec]] = &[
    string::COMMANDS,
    hash::COMMANDS,
    bitmap::COMMANDS,
    hyperloglog::COMMANDS,
    list::COMMANDS,
    stream::COMMANDS,
    set::COMMANDS,
    sorted_set::COMMANDS,
    geo::COMMANDS,
    key::COMMANDS,
    transaction::COMMANDS,
    scripting::COMMANDS,
    connection::COMMANDS,
    server::COMMANDS,
    pubsub::COMMANDS,
    cluster::COMMANDS,
    korum::COMMANDS,
];

/// Slots of the index, a power of two: at least four times the commands, so that probes stay short.
const SLOTS: usize = 1024;
/// A slot without a command. No name has this key.
const EMPTY: Key = Key { low: 0, high: 0 };
/// Longest name of a command in the index, bytes: it must fit its key.
const NAME_BYTES_MAX: usize = 16;
/// Commands with longer names, in the order in which they are searched: few, and seldom called.
const LONG_NAMES: usize = 2;

/// A name in lower case, as two words filled up with zeros: compared at once, without a loop.
#[derive(Clone, Copy)]
#[cfg_attr(test, derive(PartialEq, Debug))]
struct Key {
    low: u64,
    high: u64,
}

/// Open addressing, filled at compile time. Keys stand apart from places: a lookup touches one line of each.
struct Index {
    keys: [Key; SLOTS],
    /// Family in the high byte, place in the low one.
    places: [u16; SLOTS],
    /// Places of the commands with long names.
    long: [u16; LONG_NAMES],
}

static INDEX: Index = build();

const fn build() -> Index {
    let mut index = Index { keys: [EMPTY; SLOTS], places: [0; SLOTS], long: [0; LONG_NAMES] };
    let (mut count, mut long) = (0, 0);
    let mut family = 0;
    while family < FAMILIES.len() {
        let mut place = 0;
        while place < FAMILIES[family].len() {
            assert!(place < 256, "the place must fit its byte");
            let packed = (family as u16) << 8 | place as u16;
            match Key::of(FAMILIES[family][place].name.as_bytes()) {
                Some(key) => {
                    let mut slot = key.home();
                    while !index.keys[slot].is(EMPTY) {
                        assert!(!index.keys[slot].is(key), "a name is listed twice");
                        slot = (slot + 1) % SLOTS;
                    }
                    index.keys[slot] = key;
                    index.places[slot] = packed;
                    count += 1;
                }
                None => {
                    index.long[long] = packed;
                    long += 1;
                }
            }
            place += 1;
        }
        family += 1;
    }
    assert!(long == LONG_NAMES, "count the long names anew");
    assert!(count * 4 <= SLOTS, "enlarge the index");
    index
}

impl Key {
    /// The key of a name, `None` when no command of the index can have it.
    #[inline]
    const fn of(name: &[u8]) -> Option<Self> {
        let length = name.len();
        let Some(last) = name.last() else { return None };
        // A zero byte at the end would make the name look shorter than it is.
        if length > NAME_BYTES_MAX || *last == 0 {
            return None;
        }
        // Loads that overlap, in place of a loop: their common bytes are the same.
        let (low, high) = if let (Some(start), Some(end)) = (name.first_chunk(), name.last_chunk()) {
            (
                u64::from_le_bytes(*start),
                u64::from_le_bytes(*end) >> (4 * (16 - length)) >> (4 * (16 - length)),
            )
        } else if let (Some(start), Some(end)) = (name.first_chunk(), name.last_chunk()) {
            let (start, end) = (u32::from_le_bytes(*start), u32::from_le_bytes(*end));
            (start as u64 | (end as u64) << (8 * (length - 4)), 0)
        } else {
            let middle = length / 2;
            (name[0] as u64 | (name[middle] as u64) << (8 * middle) | (*last as u64) << (8 * (length - 1)), 0)
        };
        Some(Self { low: lower_case(low), high: lower_case(high) })
    }

    #[inline]
    const fn is(self, other: Self) -> bool {
        self.low == other.low && self.high == other.high
    }

    /// Where the search starts; the tests below bound the probes.
    #[inline]
    const fn home(self) -> usize {
        let folded = self.low.rotate_left(27) ^ self.high;
        (folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54) as usize % SLOTS
    }
}

/// `A` to `Z` become `a` to `z` in all eight bytes at once: adding carries into the top bit of every
/// byte that is at least `A`, and of every byte that is past `Z`.
#[inline]
const fn lower_case(bytes: u64) -> u64 {
    const LOW_BITS: u64 = u64::from_le_bytes([0x7F; 8]);
    const FROM_A: u64 = u64::from_le_bytes([0x80 - b'A'; 8]);
    const PAST_Z: u64 = u64::from_le_bytes([0x7F - b'Z'; 8]);
    let low_bits = bytes & LOW_BITS;
    let is_upper = ((low_bits + FROM_A) ^ (low_bits + PAST_Z)) & !bytes & !LOW_BITS;
    bytes | is_upper >> 2
}

/// The command called `name`, in any case. Containers come back as themselves.
#[inline]
#[must_use]
pub fn lookup(name: &[u8]) -> Option<&'static CommandSpec> {
    let Some(key) = Key::of(name) else { return lookup_long(name) };
    let mut slot = key.home();
    loop {
        let found = INDEX.keys[slot];
        if found.is(key) {
            return at(INDEX.places[slot]);
        }
        if found.is(EMPTY) {
            return None;
        }
        slot = (slot + 1) % SLOTS;
    }
}

/// The command at a place of the index.
#[inline]
fn at(place: u16) -> Option<&'static CommandSpec> {
    FAMILIES[usize::from(place >> 8)].get(usize::from(place & 0xFF))
}

#[cold]
fn lookup_long(name: &[u8]) -> Option<&'static CommandSpec> {
    let mut found = INDEX.long.iter().filter_map(|&place| at(place));
    found.find(|spec| spec.name.as_bytes().eq_ignore_ascii_case(name))
}

/// The subcommand called `name` of a container, in any case.
#[must_use]
pub fn lookup_in(container: &CommandSpec, name: &[u8]) -> Option<&'static CommandSpec> {
    container.subcommands.iter().find(|spec| spec.name.as_bytes().eq_ignore_ascii_case(name))
}

/// All commands of the top level, in a fixed order.
pub fn all() -> impl Iterator<Item = &'static CommandSpec> {
    FAMILIES.iter().flat_map(|family| family.iter())
}

/// Number of commands of the top level.
#[must_use]
pub fn count() -> usize {
    FAMILIES.iter().map(|family| family.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_every_length_are_looked_up_without_a_mistake() {
        for length in 0..64 {
            let name = vec![b'x'; length];
            assert!(lookup(&name).is_none(), "{length}");
        }
        for longer in ["flushallxxxxxxxx", "flushall0", "getrangexxxxxxxx", "get\0", "shutdownxxxxxxxx"] {
            assert!(lookup(longer.as_bytes()).is_none(), "{longer}");
        }
        assert!(lookup(b"FlushAll").is_some());
    }

    #[test]
    fn every_command_is_found_in_any_case_and_nothing_else() {
        for spec in all() {
            assert_eq!(lookup(spec.name.as_bytes()).map(|found| found.id), Some(spec.id));
            assert_eq!(lookup(spec.name.to_uppercase().as_bytes()).map(|found| found.id), Some(spec.id));
            // `lpushx` is a command too.
            let longer = format!("{}x", spec.name);
            assert!(lookup(longer.as_bytes()).is_none_or(|found| found.name == longer));
            assert!(lookup(format!("{}\0", spec.name).as_bytes()).is_none());
            for sub in spec.subcommands {
                assert_eq!(sub.full_name, format!("{}|{}", spec.name, sub.name));
                assert_eq!(
                    lookup_in(spec, sub.name.to_uppercase().as_bytes()).map(|found| found.id),
                    Some(sub.id)
                );
            }
        }
        for name in [&b""[..], b"g", b"ge", b"foo", b"get ", b"GET\0", &[0xFF; 100]] {
            assert!(lookup(name).is_none(), "{}", name.escape_ascii());
        }
    }

    #[test]
    fn lower_case_changes_letters_and_nothing_else() {
        for byte in 0..=u8::MAX {
            let expected = u64::from_le_bytes([byte.to_ascii_lowercase(); 8]);
            assert_eq!(lower_case(u64::from_le_bytes([byte; 8])), expected, "{byte}");
        }
    }

    #[test]
    fn probes_are_short() {
        let probes = |spec: &&CommandSpec| {
            let key = Key::of(spec.name.as_bytes()).expect("it fits");
            (key.home()..).position(|slot| INDEX.keys[slot % SLOTS] == key).expect("it is there")
        };
        let indexed = || all().filter(|spec| spec.name.len() <= NAME_BYTES_MAX);
        let longest = indexed().max_by_key(probes).expect("not empty");
        assert!(probes(&longest) <= 4, "{}: {}", longest.name, probes(&longest));
        let total: usize = indexed().map(|spec| probes(&spec)).sum();
        assert!(total * 4 <= count(), "{total} extra probes for {} commands", count());
    }

    #[test]
    fn ids_and_specs_are_one_to_one() {
        let mut ids: Vec<_> = all()
            .flat_map(|spec| std::iter::once(spec).chain(spec.subcommands))
            .map(|spec| spec.id)
            .collect();
        assert_eq!(ids.len(), super::super::CommandId::ALL.len());
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids, super::super::CommandId::ALL);
    }
}
