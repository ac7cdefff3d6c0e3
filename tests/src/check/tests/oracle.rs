//! Small random histories, most of them bad, against a search without any cleverness: all orders, one by one.

use proptest::prelude::*;

use super::super::model::State;
use super::*;

/// Is there an order? Without deadlines.
fn brute(open: &[&Operation], state: &State) -> bool {
    let end = open.iter().filter_map(|operation| reply_at(operation)).min();
    let Some(end) = end else { return true };
    open.iter().enumerate().any(|(index, operation)| {
        let (reply, next) = operation.command.apply(state, |_| unreachable!("no deadlines here"));
        let fits = match &operation.outcome {
            Outcome::Acknowledged { reply: seen, .. } => *seen == reply,
            Outcome::Failed => false,
            Outcome::Unknown => true,
        };
        let mut rest = open.to_vec();
        rest.remove(index);
        fits && operation.call <= end && brute(&rest, &next)
    })
}

fn reply_at(operation: &Operation) -> Option<std::time::Duration> {
    if let Outcome::Acknowledged { at, .. } = operation.outcome { Some(at) } else { None }
}

fn command() -> impl Strategy<Value = Command> {
    let text = prop::sample::select(vec!["a", "b", "1"]);
    prop_oneof![
        3 => Just(Command::Get),
        3 => text.clone().prop_map(|text| Command::set(text.as_bytes())),
        1 => text.clone().prop_map(|text| set_if(text, Condition::Missing)),
        1 => text.clone().prop_map(|text| set_if(text, Condition::Existing)),
        1 => text.clone().prop_map(|text| Command::Set { value: bytes(text), condition: Condition::Always, get: true, expire: None }),
        1 => text.prop_map(|text| Command::Append(bytes(text))),
        2 => Just(Command::Incr),
        1 => Just(Command::Del),
        1 => Just(Command::GetDel),
    ]
}

/// A reply that the command could give.
fn reply(command: &Command, choice: u8) -> Reply {
    let values = ["a", "b", "1", "2", "a1", "ab"];
    let found = |choice: u8| match choice % 7 {
        6 => Reply::Nil,
        other => value(values[usize::from(other)]),
    };
    match command {
        Command::Set { get: false, condition: Condition::Always, .. } => Reply::Ok,
        Command::Set { get: false, .. } => [Reply::Ok, Reply::Nil][usize::from(choice % 2)].clone(),
        Command::Get | Command::GetDel | Command::Set { .. } => found(choice),
        Command::Incr => [Reply::Integer(1), Reply::Integer(2), Reply::Integer(3), Reply::NotInteger]
            [usize::from(choice % 4)]
        .clone(),
        Command::Append(_) => Reply::Integer(i64::from(choice % 3) + 1),
        Command::Hash(hash::Command::Count { .. }) => Reply::Integer(i64::from(choice % 3) + 1),
        Command::Hash(hash::Command::Read) => Reply::List(
            [0, 2, 4, 6].map(|shift| if shift < 6 { found(choice >> shift) } else { Reply::Nil }).into(),
        ),
        Command::Hash(hash::Command::Get(_)) => found(choice),
        Command::List(list::Command::Push(_)) => Reply::Integer(i64::from(choice % 3) + 1),
        Command::List(list::Command::Read) => {
            let items = [value("a"), value("b"), value("1")];
            Reply::List(
                items.into_iter().skip(usize::from(choice % 3)).take(usize::from(choice / 3 % 3)).collect(),
            )
        }
        Command::List(_) => [value("a"), value("b"), value("1"), Reply::Nil][usize::from(choice % 4)].clone(),
        Command::Members(set::Command::Read) => {
            Reply::List((0..4).map(|bit| Reply::Integer(i64::from(choice >> bit & 1))).collect())
        }
        _ => Reply::Integer(i64::from(choice % 2)),
    }
}

/// Commands on one hash, on one list and on one set: beside those above, of the other kinds of keys.
fn of_collections() -> [BoxedStrategy<Command>; 3] {
    let text = || prop::sample::select(vec!["a", "b", "1"]).prop_map(bytes);
    let field = || prop::sample::select(hash::FIELDS[..2].to_vec());
    let member = || prop::sample::select(set::MEMBERS[..2].to_vec());
    [
        prop_oneof![
            2 => (field(), text()).prop_map(|(field, text)| hash::Command::Set(field, text)),
            1 => field().prop_map(hash::Command::Get),
            2 => Just(hash::Command::Count { by_script: false }),
            1 => field().prop_map(hash::Command::Delete),
            1 => Just(hash::Command::Read),
        ]
        .prop_map(Command::Hash)
        .boxed(),
        prop_oneof![
            3 => text().prop_map(list::Command::Push),
            3 => Just(list::Command::Pop { wait: None }),
            1 => Just(list::Command::Read),
        ]
        .prop_map(Command::List)
        .boxed(),
        prop_oneof![
            3 => member().prop_map(set::Command::Add),
            2 => member().prop_map(set::Command::Remove),
            2 => Just(set::Command::Read),
        ]
        .prop_map(Command::Members)
        .boxed(),
    ]
}

fn operation(command: impl Strategy<Value = Command>) -> impl Strategy<Value = Operation> {
    (command, 0_u64..30, 0_u64..12, any::<u8>(), 0_u8..8).prop_map(|(command, call, length, choice, kind)| {
        match kind {
            0 => failed(call, command),
            1..4 => unknown(call, command),
            _ => {
                let reply = reply(&command, choice);
                done(call, call + length, command, reply)
            }
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6_000))]
    #[test]
    fn the_verdict_is_that_of_trying_all_orders(history in prop::collection::vec(operation(command()), 1..7)) {
        let open: Vec<&Operation> = history.iter().collect();
        let verdict = check(&history, &Rules::default());
        prop_assert_eq!(verdict.is_linearizable(), brute(&open, &State::default()), "{:?}", verdict);
    }

    #[test]
    fn the_verdict_on_collections_is_that_of_trying_all_orders(
        history in prop::sample::select(vec![0, 1, 2])
            .prop_flat_map(|kind| prop::collection::vec(operation(of_collections()[kind].clone()), 1..7))
    ) {
        let open: Vec<&Operation> = history.iter().collect();
        let verdict = check(&history, &Rules::default());
        prop_assert_eq!(verdict.is_linearizable(), brute(&open, &State::default()), "{:?}", verdict);
    }
}
