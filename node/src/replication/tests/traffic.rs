//! What travels on the connections.

use std::sync::Arc;

use korum_protocol::id::Epoch;

use super::world::{PARTITION, Sim, count, id};
use crate::replication::history::Path;
use crate::replication::link::Lane;
use crate::replication::message::{self, Body, Message};
use crate::replication::replica;
use crate::store::{Garbage, Partition, Source};

impl Sim {
    pub(super) fn send(&mut self, at: usize) {
        let wire = &mut self.wires[at];
        let speaking = self.views[self.nodes[wire.from].adopted].map.epoch;
        if wire.link.is_broken() {
            return;
        }
        if let Some((last, messages)) = wire.link.try_take() {
            wire.frames.push_back((speaking, Lane::Small, last, messages.into_bytes()));
            self.passed += usize::from(wire.cut.is_some());
        } else if wire.cut.is_none()
            && let Some((last, messages)) = wire.link.try_take_large()
        {
            wire.cut = Some((speaking, Lane::Large, last, messages.into_bytes()));
            self.say_something_else(at);
        }
    }

    /// The link carries other partitions too.
    pub(super) fn say_something_else(&mut self, at: usize) {
        let body = Body::Compare { question: 0, path: Path::new() };
        self.wires[at].link.append(&Message { partition: PARTITION + 1, era: Epoch(0), body });
    }

    /// The last piece of a large frame is sent.
    pub(super) fn send_last_piece(&mut self, at: usize) {
        let wire = &mut self.wires[at];
        if !wire.link.is_broken() {
            wire.frames.extend(wire.cut.take());
        }
    }

    pub(super) fn deliver(&mut self, at: usize) {
        let wire = &mut self.wires[at];
        let (from, to) = (wire.from, wire.to);
        let Some((epoch, lane, last, bytes)) = wire.frames.front().cloned() else { return };
        let view = Arc::clone(&self.views[self.nodes[to].routed]);
        let messages = || {
            let mut input = &bytes[..];
            std::iter::from_fn(move || (!input.is_empty()).then(|| message::decode(&mut input).unwrap()))
                .filter(|message| message.partition == PARTITION)
        };
        if !wire.is_superseded
            && (view.map.epoch < epoch || messages().any(|message| message.era > view.map.epoch))
        {
            return;
        }
        wire.frames.pop_front();
        if wire.is_superseded || !self.nodes[to].is_alive {
            return;
        }
        let (mut compared, mut garbage) = (Vec::new(), Garbage::default());
        for message in messages() {
            let partition = &mut self.nodes[to].partition;
            let (row, source) = (view.row(PARTITION), Source::of(bytes.clone()));
            match replica::receive(partition, id(to), id(from), row, &message, &source, &mut garbage) {
                Ok(answer) => compared.extend(answer),
                Err(_) => {
                    let wire = &mut self.wires[at];
                    wire.frames.clear();
                    let link = Arc::clone(&wire.link);
                    return self.close(&link);
                }
            }
        }
        let wire = &mut self.wires[at];
        match lane {
            Lane::Small => (wire.applied.small, self.small) = (last, self.small + 1),
            Lane::Large => (wire.applied.large, self.large) = (last, self.large + 1),
        }
        if !wire.link.is_broken() {
            wire.answers.push_back((wire.applied, compared));
        }
    }

    pub(super) fn hear(&mut self, at: usize) {
        let wire = &mut self.wires[at];
        let Some((last, compared)) = wire.answers.pop_front() else { return };
        let link = Arc::clone(&wire.link);
        for answer in compared {
            let Partition { role, keyspace, history, .. } = &mut self.nodes[wire.from].partition;
            let Some(primary) = role.primary_mut().filter(|primary| primary.era == answer.era) else {
                continue;
            };
            if primary.compared(link.peer, &link, answer) {
                let sent = primary.catch_up(PARTITION, history, keyspace, link.peer, self.chunk_bytes);
                count(&mut self.sent, sent);
            }
        }
        link.acknowledge(last).unwrap();
    }
}
