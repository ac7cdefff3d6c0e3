//! Is every item of a queue where it should be?
//!
//! For: what `check` finds too, told in the words of queues, whatever the order was: every item is popped at most once,
//! and what was pushed is popped, left, or was taken by a pop of unknown outcome.
//! Not here: the order (`search`).

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Bytes, Command, Reply, list};
use super::{Operation, Outcome};

/// How many items went which way.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Items {
    /// Pushed, and acknowledged.
    pub pushed: usize,
    /// Popped, and acknowledged.
    pub popped: usize,
    /// Still there in the end.
    pub left: usize,
    /// Gone, as the pops of unknown outcome allow.
    pub taken: usize,
}

/// Adds up the history of one queue, which ends with a reading of all of it.
///
/// # Errors
/// What was lost, or came twice, or from nowhere.
pub fn account(history: &[Operation]) -> Result<Items, String> {
    let mut pushes: BTreeMap<&Bytes, &Outcome> = BTreeMap::new();
    let mut popped: BTreeSet<&Bytes> = BTreeSet::new();
    let mut unknown_pops = 0;
    for operation in history {
        match (&operation.command, &operation.outcome) {
            (Command::List(list::Command::Push(item)), outcome) => {
                pushes.insert(item, outcome);
            }
            (
                Command::List(list::Command::Pop { .. } | list::Command::Take { .. }),
                Outcome::Acknowledged { reply: Reply::Value(item), .. },
            ) if !popped.insert(item) => return Err(format!("{} was popped twice", text(item))),
            (Command::List(list::Command::Pop { .. } | list::Command::Take { .. }), Outcome::Unknown) => {
                unknown_pops += 1;
            }
            _ => {}
        }
    }
    let left = left(history).ok_or("the queue was not read in the end")?;
    let mut there = BTreeSet::new();
    for item in &left {
        if !there.insert(item) || popped.contains(item) {
            return Err(format!("{} is there once too often", text(item)));
        }
    }
    for item in popped.iter().copied().chain(&left) {
        if !matches!(pushes.get(item), Some(Outcome::Acknowledged { .. } | Outcome::Unknown)) {
            return Err(format!("{} came from nowhere", text(item)));
        }
    }
    let is_acknowledged = |outcome: &Outcome| matches!(outcome, Outcome::Acknowledged { .. });
    let acknowledged = pushes.iter().filter(|(_, outcome)| is_acknowledged(outcome));
    let acknowledged: Vec<&Bytes> = acknowledged.map(|(item, _)| *item).collect();
    let gone: Vec<String> = acknowledged
        .iter()
        .filter(|item| !popped.contains(*item) && !there.contains(*item))
        .map(|item| text(item))
        .collect();
    if gone.len() > unknown_pops {
        return Err(format!(
            "{} pushed items are gone, and the outcome of {unknown_pops} pops is unknown: {}",
            gone.len(),
            gone.join(" ")
        ));
    }
    Ok(Items { pushed: acknowledged.len(), popped: popped.len(), left: left.len(), taken: gone.len() })
}

/// What the last reading saw, of one list or both; `None` if something was answered after it had begun.
fn left(history: &[Operation]) -> Option<Vec<Bytes>> {
    let readings = history.iter().filter_map(|operation| match (&operation.command, &operation.outcome) {
        (
            Command::List(list::Command::Read | list::Command::ReadBoth),
            Outcome::Acknowledged { reply, .. },
        ) => Some((operation.call, reply)),
        _ => None,
    });
    let (begun, last) = readings.max_by_key(|(call, _)| *call)?;
    let is_later = |operation: &Operation| {
        matches!(operation.outcome, Outcome::Acknowledged { at, .. } if at > begun)
            && !operation.command.is_read()
    };
    if history.iter().any(is_later) {
        return None;
    }
    let mut items = Vec::new();
    collect(last, &mut items);
    Some(items)
}

fn collect(reply: &Reply, into: &mut Vec<Bytes>) {
    match reply {
        Reply::Value(item) => into.push(item.clone()),
        Reply::List(replies) => replies.iter().for_each(|reply| collect(reply, into)),
        _ => {}
    }
}

fn text(item: &Bytes) -> String {
    String::from_utf8_lossy(item).into_owned()
}
