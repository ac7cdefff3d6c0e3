//! Copies that go ways of their own from common positions, against a model that keeps every content.

use std::collections::BTreeMap;

use korum_protocol::id::{Epoch, Position};
use proptest::prelude::*;

use super::{History, PATH_MAX, Path};
use crate::replication::replica::in_order;
use crate::store::HashPosition;

const COPIES: usize = 3;
const PLACES: u64 = 6;

/// A copy, and what is at each place; an effect writes its number there.
struct Copy {
    history: History,
    content: [u64; PLACES as usize],
}

#[derive(Clone, Debug)]
enum Deed {
    /// The copy becomes primary.
    Begin(usize),
    /// It writes at a place, or everywhere.
    Write(usize, Option<u64>),
    /// It brings another one to where it stands, and that one follows it.
    CatchUp(usize, usize),
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        2 => (0..COPIES).prop_map(Deed::Begin),
        8 => (0..COPIES, 0..PLACES).prop_map(|(copy, place)| Deed::Write(copy, Some(place))),
        1 => (0..COPIES).prop_map(|copy| Deed::Write(copy, None)),
        3 => (0..COPIES, 0..COPIES).prop_map(|(from, to)| Deed::CatchUp(from, to)),
    ];
    proptest::collection::vec(deed, 1..120)
}

/// Brings `to` to where `from` stands; whether without copying everything.
fn catch_up(from: &Copy, to: &mut Copy) -> bool {
    let standing = to.history.common(from.history.path()).and_then(|common| {
        let ahead: Vec<_> = to.history.since(common)?.collect();
        let steps: Vec<_> = from.history.since(common)?.collect();
        Some((common, steps, ahead))
    });
    match standing {
        Some((common, steps, ahead)) => {
            for place in in_order(&steps, &ahead) {
                to.content[place.get() as usize] = from.content[place.get() as usize];
            }
            to.history.follow(common, from.history.path(), &steps);
            true
        }
        None => {
            to.content = from.content;
            to.history.replace(from.history.path());
            false
        }
    }
}

proptest! {
    #[test]
    fn copies_at_the_same_position_are_equal(deeds in deeds(), backlog_max in 0_usize..20) {
        let mut copies: Vec<Copy> = (0..COPIES)
            .map(|_| Copy { history: History::new(backlog_max), content: [0; PLACES as usize] })
            .collect();
        copies.iter_mut().for_each(|copy| copy.history.keep(true));
        let mut contents = BTreeMap::new();
        // The era that each copy writes in, if it is one's primary.
        let mut eras: [Option<u64>; COPIES] = [None; COPIES];
        let (mut newest, mut writes) = (0, 0);
        for deed in deeds {
            match deed {
                Deed::Begin(at) => {
                    newest += 1;
                    eras[at] = Some(newest);
                    copies[at].history.begin(Epoch(newest));
                }
                Deed::Write(at, place) if eras[at].is_some() => {
                    writes += 1;
                    copies[at].history.step(place.map(HashPosition::new));
                    match place {
                        Some(place) => copies[at].content[place as usize] = writes,
                        None => copies[at].content = [0; PLACES as usize],
                    }
                }
                Deed::CatchUp(from, to) if from != to && eras[from].is_some() => {
                    eras[to] = None;
                    let [from, to] = copies.get_disjoint_mut([from, to]).expect("two of them");
                    catch_up(from, to);
                    prop_assert_eq!(to.content, from.content);
                    prop_assert_eq!(to.history.path(), from.history.path());
                }
                Deed::Write(..) | Deed::CatchUp(..) => {}
            }
            for copy in &copies {
                let Some(position) = copy.history.position() else { continue };
                prop_assert!(copy.history.path().len() <= PATH_MAX);
                let known = *contents.entry(position).or_insert(copy.content);
                prop_assert_eq!(known, copy.content, "at {:?}", position);
            }
        }
    }
}

fn at(era: u64, sequence: u64) -> Position {
    Position { era: Epoch(era), sequence }
}

fn copy(path: &[Position], writes: &[u64]) -> Copy {
    let mut history = History::new(8);
    history.keep(true);
    history.replace(path);
    let mut copy = Copy { history, content: [0; PLACES as usize] };
    for &place in writes {
        copy.history.step(Some(HashPosition::new(place)));
        copy.content[place as usize] = 100 + place;
    }
    copy
}

#[test]
fn a_copy_that_is_ahead_of_a_new_primary_goes_back() {
    let mut ahead = copy(&[at(1, 4)], &[2, 3, 3]);
    let mut primary = copy(&[at(1, 4)], &[2]);
    primary.history.begin(Epoch(2));
    primary.history.step(Some(HashPosition::new(5)));
    assert_eq!(ahead.history.common(primary.history.path()), Some(at(1, 5)));
    assert!(catch_up(&primary, &mut ahead));
    assert_eq!((ahead.content, ahead.history.position()), (primary.content, Some(at(2, 1))));
    // And what it followed, it can pass on.
    let mut behind = copy(&[at(1, 4)], &[]);
    assert!(catch_up(&ahead, &mut behind));
}

#[test]
fn what_happened_everywhere_is_not_repaired() {
    let mut primary = copy(&[at(1, 4)], &[1]);
    let mut behind = copy(&[at(1, 4)], &[]);
    primary.history.step(None);
    primary.history.step(Some(HashPosition::new(1)));
    assert!(!catch_up(&primary, &mut behind));
    let mut behind = copy(&[at(1, 6)], &[]);
    assert!(catch_up(&primary, &mut behind));
}

#[test]
fn eras_without_effects_are_no_difference() {
    let mut one = copy(&[at(1, 0)], &[]);
    let mut other = copy(&[at(1, 0)], &[]);
    (2..20).for_each(|era| one.history.begin(Epoch(era)));
    (20..40).for_each(|era| other.history.begin(Epoch(era)));
    assert!(catch_up(&one, &mut other));
}

#[test]
fn an_unknown_copy_has_nothing_in_common() {
    let history = History::new(8);
    assert_eq!((history.position(), history.common(&[at(1, 1)])), (None, None));
    assert_eq!(copy(&[at(1, 1)], &[]).history.common(&Path::new()), None);
}
