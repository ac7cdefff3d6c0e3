//! Hashes, lists, sets, sorted sets, streams and pairs: long histories of real ones, and known ones with a fault.

use std::time::Duration;

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::super::model::State;
use super::super::{Fresh, Kind, account};
use super::*;

/// One key of a kind, `clients` callers: what each saw, some outcomes unknown whether done or not.
fn history(kind: Kind, seed: u64, clients: usize, count: usize) -> Vec<Operation> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut free = vec![Duration::ZERO; clients];
    let (mut state, mut now) = (State::default(), Duration::ZERO);
    let mut history = Vec::new();
    for number in 0..count {
        let client = random.random_range(0..clients);
        now += Duration::from_micros(random.random_range(1..400));
        let call = free[client].max(now.saturating_sub(Duration::from_micros(random.random_range(0..3_000))));
        now = now.max(call);
        let at = now + Duration::from_micros(random.random_range(0..3_000));
        free[client] = at;
        let fresh = Fresh { text: format!("v{number}."), id: (number as u64 + 1, 0) };
        let command = match kind.wait(&mut random) {
            Some(waiting) if random.random_range(0..5) == 0 => waiting,
            _ => kind.choose(&mut random, fresh),
        };
        let command = match command {
            Command::Swap { value, .. } => Command::Swap { expected: state.text().cloned(), value },
            other => other,
        };
        let fate = random.random_range(0..100);
        let mut outcome = if fate < 2 { Outcome::Failed } else { Outcome::Unknown };
        if fate >= 3 {
            let (reply, next) = command.apply(&state, |after| (now + after, now + after));
            state = next;
            if fate >= 5 {
                outcome = Outcome::Acknowledged { at, reply };
            }
        }
        history.push(Operation { client, call, command, outcome });
    }
    let end = free.into_iter().max().unwrap_or(now) + ms(10);
    let (reply, _) = kind.read().apply(&state, |_| unreachable!("it only reads"));
    history.push(Operation {
        client: clients,
        call: end,
        command: kind.read(),
        outcome: Outcome::Acknowledged { at: end + ms(1), reply },
    });
    history
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn what_a_key_of_any_kind_does_is_accepted(seed: u64, kind in 0_usize..8, clients in 1_usize..7, count in 1_usize..500) {
        let kind = Kind::OTHERS[kind];
        let history = history(kind, seed, clients, count);
        let verdict = check(&history, &Rules { steps: 400_000, ..Rules::default() });
        prop_assert!(verdict.is_linearizable(), "{:?}: {:?}", kind, verdict);
        if matches!(kind, Kind::Queue | Kind::Rail) {
            prop_assert!(account(&history).is_ok(), "{:?}", account(&history));
        }
    }
}

fn push(call: u64, item: &str, length: i64) -> Operation {
    done(call, call + 1, Command::List(list::Command::Push(bytes(item))), Reply::Integer(length))
}

fn pop(call: u64, item: &str) -> Operation {
    let wait = Some(ms(700));
    let reply = if item.is_empty() { Reply::Nil } else { value(item) };
    done(call, call + 1, Command::List(list::Command::Pop { wait }), reply)
}

fn left(call: u64, items: &[&str]) -> Operation {
    let items = items.iter().map(|item| value(item)).collect();
    done(call, call + 1, Command::List(list::Command::Read), Reply::List(items))
}

#[track_caller]
fn good(history: &[Operation]) {
    let verdict = check(history, &Rules::default());
    assert!(verdict.is_linearizable(), "{verdict:?}");
}

#[track_caller]
fn bad(history: &[Operation]) {
    let verdict = check(history, &Rules::default());
    assert!(matches!(verdict, Verdict::Violation(_)), "{verdict:?}");
}

#[test]
fn an_item_that_is_gone_or_comes_twice_is_seen() {
    let two = [push(0, "a", 1), push(2, "b", 2)];
    let with = |more: &[Operation]| [&two[..], more].concat();
    let whole = with(&[pop(4, "a"), left(9, &["b"])]);
    good(&whole);
    assert_eq!(account(&whole).expect("all there").left, 1);
    // whoever waited in vain says nothing of the queue
    good(&with(&[pop(4, ""), pop(6, "a"), left(9, &["b"])]));
    for lost in [with(&[pop(4, "b"), left(9, &[])]), with(&[pop(4, "a"), pop(6, "a"), left(9, &["b"])])] {
        bad(&lost);
        account(&lost).expect_err("it is not right");
    }
    let unknown_pop = unknown(3, Command::List(list::Command::Pop { wait: Some(ms(30)) }));
    let taken = with(&[unknown_pop.clone(), pop(4, "b"), left(9, &[])]);
    good(&taken);
    assert_eq!(account(&taken).expect("one may have been taken").taken, 1);
    bad(&with(&[unknown_pop, left(9, &[])]));
    account(&two).expect_err("nobody has read it");
}

#[test]
fn an_item_on_the_way_is_in_one_of_the_lists() {
    let moved = |reply| done(4, 5, Command::List(list::Command::Move { wait: None }), reply);
    let both = |first: &[&str], second: &[&str]| {
        let list = |items: &[&str]| Reply::List(items.iter().map(|item| value(item)).collect());
        done(8, 9, Command::List(list::Command::ReadBoth), Reply::List(vec![list(first), list(second)]))
    };
    good(&[push(0, "a", 1), moved(value("a")), both(&[], &["a"])]);
    let gone = [push(0, "a", 1), moved(value("a")), both(&[], &[])];
    bad(&gone);
    account(&gone).expect_err("it is in neither");
}

#[test]
fn half_a_transaction_is_seen() {
    let transfer = |call: u64, count: i64| {
        let reply = Reply::List(vec![Reply::Integer(-count), Reply::Integer(count)]);
        done(call, call + 1, Command::Pair(pair::Command::Transfer { by_script: false }), reply)
    };
    let read = |call, first: &str, second: &str| {
        let reply = Reply::List(vec![value(first), value(second)]);
        done(call, call + 1, Command::Pair(pair::Command::Read { in_unit: true }), reply)
    };
    good(&[transfer(0, 1), transfer(2, 2), read(4, "-2", "2")]);
    bad(&[transfer(0, 1), transfer(2, 2), read(4, "-2", "1")]);
}

#[test]
fn whoever_swaps_has_seen_what_was_there() {
    let swap =
        |expected: &str, new: &str| Command::Swap { expected: Some(bytes(expected)), value: bytes(new) };
    good(&[set(0, 1, "a"), done(2, 3, swap("a", "b"), Reply::Ok), get(4, 5, "b")]);
    bad(&[set(0, 1, "a"), set(2, 3, "c"), done(4, 5, swap("a", "b"), Reply::Ok)]);
    good(&[set(0, 1, "a"), done(2, 3, swap("a", "b"), Reply::Nil), get(4, 5, "a")]);
    bad(&[set(0, 1, "a"), done(2, 3, swap("a", "b"), Reply::Nil), get(4, 5, "b")]);
}

#[test]
fn an_entry_of_a_stream_is_given_out_once() {
    let next =
        |call, reply| done(call, call + 1, Command::Stream(stream::Command::Next { wait: None }), reply);
    let begun = [
        done(0, 1, Command::Stream(stream::Command::Create), Reply::Ok),
        done(2, 3, Command::Stream(stream::Command::Add((7, 1))), value("7-1")),
        next(4, value("7-1")),
    ];
    good(&[&begun[..], &[next(6, Reply::Nil)]].concat());
    bad(&[&begun[..], &[next(6, value("7-1"))]].concat());
}
