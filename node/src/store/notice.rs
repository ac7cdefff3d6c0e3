//! Keyspace events: what commands tell of keys, for those who listen.
//!
//! For: the classes of events, as `notify-keyspace-events` names them, and the events of one command, collected; and
//! which keys it changes, for clients that keep what they read.
//! Not here: handing them to those who listen (`dispatch::publish`).

use bytes::Bytes;

use super::reserved::is_reserved;

/// A set of classes of events, and of the two forms in which they are told.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Classes(u16);

/// Letters of `notify-keyspace-events`, in the order of the bits.
const LETTERS: &str = "KEg$lshzxetmdn";
/// The classes that `A` stands for.
const ALL: &str = "g$lshzxetd";

impl Classes {
    /// Told on a channel of the key.
    pub const KEYSPACE: Self = Self(1 << 0);
    /// Told on a channel of the event.
    pub const KEYEVENT: Self = Self(1 << 1);
    /// Commands on keys of any type.
    pub const GENERIC: Self = Self(1 << 2);
    /// Strings.
    pub const STRING: Self = Self(1 << 3);
    /// Lists.
    pub const LIST: Self = Self(1 << 4);
    /// Sets.
    pub const SET: Self = Self(1 << 5);
    /// Hashes.
    pub const HASH: Self = Self(1 << 6);
    /// Sorted sets.
    pub const SORTED_SET: Self = Self(1 << 7);
    /// Keys whose time was over.
    pub const EXPIRED: Self = Self(1 << 8);
    /// Keys that were removed to make room.
    pub const EVICTED: Self = Self(1 << 9);
    /// Streams.
    pub const STREAM: Self = Self(1 << 10);
    /// Keys that were read and not there.
    pub const MISS: Self = Self(1 << 11);
    /// Keys that were not there before.
    pub const NEW: Self = Self(1 << 13);

    /// The set that a valid text names. Without a form nothing is told, so it is empty.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let bit = |letter: char| LETTERS.find(letter).map_or(0, |at| 1 << at);
        let bits = text.chars().fold(0, |bits, letter| match letter {
            'A' => ALL.chars().fold(bits, |bits, letter| bits | bit(letter)),
            letter => bits | bit(letter),
        });
        if bits & (Self::KEYSPACE.0 | Self::KEYEVENT.0) == 0 { Self::default() } else { Self(bits) }
    }

    /// The bits, to be kept in an atomic.
    #[must_use]
    pub fn bits(self) -> u16 {
        self.0
    }

    /// The set of these bits.
    #[must_use]
    pub fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Whether all of `other` is in it.
    #[must_use]
    #[inline]
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Something happened to a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    /// What: `set`, `expired`.
    pub event: &'static str,
    /// To which key, as it is stored.
    pub key: Bytes,
}

/// The events of one command, as far as they are wanted.
#[derive(Default, Debug)]
pub struct Notices {
    wanted: Classes,
    list: Vec<Notice>,
    /// Somebody wants to know which keys change.
    is_tracked: bool,
    touched: Vec<Bytes>,
    is_all_touched: bool,
    /// What a script has published: channel and message.
    published: Vec<(Bytes, Bytes)>,
}

impl Notices {
    /// Tells which are wanted from now on.
    pub fn want(&mut self, classes: Classes) {
        self.wanted = classes;
    }

    /// Collects an event, if its class is wanted.
    #[inline]
    pub fn add(&mut self, class: Classes, event: &'static str, key: &[u8]) {
        if self.wanted.contains(class) {
            self.list.push(Notice { event, key: Bytes::copy_from_slice(key) });
        }
    }

    /// Whether a class is wanted, for those who have to look for what they tell.
    #[must_use]
    #[inline]
    pub fn wants(&self, class: Classes) -> bool {
        self.wanted.contains(class)
    }

    /// Nothing was collected.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.published.is_empty()
    }

    /// Publishes a message together with what the command does.
    pub fn publish(&mut self, channel: &[u8], message: &[u8]) {
        self.published.push((Bytes::copy_from_slice(channel), Bytes::copy_from_slice(message)));
    }

    /// Takes the messages that were published.
    #[must_use]
    pub fn take_published(&mut self) -> Vec<(Bytes, Bytes)> {
        std::mem::take(&mut self.published)
    }

    /// Takes what was collected, and in which forms it is told.
    #[must_use]
    pub fn take(&mut self) -> (Classes, Vec<Notice>) {
        (self.wanted, std::mem::take(&mut self.list))
    }

    /// Tells whether the keys that change from now on are wanted.
    pub fn track(&mut self, is_tracked: bool) {
        self.is_tracked = is_tracked;
    }

    /// A key changes; `None`: all keys do.
    #[inline]
    pub fn touch(&mut self, key: Option<&[u8]>) {
        if self.is_tracked {
            match key {
                Some(key) if is_reserved(key) => {}
                Some(key) if self.touched.last().is_none_or(|last| last != key) => {
                    self.touched.push(Bytes::copy_from_slice(key));
                }
                Some(_) => {}
                None => self.is_all_touched = true,
            }
        }
    }

    /// Keys have changed, and somebody wants to know.
    #[must_use]
    #[inline]
    pub fn has_touched(&self) -> bool {
        !self.touched.is_empty() || self.is_all_touched
    }

    /// Takes the keys that have changed, and whether all have.
    #[must_use]
    pub fn take_touched(&mut self) -> (Vec<Bytes>, bool) {
        (std::mem::take(&mut self.touched), std::mem::take(&mut self.is_all_touched))
    }

    /// Forgets what was collected.
    pub fn clear(&mut self) {
        self.list.clear();
        self.touched.clear();
        self.is_all_touched = false;
        self.published.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_redis() {
        let all = Classes::parse("AKE");
        for class in
            [Classes::GENERIC, Classes::STRING, Classes::SORTED_SET, Classes::EXPIRED, Classes::STREAM]
        {
            assert!(all.contains(class));
        }
        assert!(!all.contains(Classes::MISS) && !all.contains(Classes::NEW));
        assert!(Classes::parse("Km").contains(Classes::MISS) && Classes::parse("nE").contains(Classes::NEW));
        assert_eq!(Classes::parse("A"), Classes::default(), "in no form");
        let expired = Classes::parse("Ex");
        assert!(expired.contains(Classes::EXPIRED) && !expired.contains(Classes::KEYSPACE));
        assert_eq!(Classes::from_bits(expired.bits()), expired);
    }

    #[test]
    fn only_what_is_wanted_is_collected() {
        let mut notices = Notices::default();
        notices.add(Classes::STRING, "set", b"a");
        assert!(notices.is_empty());
        notices.want(Classes::parse("E$"));
        notices.add(Classes::STRING, "set", b"a");
        notices.add(Classes::GENERIC, "del", b"a");
        notices.touch(Some(b"a"));
        assert!(!notices.has_touched());
        notices.track(true);
        for key in [b"a", b"a", b"b"] {
            notices.touch(Some(key));
        }
        assert_eq!(notices.take_touched(), (vec![Bytes::from_static(b"a"), Bytes::from_static(b"b")], false));
        notices.touch(None);
        assert!(notices.has_touched() && notices.take_touched().1 && !notices.has_touched());
        let (classes, list) = notices.take();
        assert_eq!(list, [Notice { event: "set", key: Bytes::from_static(b"a") }]);
        assert!(classes.contains(Classes::KEYEVENT) && notices.is_empty());
    }
}
