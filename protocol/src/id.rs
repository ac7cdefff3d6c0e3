//! The identities and counters of the cluster, a type for each.
//!
//! For: keeping node ids, incarnations, epochs and positions from being mixed up.
//! Not here: how they are minted (chance is the node's business).
//! Next: `map` is built of these.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Who a node is, for ever: minted once, kept in its data directory, never used again.
///
/// Its text form is 40 hexadecimal digits, as Redis Cluster's node names are:
/// the id in 16 digits, then 24 digits derived from it, which guard against typing errors.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
pub struct NodeId(pub u64);

/// Why a text is not a node id.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a node id: expected the 40 hexadecimal digits that CLUSTER MYID prints")]
pub struct InvalidNodeId;

impl NodeId {
    fn digits(self) -> String {
        let mix = |j| crate::placement::hash::sm(self.0, j);
        let tail = format!("{:016x}{:016x}", mix(0), mix(1));
        format!("{:016x}{}", self.0, &tail[..24])
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.digits())
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0 >> 32)
    }
}

impl FromStr for NodeId {
    type Err = InvalidNodeId;

    fn from_str(text: &str) -> Result<Self, InvalidNodeId> {
        let head = text.get(..16).ok_or(InvalidNodeId)?;
        let id = Self(u64::from_str_radix(head, 16).map_err(|_| InvalidNodeId)?);
        if id.digits().eq_ignore_ascii_case(text) { Ok(id) } else { Err(InvalidNodeId) }
    }
}

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
        pub struct $name(pub u64);

        impl $name {
            /// The one after this.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

counter! {
    /// Grows at every start of a node's process, and when a node finds that it was marked down.
    Incarnation
}
counter! {
    /// Version of the cluster map; grows by one with each committed change.
    Epoch
}

/// Which cluster a node belongs to; minted when the cluster is created.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default, Debug)]
pub struct ClusterId(pub u64);

/// How far a copy of a partition has come: the epoch at which its primary became primary
/// (the *era*), and the number of effects since then.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default, Debug)]
pub struct Position {
    /// The epoch at which the primary that wrote this became primary.
    pub era: Epoch,
    /// Effects written in that era.
    pub sequence: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_id_reads_back_what_it_prints() {
        let id = NodeId(0x0123_4567_89ab_cdef);
        assert_eq!(id.to_string().len(), 40);
        assert_eq!(id.to_string().parse(), Ok(id));
    }

    #[test]
    fn node_id_with_a_wrong_digit_is_refused() {
        let mut text = NodeId(7).to_string();
        text.replace_range(39..40, if text.ends_with('0') { "1" } else { "0" });
        assert_eq!(text.parse::<NodeId>(), Err(InvalidNodeId));
    }
}
