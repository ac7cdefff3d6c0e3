//! Faults of wires, which may overlap.
//!
//! For: what a wire is while several things are wrong with it, and what is left when one of them ends.
//! Not here: which wires, and for how long (`kinds`).

use std::net::Ipv4Addr;

use korum_node::env::simulated::network;
use korum_node::env::simulated::network::Wire;

/// From which machine to which.
pub type Way = (Ipv4Addr, Ipv4Addr);

/// What is wrong with which wires.
#[derive(Default)]
pub struct Wires {
    made: u64,
    causes: Vec<(u64, Vec<Way>, Wire)>,
}

impl Wires {
    /// From now on this is wrong with these. Gives a number, for [`Wires::end`].
    pub fn begin(&mut self, ways: Vec<Way>, wire: Wire) -> u64 {
        self.made += 1;
        self.causes.push((self.made, ways.clone(), wire));
        self.set(&ways);
        self.made
    }

    /// It is wrong no more.
    pub fn end(&mut self, cause: u64) {
        if let Some(place) = self.causes.iter().position(|(number, ..)| *number == cause) {
            let (_, ways, _) = self.causes.remove(place);
            self.set(&ways);
        }
    }

    fn set(&self, ways: &[Way]) {
        for way in ways {
            let wrong = self.causes.iter().filter(|(_, ways, _)| ways.contains(way));
            let wire = wrong.fold(Wire::default(), |wire, (.., wrong)| wire.and(*wrong));
            network(|network| network.set_wire(way.0, way.1, wire));
        }
    }
}
