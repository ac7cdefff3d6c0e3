//! Histories written by hand.

use super::super::Verdict;
use super::*;

fn good(history: &[Operation]) {
    let verdict = check(history, &Rules::default());
    assert!(verdict.is_linearizable(), "{verdict:?}");
}

fn bad(history: &[Operation]) {
    let verdict = check(history, &Rules::default());
    assert!(matches!(verdict, Verdict::Violation(_)), "{verdict:?}");
}

#[test]
fn nothing_happened() {
    good(&[]);
    good(&[get(0, 1, "")]);
}

#[test]
fn a_read_during_a_write_sees_either() {
    for seen in ["a", "b"] {
        good(&[set(0, 1, "a"), set(10, 30, "b"), get(15, 20, seen)]);
    }
    bad(&[set(0, 1, "a"), set(10, 30, "b"), get(15, 20, "b"), get(21, 25, "a")]);
}

#[test]
fn a_stale_read_is_seen() {
    bad(&[set(0, 1, "a"), set(2, 3, "b"), get(4, 5, "a")]);
    bad(&[set(0, 1, "a"), get(2, 3, "")]);
}

#[test]
fn a_lost_update_is_seen() {
    bad(&[set(0, 1, "a"), set(2, 3, "b"), get(4, 5, "b"), get(6, 7, "a")]);
    let append =
        |call, text: &str, length| done(call, call + 1, Command::Append(bytes(text)), Reply::Integer(length));
    good(&[append(0, "x", 1), append(2, "y", 2), get(4, 5, "xy")]);
    bad(&[append(0, "x", 1), append(2, "y", 1), get(4, 5, "y")]);
}

#[test]
fn a_delete_that_comes_undone_is_seen() {
    let delete = done(2, 3, Command::Del, Reply::Integer(1));
    good(&[set(0, 1, "a"), delete.clone(), get(4, 5, "")]);
    bad(&[set(0, 1, "a"), delete.clone(), get(4, 5, ""), get(6, 7, "a")]);
    bad(&[set(0, 1, "a"), delete.clone(), done(4, 5, set_if("b", Condition::Existing), Reply::Ok)]);
    // the delete may be undone by a write whose fate is unknown, once
    let late = unknown(0, Command::set(b"late"));
    good(&[set(0, 1, "a"), delete.clone(), get(4, 5, ""), get(6, 7, "late"), late.clone()]);
    let again = done(8, 9, Command::Del, Reply::Integer(1));
    good(&[set(0, 1, "a"), delete.clone(), get(6, 7, "late"), again.clone(), late.clone()]);
    bad(&[set(0, 1, "a"), delete, get(6, 7, "late"), again, get(10, 11, "late"), late]);
}

#[test]
fn the_value_of_a_failed_write_is_never_read() {
    bad(&[set(0, 1, "a"), failed(2, Command::set(b"b")), get(4, 5, "b")]);
    good(&[set(0, 1, "a"), unknown(2, Command::set(b"b")), get(4, 5, "b")]);
    bad(&[set(0, 1, "a"), unknown(6, Command::set(b"b")), get(4, 5, "b")]);
}

#[test]
fn an_increment_counts_once() {
    let increment = |call, sum| done(call, call + 1, Command::Incr, Reply::Integer(sum));
    good(&[increment(0, 1), increment(2, 2), increment(4, 3)]);
    bad(&[increment(0, 1), increment(2, 3)]);
    bad(&[increment(0, 1), increment(2, 1)]);
    good(&[increment(0, 1), unknown(1, Command::Incr), increment(2, 3)]);
    bad(&[increment(0, 1), unknown(1, Command::Incr), increment(2, 4)]);
    bad(&[increment(0, 1), failed(1, Command::Incr), increment(2, 3)]);
    good(&[set(0, 1, "x"), done(2, 3, Command::Incr, Reply::NotInteger)]);
    bad(&[set(0, 1, "7"), done(2, 3, Command::Incr, Reply::NotInteger)]);
}

#[test]
fn only_one_of_two_takes_a_lock() {
    let take = |call, name: &str, reply| done(call, call + 5, set_if(name, Condition::Missing), reply);
    good(&[take(0, "a", Reply::Ok), take(1, "b", Reply::Nil), get(10, 11, "a")]);
    bad(&[take(0, "a", Reply::Ok), take(1, "b", Reply::Ok)]);
    bad(&[take(0, "a", Reply::Nil), take(1, "b", Reply::Nil)]);
    good(&[take(0, "a", Reply::Nil), take(1, "b", Reply::Nil), unknown(0, set_if("c", Condition::Missing))]);
}

#[test]
fn old_values_are_handed_out_once() {
    let swap = |call, new: &str, old: &str| {
        let command =
            Command::Set { value: bytes(new), condition: Condition::Always, get: true, expire: None };
        done(call, call + 1, command, value(old))
    };
    good(&[set(0, 1, "a"), swap(2, "b", "a"), done(4, 5, Command::GetDel, value("b")), get(6, 7, "")]);
    bad(&[set(0, 1, "a"), swap(2, "b", "a"), swap(4, "c", "a")]);
    bad(&[set(0, 1, "a"), done(2, 5, Command::GetDel, value("a")), done(3, 6, Command::GetDel, value("a"))]);
}

#[test]
fn a_key_goes_at_its_deadline_and_not_far_from_it() {
    let brief = done(0, 10, set_px("a", 100), Reply::Ok);
    good(&[brief.clone(), get(50, 60, "a"), get(200, 201, "")]);
    good(&[brief.clone(), get(95, 96, ""), get(100, 101, "")]);
    good(&[brief.clone(), get(129, 130, "a")]);
    bad(&[brief.clone(), get(20, 70, "")]);
    bad(&[brief.clone(), get(131, 140, "a")]);
    bad(&[brief.clone(), get(95, 96, ""), get(100, 101, "a")]);
    bad(&[brief.clone(), get(100, 101, ""), done(102, 103, Command::Incr, Reply::NotInteger)]);
    let longer = |reply| done(50, 60, Command::Expire(ms(1000)), Reply::Integer(reply));
    good(&[brief.clone(), longer(1), get(500, 501, "a"), get(1100, 1101, "")]);
    bad(&[brief.clone(), longer(1), get(500, 501, "")]);
    bad(&[brief.clone(), longer(0)]);
    // a plain SET keeps no deadline, APPEND does
    good(&[brief.clone(), set(20, 21, "b"), get(500, 501, "b")]);
    let append = done(20, 21, Command::Append(bytes("b")), Reply::Integer(2));
    bad(&[brief.clone(), append.clone(), get(500, 501, "ab")]);
    good(&[brief, append, get(500, 501, "")]);
}

#[test]
fn a_deadline_of_unknown_outcome_may_begin_late() {
    let expire = unknown(10, Command::Expire(ms(100)));
    good(&[set(0, 1, "a"), expire.clone(), get(500, 501, "a"), get(900, 901, "")]);
    bad(&[set(0, 1, "a"), expire, get(50, 60, "")]);
}

#[test]
fn many_unknown_writes_that_nobody_saw_do_not_make_the_search_long() {
    let mut history = Vec::new();
    for number in 0..300 {
        history.push(set(number * 10, number * 10 + 5, &format!("v{number}")));
        history.push(unknown(number * 10, Command::set(format!("u{number}").as_bytes())));
        history.push(unknown(number * 10, Command::Append(bytes(&format!("t{number}")))));
        history.push(get(number * 10 + 6, number * 10 + 7, &format!("v{number}")));
    }
    let verdict = check(&history, &Rules { steps: 20_000, ..Rules::default() });
    assert!(verdict.is_linearizable(), "{verdict:?}");
    history.push(get(3_000, 3_001, "v7"));
    let verdict = check(&history, &Rules { steps: 200_000, ..Rules::default() });
    assert!(matches!(verdict, Verdict::Violation(_)), "{verdict:?}");
}

#[test]
fn a_search_that_is_too_long_says_so() {
    let history: Vec<_> = (0..40).map(|number| set(0, 100, &format!("v{number}"))).collect();
    let mut history = history;
    history.push(get(101, 102, "never"));
    let verdict = check(&history, &Rules { steps: 1_000, ..Rules::default() });
    assert!(matches!(verdict, Verdict::Undecided { .. }), "{verdict:?}");
}

#[test]
fn a_violation_names_what_does_not_fit() {
    let history = [set(0, 1, "a"), set(2, 3, "b"), get(3, 4, "b"), get(5, 6, "a")];
    let Verdict::Violation(violation) = check(&history, &Rules::default()) else { panic!("accepted") };
    assert_eq!((violation.placed, violation.total), (3, 4));
    let text = violation.to_string();
    assert!(text.contains("the key holds \"b\"") && text.contains("GET -> \"a\""), "{text}");
}
