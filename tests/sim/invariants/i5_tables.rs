//! I5: whoever has the map computes the same table from it, whatever it had before.

use korum_protocol::map::{View, check};
use korum_protocol::peer::wire;
use korum_raft::simulated::Applied;

/// From nothing but the map's bytes, as a node or a client that has just come gets them.
pub fn check(step: &Applied) -> Result<(), String> {
    let view = &step.after;
    let (epoch, bytes) = (view.map.epoch, wire::encode(&view.map));
    let map = wire::decode(&bytes).map_err(|error| format!("I5: map {epoch} does not decode: {error}"))?;
    if View::new(map).table != view.table {
        return Err(format!("I5: map {epoch} gives another table than the steps that led to it"));
    }
    check::check(view).map_err(|violations| format!("I5: map {epoch}: {violations:?}"))
}
