//! What is known of a command without running it.
//!
//! For: [`CommandSpec`] and the words it is made of; the `commands!` macro in which families list theirs.
//! Not here: the words (`flags`), the lists (`string`, `key`, …), finding one (`table`), printing (`introspect`).
//! Facts follow Redis 7.0 and are compared with it by `tests/resp_commands.rs`.

use super::flags::{Categories, Flags, KeyFlags};
use super::id::CommandId;
use super::keys::FindKeys;

/// Where some of the keys stand, and what happens to them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeySpec {
    /// What the command does with these keys.
    pub flags: KeyFlags,
    /// How they are found.
    pub form: KeyForm,
    /// Index of the first of them, or of their number; the name is argument 0.
    pub first: u8,
    /// The last one: relative to the first, or from the end when negative (-1 is the last argument).
    pub last: i8,
    /// Distance from one key to the next.
    pub step: u8,
}

/// How keys are found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyForm {
    /// From `first` to `last`.
    Range,
    /// Argument `first` says how many follow it.
    Counted,
    /// Behind a word.
    After {
        /// The word, in upper case.
        word: &'static str,
        /// Where the search for it begins.
        from: u8,
        /// Of what is left, the keys are the first of so many equal parts; 0: all.
        parts: u8,
    },
    /// The command knows; see [`CommandSpec::find_keys`].
    Unknown,
}

impl KeySpec {
    /// One key at `first`.
    #[must_use]
    pub const fn one(first: u8, flags: &[KeyFlags]) -> Self {
        Self { flags: KeyFlags::of(flags), form: KeyForm::Range, first, last: 0, step: 1 }
    }

    /// Several keys from argument 1 on.
    #[must_use]
    pub const fn many(last: i8, step: u8, flags: &[KeyFlags]) -> Self {
        Self { flags: KeyFlags::of(flags), form: KeyForm::Range, first: 1, last, step }
    }

    /// Several keys behind their number, which is argument `first`.
    #[must_use]
    pub const fn counted(first: u8, flags: &[KeyFlags]) -> Self {
        Self { flags: KeyFlags::of(flags), form: KeyForm::Counted, first, last: 0, step: 1 }
    }

    /// The key behind `word`, which is searched from argument `from` on.
    #[must_use]
    pub const fn after(word: &'static str, from: u8, flags: &[KeyFlags]) -> Self {
        let form = KeyForm::After { word, from, parts: 0 };
        Self { flags: KeyFlags::of(flags), form, first: 0, last: 0, step: 1 }
    }

    /// The first half of what stands behind `word`.
    #[must_use]
    pub const fn first_half_after(word: &'static str, from: u8, flags: &[KeyFlags]) -> Self {
        let form = KeyForm::After { word, from, parts: 2 };
        Self { flags: KeyFlags::of(flags), form, first: 0, last: -1, step: 1 }
    }

    /// Keys that only the command finds.
    #[must_use]
    pub const fn unknown(flags: &[KeyFlags]) -> Self {
        Self { flags: KeyFlags::of(flags), form: KeyForm::Unknown, first: 0, last: 0, step: 0 }
    }
}

/// The chapter in which a command is documented.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Group {
    /// Keys of any type.
    Generic,
    /// Strings.
    String,
    /// Hashes.
    Hash,
    /// Lists.
    List,
    /// Sets.
    Set,
    /// Sorted sets.
    SortedSet,
    /// Strings as bits.
    Bitmap,
    /// Estimated counts.
    HyperLogLog,
    /// Places on earth.
    Geo,
    /// Streams.
    Stream,
    /// Publish and subscribe.
    PubSub,
    /// Several commands as one.
    Transactions,
    /// Scripts and functions.
    Scripting,
    /// The connection itself.
    Connection,
    /// The server as a whole.
    Server,
    /// What Redis Cluster clients ask.
    Cluster,
    /// Korum's own.
    Korum,
}

impl Group {
    /// The name that `COMMAND DOCS` prints.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::String => "string",
            Self::Hash => "hash",
            Self::List => "list",
            Self::Set => "set",
            Self::SortedSet => "sorted-set",
            Self::Bitmap => "bitmap",
            Self::HyperLogLog => "hyperloglog",
            Self::Geo => "geo",
            Self::Stream => "stream",
            Self::PubSub => "pubsub",
            Self::Scripting => "scripting",
            Self::Connection => "connection",
            Self::Server => "server",
            Self::Cluster => "cluster",
            Self::Transactions => "transactions",
            Self::Korum => "korum",
        }
    }

    /// The category that most commands of the chapter are in.
    const fn category(self) -> Categories {
        match self {
            Self::Generic => Categories::KEYSPACE,
            Self::String => Categories::STRING,
            Self::Hash => Categories::HASH,
            Self::List => Categories::LIST,
            Self::Set => Categories::SET,
            Self::SortedSet => Categories::SORTEDSET,
            Self::Bitmap => Categories::BITMAP,
            Self::HyperLogLog => Categories::HYPERLOGLOG,
            Self::Geo => Categories::GEO,
            Self::Stream => Categories::STREAM,
            Self::PubSub => Categories::PUBSUB,
            Self::Scripting => Categories::SCRIPTING,
            Self::Connection => Categories::CONNECTION,
            Self::Transactions => Categories::TRANSACTION,
            Self::Server | Self::Cluster | Self::Korum => Categories::of(&[]),
        }
    }
}

/// One command, or one subcommand of a container.
#[derive(Debug)]
pub struct CommandSpec {
    /// Lower case, without its container: `setname`.
    pub name: &'static str,
    /// Lower case, with its container: `client|setname`. Equal to `name` at the top level.
    pub full_name: &'static str,
    /// What the node matches on.
    pub id: CommandId,
    /// Number of arguments, names included; negative when that is the least.
    pub arity: i16,
    /// How it behaves.
    pub flags: Flags,
    /// Index of the first key, 0 when there is none.
    pub first_key: i16,
    /// Index of the last key; from the end when negative.
    pub last_key: i16,
    /// Distance from one key to the next.
    pub key_step: i16,
    /// Where the keys stand and what happens to them.
    pub keys: &'static [KeySpec],
    /// Finds the keys of a command whose keys have no fixed place.
    pub find_keys: Option<FindKeys>,
    /// Categories of rights.
    pub categories: Categories,
    /// The chapter it is documented in.
    pub group: Group,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// The version of Redis (of Korum, for its own) that first had it.
    pub since: &'static str,
    /// Time it takes.
    pub complexity: &'static str,
    /// Hints for clients: how to route it and how to merge replies.
    pub tips: &'static [&'static str],
    /// Version since which it is deprecated, and what replaces it.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// For the inside only: documented as a system command.
    pub is_system: bool,
    /// Of a container: what it contains.
    pub subcommands: &'static [CommandSpec],
}

impl CommandSpec {
    /// A command without keys and with the usual category of its group.
    pub(super) const fn new(
        (id, full_name, arity): (CommandId, &'static str, i16),
        (group, since, complexity, summary): (Group, &'static str, &'static str, &'static str),
    ) -> Self {
        Self {
            name: after_container(full_name),
            full_name,
            id,
            arity,
            flags: Flags::of(&[]),
            first_key: 0,
            last_key: 0,
            key_step: 0,
            keys: &[],
            find_keys: None,
            categories: group.category(),
            group,
            summary,
            since,
            complexity,
            tips: &[],
            deprecated: None,
            is_system: false,
            subcommands: &[],
        }
    }

    /// Sets the flags and the categories that follow from them.
    pub(super) const fn flags(mut self, flags: &[Flags]) -> Self {
        self.flags = Flags::of(flags);
        let mut index = 0;
        while index < IMPLIED.len() {
            let (flag, categories) = IMPLIED[index];
            if self.flags.contains(flag) {
                self.categories = self.categories.union(categories);
            }
            index += 1;
        }
        let pace = if self.flags.contains(Flags::FAST) { Categories::FAST } else { Categories::SLOW };
        self.categories = self.categories.union(pace);
        self
    }

    /// Sets the places of the keys, and first, last and step from those with a fixed place: they stand side by side.
    pub(super) const fn keys(mut self, keys: &'static [KeySpec]) -> Self {
        self.keys = keys;
        let mut index = 0;
        while index < keys.len() {
            let key = keys[index];
            if matches!(key.form, KeyForm::Range) {
                if self.first_key == 0 {
                    self.first_key = key.first as i16;
                    self.key_step = key.step as i16;
                }
                self.last_key =
                    if key.last < 0 { key.last as i16 } else { key.first as i16 + key.last as i16 };
            }
            index += 1;
        }
        self
    }

    /// Sets what finds the keys where the specifications say more or less than the truth.
    pub(super) const fn find_keys(mut self, find: FindKeys) -> Self {
        self.find_keys = Some(find);
        self
    }

    /// Adds categories beyond those of group and flags.
    pub(super) const fn also(mut self, categories: &[Categories]) -> Self {
        self.categories = self.categories.union(Categories::of(categories));
        self
    }

    /// Takes the group's category away: containers, and a few of the server's kind, have none.
    pub(super) const fn plain(mut self) -> Self {
        self.categories = Categories::of(&[]);
        let flags = self.flags;
        self.flags(&[flags])
    }

    /// Sets exactly these categories: commands that run scripts are in those of scripts alone.
    pub(super) const fn only(mut self, categories: &[Categories]) -> Self {
        self.categories = Categories::of(categories);
        self
    }

    pub(super) const fn tips(mut self, tips: &'static [&'static str]) -> Self {
        self.tips = tips;
        self
    }

    pub(super) const fn deprecated(mut self, since: &'static str, replaced_by: &'static str) -> Self {
        self.deprecated = Some((since, replaced_by));
        self
    }

    pub(super) const fn system(mut self) -> Self {
        self.is_system = true;
        self
    }

    pub(super) const fn subcommands(mut self, subcommands: &'static [CommandSpec]) -> Self {
        self.subcommands = subcommands;
        self
    }

    /// Whether `count` arguments, names included, are a number that this command takes.
    #[must_use]
    pub const fn accepts(&self, count: usize) -> bool {
        let least = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { count >= least } else { count == least }
    }
}

/// Categories that follow from flags.
const IMPLIED: &[(Flags, Categories)] = &[
    (Flags::WRITE, Categories::WRITE),
    (Flags::READONLY, Categories::READ),
    (Flags::ADMIN, Categories::of(&[Categories::ADMIN, Categories::DANGEROUS])),
    (Flags::PUBSUB, Categories::PUBSUB),
    (Flags::BLOCKING, Categories::BLOCKING),
];

const fn after_container(full_name: &'static str) -> &'static str {
    let bytes = full_name.as_bytes();
    let mut index = 0;
    while index < bytes.len() {
        if bytes[index] == b'|' {
            return full_name.split_at(index + 1).1;
        }
        index += 1;
    }
    full_name
}

/// Lists commands, two lines each: id, name, arity, flags, keys, since and complexity; then the
/// summary, and in braces whatever else the builder of [`CommandSpec`] is to be told.
macro_rules! commands {
    (
        $(#[$meta:meta])* $visibility:vis static $list:ident: $group:ident;
        $($id:ident $name:literal $arity:literal [$($flag:ident)*] [$($key:ident)*] $since:literal $complexity:literal
            $summary:literal $({ $($more:tt)* })?;)*
    ) => {
        $(#[$meta])*
        $visibility static $list: &[$crate::command::CommandSpec] = &[$(
            $crate::command::CommandSpec::new(
                ($crate::command::CommandId::$id, $name, $arity),
                ($crate::command::Group::$group, $since, $complexity, $summary),
            )
            .flags(&[$($crate::command::Flags::$flag),*])
            .keys(&[$($key),*])
            $($($more)*)?,
        )*];
    };
}
