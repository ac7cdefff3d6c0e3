//! Which member gets which commands.
//!
//! For: grouping commands by the member that serves them, positions kept.
//! Not here: sockets, answers (`pipeline` puts them back in order).

use crate::topology::{MemberIndex, Topology};

/// Where a command may run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Route {
    /// At the primary of this slot.
    Slot(u16),
    /// At any node, which answers for the whole cluster: the command names no key.
    AnyNode,
}

/// Commands for one member, by their positions in the batch, ascending.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    /// Who; for `AnyNode` commands the connection to its client port.
    pub(crate) member: MemberIndex,
    /// True for the commands that name no key.
    pub(crate) whole: bool,
    /// Which commands.
    pub(crate) positions: Vec<usize>,
}

/// Targets, and the commands that nobody serves at present.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Targets {
    /// In order of first use.
    pub(crate) served: Vec<Target>,
    /// Positions without a primary.
    pub(crate) unserved: Vec<usize>,
}

/// Groups `routes` (position, route) by member; `any_turn` chooses the node of keyless commands.
pub(crate) fn group(
    topology: &Topology,
    routes: impl IntoIterator<Item = (usize, Route)>,
    any_turn: usize,
) -> Targets {
    let mut targets = Targets::default();
    for (position, route) in routes {
        let (member, whole) = match route {
            Route::Slot(slot) => (topology.primary_of(slot), false),
            Route::AnyNode => (topology.nth_up(any_turn), true),
        };
        let Some(member) = member else {
            targets.unserved.push(position);
            continue;
        };
        // Few members: a scan beats a map.
        match targets.served.iter_mut().find(|target| target.member == member && target.whole == whole) {
            Some(target) => target.positions.push(position),
            None => targets.served.push(Target { member, whole, positions: vec![position] }),
        }
    }
    targets
}

/// Groups keys by slot, in order of first use: one single-slot command each, positions kept.
pub(crate) fn by_slot(slots: impl IntoIterator<Item = u16>) -> Vec<(u16, Vec<usize>)> {
    let mut groups: Vec<(u16, Vec<usize>)> = Vec::new();
    let mut group_of = std::collections::HashMap::new();
    for (position, slot) in slots.into_iter().enumerate() {
        let group = *group_of.entry(slot).or_insert_with(|| {
            groups.push((slot, Vec::new()));
            groups.len() - 1
        });
        groups[group].1.push(position);
    }
    groups
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::topology;

    proptest! {
        #[test]
        fn every_key_is_in_exactly_one_group_in_order(slots in prop::collection::vec(0u16..50, 0..200)) {
            let groups = by_slot(slots.iter().copied());
            let mut seen = vec![false; slots.len()];
            for (slot, positions) in &groups {
                prop_assert!(positions.windows(2).all(|pair| pair[0] < pair[1]));
                for &position in positions {
                    prop_assert_eq!(slots[position], *slot);
                    prop_assert!(!std::mem::replace(&mut seen[position], true));
                }
            }
            prop_assert!(seen.into_iter().all(|seen| seen));
        }

        #[test]
        fn every_command_goes_to_the_primary_of_its_slot_once(slots in prop::collection::vec(0u16..16_384, 0..200)) {
            let topology = topology(3, 1);
            let routes = slots.iter().map(|&slot| Route::Slot(slot)).enumerate();
            let targets = group(&topology, routes, 0);
            prop_assert!(targets.unserved.is_empty());
            prop_assert!(targets.served.len() <= 3);
            let mut seen = vec![false; slots.len()];
            for target in &targets.served {
                prop_assert!(target.positions.windows(2).all(|pair| pair[0] < pair[1]));
                for &position in &target.positions {
                    prop_assert_eq!(topology.primary_of(slots[position]), Some(target.member));
                    prop_assert!(!std::mem::replace(&mut seen[position], true));
                }
            }
            prop_assert!(seen.into_iter().all(|seen| seen));
        }
    }

    #[test]
    fn keyless_commands_take_turns_over_the_members_that_are_up() {
        let topology = topology(3, 1);
        let member = |turn| group(&topology, [(0, Route::AnyNode)], turn).served[0].member;
        assert_ne!(member(0), member(1));
        assert_eq!(member(0), member(3));
    }
}
