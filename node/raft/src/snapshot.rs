//! A snapshot's bytes: the map as it stood at some entry.
//!
//! For: encoding and checked decoding, the same bytes on disk and on the wire.
//! Not here: files (`files`), when one is made (openraft's policy, set in `consensus`).

use bytes::Bytes;
use korum_protocol::limits::CONTROL_FRAME_BYTES_MAX;
use korum_protocol::map::{ClusterMap, View};
use korum_protocol::peer::wire;
use serde::{Deserialize, Serialize};

use super::types::{LogId, SnapshotMeta, StoredMembership};

/// Version of a snapshot's bytes.
const VERSION: u8 = 1;
/// Longest snapshot, bytes: what a decoder may allocate.
pub const SNAPSHOT_BYTES_MAX: usize = CONTROL_FRAME_BYTES_MAX;

/// What a snapshot holds.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct Content {
    /// The last entry that is in it.
    pub applied: Option<LogId>,
    /// Who votes and who follows.
    pub membership: StoredMembership,
    /// The map; `None` before the cluster was created.
    pub map: Option<ClusterMap>,
}

/// Why bytes are not a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Written by a later build.
    #[error("a snapshot of version {0:?}, this build reads version {VERSION}")]
    Version(Option<u8>),
    /// Not what the version promises.
    #[error(transparent)]
    Content(#[from] wire::WireError),
    /// A map that no sound node can have.
    #[error("a snapshot of an impossible map: {}", .0.join("; "))]
    Map(Vec<String>),
}

impl Content {
    /// The bytes of this content.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&wire::encode(self));
        bytes
    }

    /// The content of these bytes, and the view of its map; every relation in it is checked.
    pub fn decode(bytes: &[u8]) -> Result<(Self, Option<View>), SnapshotError> {
        let content: Self = match bytes.split_first() {
            Some((&VERSION, body)) => wire::decode(body)?,
            other => return Err(SnapshotError::Version(other.map(|(version, _)| *version))),
        };
        let view = content.map.clone().map(View::checked).transpose().map_err(SnapshotError::Map)?;
        Ok((content, view))
    }
}

/// A snapshot as it lies on disk and in memory.
#[derive(Serialize, Deserialize, Clone)]
pub struct Stored {
    /// What openraft is told of it.
    pub meta: SnapshotMeta,
    /// [`Content`], encoded.
    pub data: Bytes,
}

impl From<Content> for Stored {
    /// The same content has the same name, wherever it was made, and other content has another.
    fn from(content: Content) -> Self {
        let data = content.encode();
        let at = content.applied.map_or_else(|| "empty".to_owned(), |at| at.to_string());
        let snapshot_id = format!("{at}-{:08x}", crc32fast::hash(&data));
        let meta =
            SnapshotMeta { last_log_id: content.applied, last_membership: content.membership, snapshot_id };
        Self { meta, data: data.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_reads_back_and_other_bytes_are_refused() {
        let content = Content { applied: None, membership: StoredMembership::default(), map: None };
        let bytes = content.encode();
        assert_eq!(Content::decode(&bytes).expect("just encoded").0, content);
        assert!(matches!(Content::decode(&[]), Err(SnapshotError::Version(None))));
        assert!(matches!(Content::decode(&[9, 0]), Err(SnapshotError::Version(Some(9)))));
        for cut in 1..bytes.len() {
            assert!(Content::decode(&bytes[..cut]).is_err());
        }
    }
}
