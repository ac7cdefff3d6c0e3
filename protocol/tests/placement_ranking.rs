//! What is proved of the ranking (PLACEMENT.md §4), tested: against two independent oracles,
//! and as properties.

use korum_protocol::placement::choose_k::{Ranking, jump_below, unit_seed};
use korum_protocol::placement::hash::sm;
use proptest::prelude::*;

fn ranking(seed: u64, total: u32) -> Vec<u32> {
    Ranking::new(seed, total).collect()
}

/// All jump values of a level below 2^17, straight from the definition of §3: octave by octave,
/// descending inside an octave; the largest below m is what `jump_below` must find.
fn jump_by_definition(level: u64, m: u32) -> u32 {
    let mut values = vec![0u32];
    for bit in 0..17u32 {
        if level >> bit & 1 == 0 {
            continue;
        }
        let base = 1u32 << bit;
        let mut value = base + (sm(level, u64::from(bit)) % u64::from(base)) as u32;
        let mut round = 0;
        while value >= base {
            values.push(value);
            round += 1;
            value = (sm(level, 64 * round + u64::from(bit)) % u64::from(2 * base)) as u32;
        }
    }
    // Within an octave the first value below m counts, not the largest.
    let octave = |value: u32| value.checked_ilog2();
    let top = values.iter().filter(|&&value| value < m).map(|&value| octave(value)).max().flatten();
    values.into_iter().find(|&value| value < m && octave(value) == top).unwrap_or(0)
}

/// The first oracle: the item at 0-based rank q by descending from the set's definition.
fn item_by_sets(seed: u64, total: u32, rank: usize) -> u32 {
    let candidate =
        |level: usize, below: u32| level as u32 + jump_below(sm(seed, level as u64), below - level as u32);
    let (mut below, mut rank) = (total, rank);
    loop {
        let candidates: Vec<u32> = (0..=rank).map(|level| candidate(level, below)).collect();
        let greatest = *candidates.iter().max().unwrap();
        let level = candidates.iter().position(|&candidate| candidate == greatest).unwrap();
        if level == rank {
            return greatest;
        }
        (below, rank) = (greatest, rank - 1);
    }
}

/// The second oracle: every index is inserted at the first level that jumps exactly there.
fn ranking_by_insertion(seed: u64, total: u32) -> Vec<u32> {
    let mut items = Vec::new();
    for index in 0..total {
        let lands = |&level: &u32| jump_below(sm(seed, u64::from(level)), index - level + 1) == index - level;
        let position = (0..=index).find(lands).expect("the level of the index itself lands there");
        items.insert(position as usize, index);
    }
    items
}

proptest! {
    #[test]
    fn jump_equals_its_definition(level: u64, m in 1u32..=65536) {
        prop_assert_eq!(jump_below(level, m), jump_by_definition(level, m));
        prop_assert!(jump_below(level, m) < m);
        // Consistent: below m + 1 it is either the same or m itself.
        if m < 65536 {
            let next = jump_below(level, m + 1);
            prop_assert!(next == m || next == jump_below(level, m));
        }
    }

    #[test]
    fn ranking_equals_both_oracles(seed: u64, total in 0u32..120) {
        let items = ranking(seed, total);
        let by_sets: Vec<u32> = (0..total as usize).map(|rank| item_by_sets(seed, total, rank)).collect();
        prop_assert_eq!(&items, &by_sets);
        prop_assert_eq!(&items, &ranking_by_insertion(seed, total));
    }

    #[test]
    fn every_index_stands_once(seed: u64, total in 0u32..200) {
        let mut items = ranking(seed, total);
        prop_assert_eq!(Ranking::new(seed, total).len(), total as usize);
        items.sort_unstable();
        prop_assert!(items.into_iter().eq(0..total));
    }

    #[test]
    fn new_index_is_inserted_and_nothing_else_moves(seed: u64, total in 0u32..200) {
        let mut next = ranking(seed, total + 1);
        next.retain(|&index| index != total);
        prop_assert_eq!(next, ranking(seed, total));
    }

    #[test]
    fn ranking_of_live_indices_ignores_all_others(
        seed: u64,
        live in proptest::collection::btree_set(0u32..300, 1..40),
        beyond in 0u32..100,
    ) {
        let least = live.last().unwrap() + 1;
        let of_live = |total| ranking(seed, total).into_iter().filter(|index| live.contains(index)).collect::<Vec<_>>();
        prop_assert_eq!(of_live(least), of_live(least + beyond));
    }

    #[test]
    fn first_items_of_a_huge_space_equal_the_oracle(seed: u64, total in 60_000u32..=65_535) {
        let items: Vec<u32> = Ranking::new(seed, total).take(8).collect();
        let by_sets: Vec<u32> = (0..8).map(|rank| item_by_sets(seed, total, rank)).collect();
        prop_assert_eq!(items, by_sets);
    }
}

/// Pearson's statistic for `counts` that should be equal.
fn chi_squared(counts: &[u32]) -> f64 {
    let mean = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
    counts.iter().map(|&count| (f64::from(count) - mean).powi(2) / mean).sum()
}

/// Five standard deviations above the mean of a chi-squared variable.
fn five_sigma(degrees: usize) -> f64 {
    let degrees = degrees as f64;
    degrees + 5.0 * (2.0 * degrees).sqrt() + 12.0
}

#[test]
fn ranking_is_a_uniform_random_permutation() {
    // Of 4 indices there are 24 permutations; each should come up equally often.
    let mut permutations = std::collections::BTreeMap::new();
    for unit in 0..48_000 {
        *permutations.entry(ranking(unit_seed(7, unit), 4)).or_insert(0u32) += 1;
    }
    let counts: Vec<u32> = permutations.into_values().collect();
    assert_eq!(counts.len(), 24);
    assert!(chi_squared(&counts) < five_sigma(23), "{}", chi_squared(&counts));
}

#[test]
fn every_prefix_set_and_every_place_is_uniform() {
    let total = 10;
    let mut places = vec![vec![0u32; total]; total];
    let mut pairs = vec![0u32; total * total];
    for unit in 0..40_000 {
        let items = ranking(unit_seed(3, unit), total as u32);
        for (place, &index) in items.iter().enumerate() {
            places[place][index as usize] += 1;
        }
        let (low, high) = (items[0].min(items[1]), items[0].max(items[1]));
        pairs[low as usize * total + high as usize] += 1;
    }
    for (place, counts) in places.iter().enumerate() {
        assert!(chi_squared(counts) < five_sigma(total - 1), "place {place}: {counts:?}");
    }
    let pairs: Vec<u32> = pairs.into_iter().filter(|&count| count > 0).collect();
    assert_eq!(pairs.len(), 45);
    assert!(chi_squared(&pairs) < five_sigma(44), "{pairs:?}");
}

#[test]
fn adding_an_index_changes_at_most_one_of_the_first_r_and_as_often_as_it_must() {
    for (total, replicas) in [(3, 1), (3, 2), (10, 3), (40, 3), (10, 8)] {
        let units = 16_384;
        let mut changed = 0;
        for unit in 0..units {
            let seed = unit_seed(11, unit);
            let old: Vec<u32> = Ranking::new(seed, total).take(replicas).collect();
            let new: Vec<u32> = Ranking::new(seed, total + 1).take(replicas).collect();
            if old != new {
                // The newcomer came in, and the last one was evicted.
                let kept: Vec<u32> = new.iter().copied().filter(|&index| index != total).collect();
                assert_eq!(kept, old[..replicas - 1]);
                changed += 1;
            }
        }
        let chance = replicas as f64 / f64::from(total + 1);
        let expected = units as f64 * chance;
        let deviation = (expected * (1.0 - chance)).sqrt();
        assert!(
            (f64::from(changed) - expected).abs() < 5.0 * deviation,
            "{total} {replicas}: {changed} of {expected}"
        );
    }
}
