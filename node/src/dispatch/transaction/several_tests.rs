//! Which units a transaction of several slots becomes, and where its replies come from.

use korum_protocol::command::lookup;
use korum_protocol::id::{Epoch, Position};

use super::super::queue::Transaction;
use super::*;

const SINCE: Position = Position { era: Epoch(1), sequence: 2 };

fn caller() -> Caller {
    Caller::plain(Port::Client)
}

/// What was queued; a command has keys from argument 1 on, in steps of `width`, or none if that is 0.
fn queued(commands: &[(&str, usize)], watched: &[&str]) -> Taken {
    let mut transaction = Transaction::default();
    transaction.open();
    for (line, width) in commands {
        let (mut buffer, mut ranges) = (Vec::new(), Vec::new());
        for word in line.split(' ') {
            ranges.push(buffer.len()..buffer.len() + word.len());
            buffer.extend_from_slice(word.as_bytes());
        }
        let args = Args::new(&buffer, &ranges);
        let slots: Vec<u16> = (1..args.len()).step_by((*width).max(1)).map(|at| slot_of(&args[at])).collect();
        let slot = slots.first().copied().filter(|_| *width > 0);
        let is_split = *width > 0 && slots.iter().any(|other| Some(*other) != slot);
        let spec = lookup(line.split(' ').next().unwrap().as_bytes()).unwrap();
        transaction.push(spec, &args, slot, is_split).unwrap();
    }
    for key in watched {
        transaction.watch(key.as_bytes(), slot_of(key.as_bytes()), SINCE, 0).unwrap();
    }
    assert!(transaction.is_crossing());
    transaction.take().unwrap()
}

/// The commands of a unit, as lines.
fn lines(unit: Unit) -> (bool, usize, Vec<String>) {
    let writes = unit.writes;
    let (_, request) = unit.request();
    let mut parser = RequestParser::new(RequestLimits::unlimited());
    assert_eq!(parser.parse(&request), Ok(Parsed::Request { consumed: request.len() }));
    let unit = crate::command::unit::Unit::read(parser.args(&request)).expect("a unit");
    let line = |args: Args<'_>| args.iter().map(String::from_utf8_lossy).collect::<Vec<_>>().join(" ");
    (writes, unit.watched().count(), unit.commands().map(line).collect())
}

#[test]
fn each_slot_gets_its_commands_in_their_order() {
    let taken = queued(
        &[("set a 1", 9), ("get b", 1), ("ping", 0), ("mset b 2 a{a} 3 b{b} 4 c 5", 2), ("incr a", 1)],
        &[],
    );
    let Ok(plan) = Plan::of(&taken, &Databases::default()) else { panic!("it can be taken apart") };
    assert_eq!(
        plan.places,
        [
            Place::Unit(0),
            Place::Unit(1),
            Place::Apart,
            Place::Split(vec![(1, vec![0, 2]), (0, vec![1]), (2, vec![3])]),
            Place::Unit(0),
        ]
    );
    let units: Vec<_> = plan.units.into_iter().map(lines).collect();
    let line = |text: &str| text.to_owned();
    assert_eq!(
        units,
        [
            (true, 0, vec![line("set a 1"), line("mset a{a} 3"), line("incr a")]),
            (true, 0, vec![line("get b"), line("mset b 2 b{b} 4")]),
            (true, 0, vec![line("mset c 5")]),
        ]
    );
}

#[test]
fn the_unit_of_the_watched_keys_is_the_first_even_without_commands() {
    let taken = queued(&[("get a", 1), ("set b 1", 9)], &["w", "w2{w}"]);
    let Ok(plan) = Plan::of(&taken, &Databases::default()) else { panic!("it can be taken apart") };
    assert_eq!(plan.places, [Place::Unit(1), Place::Unit(2)]);
    let units: Vec<_> = plan.units.into_iter().map(lines).collect();
    assert_eq!(
        units,
        [(false, 2, vec![]), (false, 0, vec!["get a".to_owned()]), (true, 0, vec!["set b 1".to_owned()]),]
    );
}

#[test]
fn each_unit_has_the_watched_keys_of_its_slot_and_can_ask_for_them_alone() {
    let Ok(plan) = Plan::of(&queued(&[("set c 1", 9), ("set b 1", 9)], &["a", "b"]), &Databases::default())
    else {
        panic!()
    };
    let (slot, question) = plan.units[1].question();
    assert_eq!(slot, slot_of(b"b"));
    assert!(question.starts_with(b"*5\r\n$5\r\nKORUM\r\n$7\r\nEXEC-RO\r\n"), "{question:?}");
    let units: Vec<_> = plan.units.into_iter().map(lines).collect();
    assert_eq!(
        units,
        [(false, 1, vec![]), (true, 1, vec!["set b 1".to_owned()]), (true, 0, vec!["set c 1".to_owned()]),]
    );
}

#[test]
fn each_unit_is_told_of_the_database_when_it_matters_to_it() {
    let taken = queued(
        &[
            ("get a", 1),
            ("select 3", 0),
            ("get b", 1),
            ("select 4", 0),
            ("select 99", 0),
            ("set a 1", 9),
            ("get b", 1),
            ("del b a", 1),
        ],
        &[],
    );
    let Ok(plan) = Plan::of(&taken, &Databases::default()) else { panic!("it can be taken apart") };
    assert_eq!(plan.places.iter().filter(|place| **place == Place::Apart).count(), 3);
    let silent: Vec<Vec<usize>> = plan.units.iter().map(|unit| unit.silent.clone()).collect();
    assert_eq!(silent, [vec![1], vec![0, 2]]);
    let units: Vec<Vec<String>> = plan.units.into_iter().map(|unit| lines(unit).2).collect();
    assert_eq!(
        units,
        [
            vec!["get a", "select 4", "set a 1", "del a"],
            vec!["select 3", "get b", "select 4", "get b", "del b"],
        ]
    );
    let mut answer = Answer::of(Bytes::from_static(b"*3\r\n+OK\r\n:1\r\n+OK\r\n"), &[0, 2]);
    assert_eq!(answer.next(), ":1\r\n");
}

#[test]
fn removing_everything_still_crosses() {
    let taken = queued(&[("set a 1", 9), ("flushall", 0), ("set b 1", 9)], &[]);
    assert!(Plan::of(&taken, &Databases::default()).is_err());
}

#[test]
fn replies_of_parts_become_the_reply_of_the_command() {
    let parts = [(1, vec![0, 2]), (0, vec![1])];
    let reply = |id, replies: [&'static str; 2]| {
        let replies = replies.map(|reply| Bytes::from_static(reply.as_bytes()));
        String::from_utf8(joined(id, &parts, &replies, caller()).to_vec()).unwrap()
    };
    assert_eq!(
        reply(CommandId::MGet, ["*2\r\n$1\r\nx\r\n$-1\r\n", "*1\r\n$1\r\ny\r\n"]),
        "*3\r\n$1\r\nx\r\n$1\r\ny\r\n$-1\r\n"
    );
    assert_eq!(reply(CommandId::Del, [":2\r\n", ":1\r\n"]), ":3\r\n");
    assert_eq!(reply(CommandId::MSet, ["+OK\r\n", "+OK\r\n"]), "+OK\r\n");
    assert_eq!(reply(CommandId::MSet, ["+OK\r\n", "-CLUSTERDOWN x\r\n"]), "-CLUSTERDOWN x\r\n");
    let unknown: &str = Box::leak(format!("-{UNKNOWN}\r\n").into_boxed_str());
    assert_eq!(reply(CommandId::MSet, ["-CLUSTERDOWN x\r\n", unknown]), unknown);
}

#[test]
fn a_unit_that_failed_answers_each_of_its_commands_with_the_error() {
    let mut answer = Answer::of(Bytes::from_static(b"-CLUSTERDOWN x\r\n"), &[]);
    assert_eq!((answer.next(), answer.next()), ("-CLUSTERDOWN x\r\n".into(), "-CLUSTERDOWN x\r\n".into()));
    let mut answer = Answer::of(Bytes::from_static(b"*-1\r\n"), &[]);
    assert_eq!(answer.next(), CHANGED);
    let mut answer = Answer::of(Bytes::from_static(b"*2\r\n+OK\r\n*1\r\n:1\r\n"), &[]);
    assert_eq!((answer.next(), answer.next()), ("+OK\r\n".into(), "*1\r\n:1\r\n".into()));
}
