//! Long histories of a real register: accepted; with one fault in them: rejected.

use std::time::Duration;

use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

use super::super::model::State;
use super::*;

/// What goes wrong, once.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    Nothing,
    /// A read answers what an earlier one answered before a write that ended in between.
    StaleRead,
    /// An acknowledged write has no effect.
    LostWrite,
    /// A write that was answered with a failure has one.
    FailedWriteTakesEffect,
    /// An INCR counts twice.
    DoubleIncrement,
}

/// One register, `clients` callers, `count` operations at random moments; what each saw.
///
/// The register executes at the moments of `now`, which grows; call and reply lie around it.
/// A fault happens at a moment when nothing else is under way, and a read follows, so that no order can hide it.
fn history(seed: u64, clients: usize, count: usize, fault: Fault) -> Vec<Operation> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut free = vec![Duration::ZERO; clients];
    let (mut state, mut deadline, mut now) = (State::default(), None, Duration::ZERO);
    let mut history = Vec::new();
    for number in 0..count {
        let client = random.random_range(0..clients);
        now += Duration::from_micros(random.random_range(1..400));
        let call = free[client].max(now.saturating_sub(Duration::from_micros(random.random_range(0..3_000))));
        now = now.max(call);
        let at = now + Duration::from_micros(random.random_range(0..3_000));
        free[client] = at;
        let command = command(&mut random, number);
        let fate = random.random_range(0..100);
        let outcome = if fate < 4 {
            Outcome::Failed
        } else {
            if deadline.is_some_and(|deadline| now >= deadline) {
                (state, deadline) = (State::default(), None);
            }
            let happens = fate >= 6;
            let reply = if happens { execute(&command, &mut state, &mut deadline, now) } else { Reply::Ok };
            if fate < 10 { Outcome::Unknown } else { Outcome::Acknowledged { at, reply } }
        };
        // an unknown one may also happen later, which is not generated: that it is allowed is tested by hand
        history.push(Operation { client, call, command, outcome });
    }
    if fault != Fault::Nothing {
        let quiet = free.into_iter().max().unwrap_or(now) + ms(10);
        break_once(&mut history, quiet, fault);
    }
    history
}

fn execute(command: &Command, state: &mut State, deadline: &mut Option<Duration>, now: Duration) -> Reply {
    let (reply, next) = command.apply(state, |after| (now + after, now + after));
    *deadline = next.expires.map(|(first, _)| first);
    *state = next;
    reply
}

fn command(random: &mut impl Rng, number: usize) -> Command {
    let text = format!("v{number}.");
    match random.random_range(0..20) {
        0..8 => Command::Get,
        8..12 => Command::set(text.as_bytes()),
        12 => Command::set(random.random_range(0..100).to_string().as_bytes()),
        13 => set_if(&text, Condition::Missing),
        14 => set_px(&text, random.random_range(1..200)),
        15 => Command::Append(bytes(&text)),
        16 | 17 => Command::Incr,
        18 => Command::Expire(ms(random.random_range(1..200))),
        _ => [Command::Del, Command::GetDel][random.random_range(0..2)].clone(),
    }
}

/// Appends what no order explains. `quiet` is after everything else; the writes of unknown outcome may still come, so
/// what is read is a value that none of them leaves.
fn break_once(history: &mut Vec<Operation>, quiet: Duration, fault: Fault) {
    let quiet = u64::try_from(quiet.as_millis()).expect("a short history") + 1;
    history.push(set(quiet, quiet + 1, "first"));
    match fault {
        Fault::Nothing => {}
        Fault::StaleRead => {
            history.extend([set(quiet + 2, quiet + 3, "second"), get(quiet + 4, quiet + 5, "first")]);
        }
        Fault::LostWrite => {
            history.push(done(quiet + 2, quiet + 3, Command::Append(bytes("second")), Reply::Integer(11)));
            history.push(get(quiet + 4, quiet + 5, "first"));
        }
        Fault::FailedWriteTakesEffect => {
            history.extend([failed(quiet + 2, Command::set(b"failed")), get(quiet + 4, quiet + 5, "failed")]);
        }
        Fault::DoubleIncrement => {
            // more than all increments of unknown outcome together can explain
            let base = 1_000_000;
            history.push(set(quiet + 2, quiet + 3, &base.to_string()));
            let open = history.iter().filter(|operation| {
                operation.outcome == Outcome::Unknown && operation.command == Command::Incr
            });
            let sum = base + i64::try_from(open.count()).expect("few") + 2;
            history.push(done(quiet + 4, quiet + 5, Command::Incr, Reply::Integer(sum)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn what_a_register_does_is_accepted(seed: u64, clients in 1_usize..9, count in 1_usize..900) {
        let rules = Rules { clock_margin: Duration::ZERO, steps: 300_000 };
        let history = history(seed, clients, count, Fault::Nothing);
        let verdict = check(&history, &rules);
        prop_assert!(verdict.is_linearizable(), "{:?}", verdict);
    }

    #[test]
    fn one_fault_is_rejected(seed: u64, clients in 1_usize..6, count in 1_usize..150, kind in 0_usize..4) {
        let faults = [Fault::StaleRead, Fault::LostWrite, Fault::FailedWriteTakesEffect, Fault::DoubleIncrement];
        let rules = Rules { clock_margin: Duration::ZERO, steps: 300_000 };
        let verdict = check(&history(seed, clients, count, faults[kind]), &rules);
        prop_assert!(matches!(verdict, Verdict::Violation(_)), "{:?}", verdict);
    }
}
