//! Small sets of named bits, built at compile time.
//!
//! For: the flags, categories and key flags of `spec`.

/// A set type, a constant per member with the name that Redis prints, and iteration in that order.
/// Members with an empty name are our own and never printed.
macro_rules! bit_set {
    ($(#[$meta:meta])* $name:ident { $($(#[$member_meta:meta])* $member:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        pub struct $name(u32);

        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "the variants only count the bits")]
        const _: () = {
            enum Bit { $($member,)* }
            impl $name {
                $($(#[$member_meta])* pub const $member: Self = Self(1 << Bit::$member as u32);)*
            }
        };

        impl $name {
            const NAMES: &'static [(Self, &'static str)] = &[$((Self::$member, $text),)*];

            /// All that Redis prints.
            #[must_use]
            pub fn all() -> Self {
                let mut set = Self(0);
                Self::NAMES.iter().filter(|(_, name)| !name.is_empty()).for_each(|(member, _)| set.0 |= member.0);
                set
            }

            /// The union of `members`.
            #[must_use]
            pub const fn of(members: &[Self]) -> Self {
                let mut set = Self(0);
                let mut index = 0;
                while index < members.len() {
                    set.0 |= members[index].0;
                    index += 1;
                }
                set
            }

            /// This set and `other`.
            #[must_use]
            pub const fn union(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// Whether all of `other` is in this set.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// The names that Redis prints, in its order.
            pub fn names(self) -> impl Iterator<Item = &'static str> {
                let printed = move |(member, name): &&(Self, &str)| self.contains(*member) && !name.is_empty();
                Self::NAMES.iter().filter(printed).map(|(_, name)| *name)
            }

            /// The member that Redis prints as `name`, in any case.
            #[must_use]
            pub fn named(name: &[u8]) -> Option<Self> {
                let is_it = |(_, text): &&(Self, &str)| !text.is_empty() && text.as_bytes().eq_ignore_ascii_case(name);
                Self::NAMES.iter().find(is_it).map(|(member, _)| *member)
            }
        }
    };
}

pub(super) use bit_set;
