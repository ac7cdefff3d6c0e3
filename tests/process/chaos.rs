//! Every fault once, under clients whose histories are checked. `scripts/chaos` runs them as often as one likes.

use korum_tests::chaos::{Fault, report, run};
use korum_tests::harness::{alone, setting};

#[test]
fn histories_are_linearizable_under_every_fault() {
    let _alone = alone();
    let seed = setting("KORUM_CHAOS_SEED", 1);
    let mut rows = Vec::new();
    let mut troubles = String::new();
    for fault in Fault::ALL {
        let outcome = run(fault, seed, 3, &[]);
        if !outcome.is_good() {
            troubles.push_str(&report::trouble(fault, seed, 3, &[], &outcome));
        }
        rows.push((fault, vec![outcome]));
    }
    println!("{}", report::table(&rows));
    assert!(troubles.is_empty(), "{troubles}");
}

/// The net holds: what weak consistency loses when a node is cut off is seen. On a busy machine a run may lose nothing.
#[test]
fn writes_that_only_one_node_had_are_seen_as_lost() {
    let _alone = alone();
    let outcomes = (1..=3).map(|seed| run(Fault::Isolate, seed, 3, &["--consistency", "async"]));
    let clean: Vec<_> = outcomes.take_while(|outcome| outcome.violations.is_empty()).collect();
    assert!(clean.len() < 3, "{clean:?}");
}
