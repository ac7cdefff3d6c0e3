//! Places on earth: sorted sets whose scores are cells of the globe.
//!
//! For: the facts of the family, as data.
//! Not here: parsing options and executing: the node's `command` does both.

use super::keys::KeysError;
use super::{CommandSpec, KeyFlags, KeySpec};
use crate::resp::Args;

/// Reads one key.
const READ: KeySpec = KeySpec::one(1, &[KeyFlags::RO, KeyFlags::ACCESS]);
/// Changes one key.
const UPDATE: KeySpec = KeySpec::one(1, &[KeyFlags::RW, KeyFlags::UPDATE]);
/// Overwrites the first key.
const OVERWRITE: KeySpec = KeySpec::one(1, &[KeyFlags::OW, KeyFlags::UPDATE]);
/// Reads the second key.
const READ_SECOND: KeySpec = KeySpec::one(2, &[KeyFlags::RO, KeyFlags::ACCESS]);
/// Overwrites the key behind a word, which stands behind `from` arguments.
const fn overwrite_after(word: &'static str, from: u8) -> KeySpec {
    KeySpec::after(word, from, &[KeyFlags::OW, KeyFlags::UPDATE])
}
/// Of `GEORADIUS`.
const STORE: KeySpec = overwrite_after("STORE", 6);
/// Of `GEORADIUS`.
const STORE_DISTANCES: KeySpec = overwrite_after("STOREDIST", 6);
/// Of `GEORADIUSBYMEMBER`.
const STORE_BY_MEMBER: KeySpec = overwrite_after("STORE", 5);
/// Of `GEORADIUSBYMEMBER`.
const STORE_DISTANCES_BY_MEMBER: KeySpec = overwrite_after("STOREDIST", 5);

/// The set, and the destination: the last one that is named.
fn keys_of_radius(_: &CommandSpec, args: &Args<'_>) -> Result<Vec<usize>, KeysError> {
    let mut keys = vec![1];
    let mut at = 5;
    while at + 1 < args.len() {
        if ["store", "storedist"].iter().any(|word| args[at].eq_ignore_ascii_case(word.as_bytes())) {
            at += 1;
            keys.truncate(1);
            keys.push(at);
        }
        at += 1;
    }
    Ok(keys)
}

commands! {
    /// The commands of this family.
    pub(super) static COMMANDS: Geo;

    GeoAdd "geoadd" -5 [WRITE DENYOOM] [UPDATE] "3.2.0" "O(log N) for each place"
        "Adds places to a sorted set or moves them";
    GeoDist "geodist" -4 [READONLY] [READ] "3.2.0" "O(1)"
        "Returns the distance between two places";
    GeoHash "geohash" -2 [READONLY] [READ] "3.2.0" "O(N) with N places asked for"
        "Returns places as geohashes of eleven letters";
    GeoPos "geopos" -2 [READONLY] [READ] "3.2.0" "O(N) with N places asked for"
        "Returns places as longitude and latitude";
    GeoSearch "geosearch" -7 [READONLY] [READ] "6.2.0" "O(N + log M) with N places around the area, M in the set"
        "Returns the places in a circle or box";
    GeoSearchStore "geosearchstore" -8 [WRITE DENYOOM] [OVERWRITE READ_SECOND] "6.2.0"
        "O(N + log M) with N places around the area, M in the set"
        "Stores the places in a circle or box";
    GeoRadius "georadius" -6 [WRITE DENYOOM MOVABLEKEYS] [READ STORE STORE_DISTANCES] "3.2.0"
        "O(N + log M) with N places around the area, M in the set"
        "Returns or stores the places around a position"
        { .find_keys(keys_of_radius).deprecated("6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with `BYRADIUS`") };
    GeoRadiusByMember "georadiusbymember" -5 [WRITE DENYOOM MOVABLEKEYS]
        [READ STORE_BY_MEMBER STORE_DISTANCES_BY_MEMBER] "3.2.0"
        "O(N + log M) with N places around the area, M in the set"
        "Returns or stores the places around a member"
        { .find_keys(keys_of_radius)
            .deprecated("6.2.0", "`GEOSEARCH` and `GEOSEARCHSTORE` with `BYRADIUS` and `FROMMEMBER`") };
    GeoRadiusRo "georadius_ro" -6 [READONLY] [READ] "3.2.10"
        "O(N + log M) with N places around the area, M in the set"
        "Returns the places around a position" { .deprecated("6.2.0", "`GEOSEARCH` with `BYRADIUS`") };
    GeoRadiusByMemberRo "georadiusbymember_ro" -5 [READONLY] [READ] "3.2.10"
        "O(N + log M) with N places around the area, M in the set"
        "Returns the places around a member" { .deprecated("6.2.0", "`GEOSEARCH` with `BYRADIUS` and `FROMMEMBER`") };
}
