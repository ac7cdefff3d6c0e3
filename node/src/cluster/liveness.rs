//! Who is gone?
//!
//! For: the Raft leader's judgement: heartbeats, broken connections, refused dials and time, to decisions. Pure.
//! Not here: dialing and proposing (`coordinator`), leases (`lease`).
//! Rule: a node is marked down when its last lease has run out, or when its process is proven gone: this leader's
//! own dial was refused (or met another process), no heartbeat came since, and no connection from that run
//! is open; or a later run of the node was heard. What peers report only makes the leader dial. A paused process keeps its sockets, so it is judged by
//! its lease alone.

use std::collections::BTreeMap;
use std::time::Duration;

use korum_protocol::id::{Epoch, Incarnation, NodeId};
use korum_protocol::map::{ClusterMap, Liveness};

use super::lease::{Grants, Timing};
use crate::env::Tick;
use crate::env::mistake::{Mistake, makes};

/// A leader that did not look for so long was stopped itself: what it did not hear meanwhile proves nothing.
const STALL: Duration = Duration::from_millis(250);

/// What the leader should propose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// This run is gone: failover.
    MarkDown {
        /// Who.
        node: NodeId,
        /// Which run.
        incarnation: Incarnation,
        /// How it is known.
        why: Why,
    },
    /// Down for so long that copies are made elsewhere.
    Exclude {
        /// Who.
        node: NodeId,
        /// Which run.
        incarnation: Incarnation,
    },
}

/// How it is known that a run is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// Its last lease ran out and it is silent.
    Silent,
    /// Its process is proven gone.
    Gone,
    /// It said so itself.
    Left,
}

/// What the leader has seen of the nodes since it leads.
#[derive(Debug, Default)]
pub struct Watch {
    seen: BTreeMap<NodeId, Seen>,
    links: BTreeMap<(NodeId, Incarnation), u32>,
    observing_since: Tick,
    looked: Tick,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    incarnation: Incarnation,
    /// Since when the map says, to this leader's knowledge, that it is up.
    up_since: Option<Tick>,
    heard: Option<Tick>,
    /// The newest map that it said it uses.
    epoch: Epoch,
    /// When the leader began the dial that proved the process gone.
    gone: Option<Tick>,
    left: bool,
    down_since: Option<Tick>,
}

impl Watch {
    /// Leadership begins: what was seen earlier is forgotten, open connections are not.
    pub fn lead(&mut self, now: Tick) {
        self.seen.clear();
        self.observing_since = now;
        self.looked = now;
    }

    /// A control or Raft connection from this run was opened (or closed).
    pub fn link(&mut self, node: NodeId, incarnation: Incarnation, opened: bool) {
        let count = self.links.entry((node, incarnation)).or_default();
        *count = if opened { *count + 1 } else { count.saturating_sub(1) };
        if *count == 0 {
            self.links.remove(&(node, incarnation));
        }
    }

    /// Is a control or Raft connection from this run open?
    #[must_use]
    pub fn is_linked(&self, node: NodeId, incarnation: Incarnation) -> bool {
        self.links.contains_key(&(node, incarnation))
    }

    /// A heartbeat of this run arrived; it uses the map of `epoch`.
    pub fn heard(&mut self, node: NodeId, incarnation: Incarnation, epoch: Epoch, now: Tick) {
        let seen = self.entry(node, incarnation);
        if seen.incarnation == incarnation {
            seen.heard = Some(now);
            seen.epoch = seen.epoch.max(epoch);
            seen.gone = None;
        }
    }

    /// Has a heartbeat of this run arrived since this node leads, with a map at least as new as `epoch`?
    #[must_use]
    pub fn has_heard(&self, node: NodeId, incarnation: Incarnation, epoch: Epoch) -> bool {
        let seen = self.seen.get(&node).filter(|seen| seen.incarnation == incarnation);
        seen.is_some_and(|seen| seen.heard.is_some() && seen.epoch >= epoch)
    }

    /// The leader's own dial, begun at `began`, proved that the process of this run is gone.
    pub fn gone(&mut self, node: NodeId, incarnation: Incarnation, began: Tick) {
        let seen = self.entry(node, incarnation);
        if seen.incarnation == incarnation && seen.heard.is_none_or(|heard| heard < began) {
            seen.gone = Some(began);
        }
    }

    /// The leader's own dial was answered by this run after all.
    pub fn answered(&mut self, node: NodeId, incarnation: Incarnation) {
        let seen = self.entry(node, incarnation);
        if seen.incarnation == incarnation {
            seen.gone = None;
        }
    }

    /// This run said that it serves no more.
    pub fn left(&mut self, node: NodeId, incarnation: Incarnation) {
        let seen = self.entry(node, incarnation);
        seen.left |= seen.incarnation == incarnation;
    }

    /// How long a node has been down, as far as this leader knows.
    #[must_use]
    pub fn down_for(&self, node: NodeId, now: Tick) -> Duration {
        let since = self.seen.get(&node).and_then(|seen| seen.down_since);
        since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// Looks at all nodes of the map. To be called at least every 100 ms while this node leads.
    pub fn decide(&mut self, map: &ClusterMap, grants: &Grants, timing: &Timing, now: Tick) -> Vec<Decision> {
        // Whom a leader does not hear while no quorum hears it, it cannot judge: it is the one that is cut off.
        let is_cut_off = grants.unconfirmed_for(now) > 2 * timing.confirm_window;
        if is_cut_off || now.since(self.looked) > STALL {
            self.observing_since = now;
        }
        self.looked = now;
        self.seen.retain(|node, _| map.nodes.contains_key(node));
        map.nodes
            .iter()
            .filter_map(|(&node, record)| {
                let incarnation = record.incarnation;
                match record.liveness {
                    Liveness::Up => {
                        let why = self.is_gone(node, incarnation, grants, timing, now)?;
                        Some(Decision::MarkDown { node, incarnation, why })
                    }
                    Liveness::Down { excluded } => {
                        let since = *self.entry(node, incarnation).down_since.get_or_insert(now);
                        let long = now.since(since) >= timing.rereplicate_after;
                        (long && !excluded).then_some(Decision::Exclude { node, incarnation })
                    }
                }
            })
            .collect()
    }

    fn is_gone(
        &mut self,
        node: NodeId,
        incarnation: Incarnation,
        grants: &Grants,
        timing: &Timing,
        now: Tick,
    ) -> Option<Why> {
        let linked = self.is_linked(node, incarnation);
        let observing_since = self.observing_since;
        let seen = self.entry(node, incarnation);
        seen.down_since = None;
        // A later run has spoken for itself, and may have ended before it was registered.
        if seen.incarnation > incarnation {
            return (seen.left || seen.heard.is_some()).then_some(Why::Gone);
        }
        let up_since = *seen.up_since.get_or_insert(now);
        if seen.left {
            return Some(Why::Left);
        }
        if seen.gone.is_some() && !linked {
            return Some(Why::Gone);
        }
        // A leader that was cut off granted nothing for a while, and a run that has just been registered was granted
        // nothing yet: a node that is alive must have had the time to be heard.
        let silent_since = seen.heard.unwrap_or_default().max(observing_since).max(up_since);
        let patience =
            if makes(Mistake::NoTakeoverWait) { timing.confirm_window } else { timing.lease_end() };
        let silent = now.since(silent_since) >= patience;
        // Nor does it decide meanwhile: the decision would lie in its log, and be agreed once it is back.
        let may_judge = grants.is_confirmed(timing, now);
        (silent && may_judge && grants.has_run_out(node, incarnation, timing, now)).then_some(Why::Silent)
    }

    fn entry(&mut self, node: NodeId, incarnation: Incarnation) -> &mut Seen {
        let fresh = Seen {
            incarnation,
            up_since: None,
            heard: None,
            epoch: Epoch(0),
            gone: None,
            left: false,
            down_since: None,
        };
        let seen = self.seen.entry(node).or_insert(fresh);
        if incarnation > seen.incarnation {
            *seen = fresh;
        }
        seen
    }
}

/// Recent proofs that runs are gone, as this node saw them; kept by all, so that a new leader starts from them.
#[derive(Debug, Default)]
pub struct EvidenceLog {
    seen: BTreeMap<NodeId, (Incarnation, Tick)>,
}

impl EvidenceLog {
    /// How long evidence is repeated: longer than an election and a takeover.
    const KEPT: Duration = Duration::from_secs(10);

    /// A dial proved this run gone; true if that was not known yet.
    pub fn add(&mut self, node: NodeId, incarnation: Incarnation, now: Tick) -> bool {
        let known = self.seen.insert(node, (incarnation, now));
        known.is_none_or(|(known, at)| known != incarnation || now.since(at) > Self::KEPT)
    }

    /// The node answered (or is down in the map): the evidence is settled.
    pub fn clear(&mut self, node: NodeId) {
        self.seen.remove(&node);
    }

    /// Is this run known to be gone?
    #[must_use]
    pub fn holds(&self, node: NodeId, incarnation: Incarnation, now: Tick) -> bool {
        self.seen.get(&node).is_some_and(|(known, at)| *known == incarnation && now.since(*at) <= Self::KEPT)
    }

    /// What is still recent, in message form.
    #[must_use]
    pub fn recent(&mut self, now: Tick) -> Vec<korum_protocol::peer::message::Evidence> {
        self.seen.retain(|_, (_, at)| now.since(*at) <= Self::KEPT);
        self.seen
            .iter()
            .take(korum_protocol::peer::message::EVIDENCE_MAX)
            .map(|(&node, &(incarnation, at))| korum_protocol::peer::message::Evidence {
                node,
                incarnation,
                age_ms: now.since(at).as_millis() as u32,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
