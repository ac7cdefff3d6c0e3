//! The index space: which node owns which index of the rankings (PLACEMENT.md §5).
//!
//! For: adding, removing and reweighting nodes so that as little as possible moves.
//! Everything is a pure function of the vector and the change.
//! Not here: what the indices mean for a partition (`table`).

use crate::id::NodeId;

/// Most indices, holes included. Jump values are computed below 2^16.
pub const INDICES_MAX: usize = 65_535;

/// The index space; `None` is a hole. The last is never a hole.
pub type Indices = Vec<Option<NodeId>>;

/// The index space has no room for so many indices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the index space is full: at most {INDICES_MAX} indices; lower the weights")]
pub struct IndicesFull;

/// Gives `count` indices to `node`: the lowest holes first, then new ones at the end.
///
/// # Errors
/// When there is no room; the vector is then as it was.
pub fn add(indices: &mut Indices, node: NodeId, count: usize) -> Result<(), IndicesFull> {
    let holes = indices.iter().filter(|index| index.is_none()).count();
    if indices.len() - holes + count > INDICES_MAX {
        return Err(IndicesFull);
    }
    let filled = indices.iter_mut().filter(|index| index.is_none()).take(count);
    let filled = filled.map(|hole| *hole = Some(node)).count();
    indices.resize(indices.len() + count - filled, Some(node));
    Ok(())
}

/// Turns all indices of `node` into holes.
pub fn remove(indices: &mut Indices, node: NodeId) {
    indices.iter_mut().filter(|index| **index == Some(node)).for_each(|index| *index = None);
    trim(indices);
}

/// Makes `node` own `count` indices: more are taken as `add` does; of too many the highest are given up.
///
/// # Errors
/// When there is no room; the vector is then as it was.
pub fn reweight(indices: &mut Indices, node: NodeId, count: usize) -> Result<(), IndicesFull> {
    let owned = weight(indices, node);
    if count >= owned {
        return add(indices, node, count - owned);
    }
    let highest = indices.iter_mut().rev().filter(|index| **index == Some(node));
    highest.take(owned - count).for_each(|index| *index = None);
    trim(indices);
    Ok(())
}

/// Moves the highest live index into the lowest hole until there is no hole. True if anything moved.
pub fn compact(indices: &mut Indices) -> bool {
    let mut moved = false;
    trim(indices);
    while let Some(hole) = indices.iter().position(Option::is_none) {
        indices[hole] = indices.pop().flatten();
        trim(indices);
        moved = true;
    }
    moved
}

/// Drops the holes at the end; that moves nothing in any ranking.
pub fn trim(indices: &mut Indices) {
    let live = indices.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    indices.truncate(live);
}

/// How many indices `node` owns.
#[must_use]
pub fn weight(indices: &[Option<NodeId>], node: NodeId) -> usize {
    indices.iter().filter(|index| **index == Some(node)).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn space(owners: &[u64]) -> Indices {
        owners.iter().map(|&owner| (owner > 0).then_some(NodeId(owner))).collect()
    }

    #[test]
    fn new_node_fills_the_lowest_holes_first() {
        let mut indices = space(&[1, 0, 2, 0, 3]);
        add(&mut indices, NodeId(9), 3).unwrap();
        assert_eq!(indices, space(&[1, 9, 2, 9, 3, 9]));
    }

    #[test]
    fn removed_node_leaves_holes_but_never_at_the_end() {
        let mut indices = space(&[1, 2, 1, 3, 2]);
        remove(&mut indices, NodeId(2));
        assert_eq!(indices, space(&[1, 0, 1, 3]));
        remove(&mut indices, NodeId(3));
        assert_eq!(indices, space(&[1, 0, 1]));
    }

    #[test]
    fn lower_weight_gives_up_the_highest_indices() {
        let mut indices = space(&[1, 2, 1, 1, 2]);
        reweight(&mut indices, NodeId(1), 1).unwrap();
        assert_eq!(indices, space(&[1, 2, 0, 0, 2]));
        reweight(&mut indices, NodeId(1), 4).unwrap();
        assert_eq!(indices, space(&[1, 2, 1, 1, 2, 1]));
    }

    #[test]
    fn compact_moves_the_highest_into_the_lowest_hole() {
        let mut indices = space(&[1, 0, 2, 0, 3, 0, 4]);
        assert!(compact(&mut indices));
        assert_eq!(indices, space(&[1, 4, 2, 3]));
        assert!(!compact(&mut indices));
    }

    #[test]
    fn full_space_refuses_and_stays_as_it_was() {
        let mut indices = vec![Some(NodeId(1)); INDICES_MAX - 1];
        assert_eq!(add(&mut indices, NodeId(2), 2), Err(IndicesFull));
        assert_eq!(indices.len(), INDICES_MAX - 1);
        add(&mut indices, NodeId(2), 1).unwrap();
        assert_eq!(reweight(&mut indices, NodeId(2), 2), Err(IndicesFull));
    }

    proptest! {
        #[test]
        fn every_node_owns_its_weight_and_the_end_is_live(
            steps in proptest::collection::vec((0u8..4, 1u64..8, 1usize..17), 1..40),
        ) {
            let mut indices = Indices::new();
            let mut weights = std::collections::BTreeMap::new();
            for (kind, node, count) in steps {
                match (kind, weights.contains_key(&node)) {
                    (0, _) | (1, false) => {
                        reweight(&mut indices, NodeId(node), count).unwrap();
                        weights.insert(node, count);
                    }
                    (1, true) => {
                        remove(&mut indices, NodeId(node));
                        weights.remove(&node);
                    }
                    (2, _) => {
                        compact(&mut indices);
                        prop_assert!(indices.iter().all(Option::is_some));
                    }
                    _ => {}
                }
                prop_assert!(indices.last().is_none_or(Option::is_some));
                for node in 1..8 {
                    prop_assert_eq!(weight(&indices, NodeId(node)), weights.get(&node).copied().unwrap_or(0));
                }
            }
        }
    }
}
