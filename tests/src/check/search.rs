//! The search for an order: Wing and Gong's, with Lowe's memory of what was tried.
//!
//! A partial order is a set of placed operations, what the key holds, and the earliest moment that it can be now.
//! The next operation must have been called before any that is not placed was answered; where its reply fits, it is
//! placed. What was placed is kept as *the first that was never passed by, and those passed by*, which is short,
//! since a client waits for a reply before its next call.
//!
//! Moments are chosen as early as they can be: an operation happens at the latest call (or expiry) placed so far.
//! A deadline is known as an interval, since its command happened somewhere between call and reply: a key may be found
//! gone from the interval's begin on, and alive until its end.
//!
//! Steps are saved where the answer stays the same:
//! - a read that fits, and moves no moment, is placed at once, and nothing else is tried;
//! - an unknown operation that changes nothing is not tried, nor is one whose effect none of the next may have seen;
//! - of interchangeable unknown operations the earliest is tried (`prepare`), and only after all that is known.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::model::{Command, Reply, State, Value};
use super::prepare::Prepared;
use super::{Rules, Verdict, Violation};

/// Operations that a [`Violation`] names.
const STUCK_MAX: usize = 12;

/// Steps without progress after which an unknown operation is tried although others are left.
const PATIENCE: usize = 16;

/// A partial order.
#[derive(Clone)]
struct Partial {
    state: State,
    /// It is not earlier than this now.
    now: Duration,
    /// All acknowledged operations before this are placed,
    frontier: usize,
    /// except these, by call.
    passed: Vec<usize>,
    /// How many of each class of unknown operations are placed: (class, count), by class, without zeros.
    used: Vec<(usize, usize)>,
    /// The last one placed was unknown.
    is_open: bool,
}

/// Finds an order, or that there is none, or gives up.
pub(super) fn search(history: &Prepared, rules: &Rules) -> Verdict {
    match walk(history, rules, !history.replaces) {
        Verdict::Violation(_) if history.guesses && !history.unknown.is_empty() => {
            walk(history, rules, false)
        }
        verdict => verdict,
    }
}

/// `selects`: an unknown operation is tried only if one of the next may have seen it.
fn walk(history: &Prepared, rules: &Rules, selects: bool) -> Verdict {
    let start = Partial {
        state: State::default(),
        now: Duration::ZERO,
        frontier: 0,
        passed: Vec::new(),
        used: Vec::new(),
        is_open: false,
    };
    let mut deepest = start.clone();
    let mut tried = Tried::default();
    let mut stack = vec![start];
    // Where an unknown operation could be next, by how far they came: tried when nothing else helps.
    let mut later: BTreeMap<usize, Vec<Partial>> = BTreeMap::new();
    let (mut steps, mut stalled) = (0, 0);
    loop {
        stalled += 1;
        if (stack.is_empty() || stalled % PATIENCE == 0)
            && let Some(partial) = pop_last(&mut later)
        {
            stack.extend(Step { history, rules, from: &partial, end: partial.end(history) }.unknown(selects));
            continue;
        }
        let Some(partial) = stack.pop() else { break };
        if partial.placed() == history.done.len() {
            return Verdict::Linearizable { steps };
        }
        steps += 1;
        if steps > rules.steps {
            return Verdict::Undecided { steps };
        }
        if partial.placed() > deepest.placed() {
            deepest = partial.clone();
            stalled = 0;
        }
        if !tried.insert(&partial) {
            continue;
        }
        let step = Step { history, rules, from: &partial, end: partial.end(history) };
        if let Some(next) = step.free_read() {
            stack.push(next);
            continue;
        }
        stack.extend(step.known().into_iter().rev());
        later.entry(partial.placed()).or_default().push(partial);
    }
    Verdict::Violation(describe(history, &deepest))
}

/// One of those that came farthest.
fn pop_last(later: &mut BTreeMap<usize, Vec<Partial>>) -> Option<Partial> {
    let mut entry = later.last_entry()?;
    let partial = entry.get_mut().pop();
    if entry.get().is_empty() {
        entry.remove();
    }
    partial
}

/// What was tried: the same value, and the same acknowledged operations placed.
#[derive(Default)]
struct Tried(HashMap<(Option<Value>, usize, Vec<usize>), Vec<Partial>>);

impl Tried {
    /// False when something was tried that leaves at least as much open.
    fn insert(&mut self, partial: &Partial) -> bool {
        let key = (partial.state.value.clone(), partial.frontier, partial.passed.clone());
        let others = self.0.entry(key).or_default();
        if others.iter().any(|other| other.allows_all_of(partial)) {
            return false;
        }
        others.push(partial.clone());
        true
    }
}

impl Partial {
    fn placed(&self) -> usize {
        self.frontier - self.passed.len()
    }

    /// The moment before which the next operation must happen: the first reply of those that are not placed.
    fn end(&self, history: &Prepared) -> Duration {
        let passed = self.passed.iter().map(|&index| history.done[index].at);
        passed.fold(history.first_reply[self.frontier], Duration::min)
    }

    /// Acknowledged operations that may come next, by call.
    fn candidates(&self, history: &Prepared, end: Duration) -> impl Iterator<Item = usize> {
        let later =
            (self.frontier..history.done.len()).take_while(move |&index| history.done[index].call <= end);
        self.passed.iter().copied().chain(later)
    }

    /// Marks an acknowledged operation as placed.
    fn place(&mut self, index: usize) {
        if index < self.frontier {
            self.passed.retain(|&other| other != index);
        } else {
            self.passed.extend(self.frontier..index);
            self.frontier = index + 1;
        }
        self.is_open = false;
    }

    /// Of two that hold the same value and placed the same: can whatever follows `other` also follow this?
    fn allows_all_of(&self, other: &Partial) -> bool {
        let goes = match (self.state.expires, other.state.expires) {
            (None, None) => true,
            (Some((first, last)), Some((other_first, other_last))) => {
                first <= other_first && last >= other_last
            }
            (None, Some(_)) | (Some(_), None) => false,
        };
        goes && self.now <= other.now
            && (other.is_open || !self.is_open)
            && self.used.iter().all(|&(class, count)| count <= other.use_of(class))
    }

    fn use_of(&self, class: usize) -> usize {
        self.used.iter().find(|&&(other, _)| other == class).map_or(0, |&(_, count)| count)
    }

    fn place_unknown(&mut self, class: usize) {
        match self.used.binary_search_by_key(&class, |&(other, _)| other) {
            Ok(place) => self.used[place].1 += 1,
            Err(place) => self.used.insert(place, (class, 1)),
        }
        self.is_open = true;
    }
}

/// One partial order, and what may come next.
struct Step<'a> {
    history: &'a Prepared,
    rules: &'a Rules,
    from: &'a Partial,
    end: Duration,
}

impl Step<'_> {
    /// A read that fits now and restricts nothing later.
    fn free_read(&self) -> Option<Partial> {
        let from = self.from;
        if from.state.expires.is_some_and(|(_, last)| from.now > last) {
            return None;
        }
        let fits = |&index: &usize| {
            let operation = &self.history.done[index];
            let moves_no_moment = !self.history.expires || operation.call <= from.now;
            let (reply, _) = operation.command.apply(&from.state, |_| Default::default());
            operation.command.is_read() && moves_no_moment && reply == operation.reply
        };
        let index = from.candidates(self.history, self.end).find(fits)?;
        let mut next = from.clone();
        next.now = next.now.max(self.history.done[index].call);
        next.place(index);
        Some(next)
    }

    /// Every order with one more acknowledged operation; those with the earliest reply first.
    fn known(&self) -> Vec<Partial> {
        let mut order: Vec<usize> = self.from.candidates(self.history, self.end).collect();
        order.sort_by_key(|&index| self.history.done[index].at);
        let mut found = Vec::new();
        for index in order {
            let operation = &self.history.done[index];
            if self.from.is_open && is_blind(&operation.command, &operation.reply) {
                continue;
            }
            for mut next in self.execute(operation.call, &operation.command, Some(&operation.reply)) {
                next.place(index);
                found.push(next);
            }
        }
        found
    }

    /// Every order with one more operation of unknown outcome that changes something; with `selects`, to what an
    /// acknowledged one that could come next may have seen.
    fn unknown(&self, selects: bool) -> Vec<Partial> {
        let mut found = Vec::new();
        let next: Vec<_> =
            self.from.candidates(self.history, self.end).map(|index| &self.history.done[index]).collect();
        let is_seen = |state: &State| {
            next.iter().any(|operation| {
                !is_blind(&operation.command, &operation.reply)
                    && operation.command.may_see(&self.from.state, state, &operation.reply)
            })
        };
        for (number, class) in self.history.unknown.iter().enumerate() {
            let Some(&call) = class.calls.get(self.from.use_of(number)) else { continue };
            // What it does to a key without a deadline is in the class of DEL.
            let is_elsewhere =
                matches!(class.command, Command::Expire(_)) && self.from.state.expires.is_none();
            if call > self.end || is_elsewhere || (self.from.is_open && class.command.overwrites()) {
                continue;
            }
            for mut next in self.execute(call, &class.command, None) {
                if next.state != self.from.state && (!selects || is_seen(&next.state)) {
                    next.place_unknown(number);
                    found.push(next);
                }
            }
        }
        found
    }

    /// What may be after a command: with the key as it is, and as it is once it has expired.
    fn execute(&self, call: Duration, command: &Command, reply: Option<&Reply>) -> Vec<Partial> {
        let now = self.from.now.max(call);
        let mut found = Vec::new();
        let mut branch = |state: &State, now: Duration| {
            if now > self.end {
                return;
            }
            let margin = self.rules.clock_margin;
            let deadline = |after| {
                (now.saturating_add(after).saturating_sub(margin), self.end.saturating_add(after + margin))
            };
            let (answer, state) = command.apply(state, deadline);
            if reply.is_none_or(|reply| *reply == answer) {
                found.push(Partial { state, now, ..self.from.clone() });
            }
        };
        match self.from.state.expires {
            None => branch(&self.from.state, now),
            Some((first, last)) => {
                if now <= last {
                    branch(&self.from.state, now);
                }
                branch(&State::default(), now.max(first));
            }
        }
        found
    }
}

/// A plain `SET` answers `OK` and leaves the same whatever was there: what was done before it is not seen.
fn is_blind(command: &Command, reply: &Reply) -> bool {
    command.overwrites() && *reply == Reply::Ok
}

fn describe(history: &Prepared, deepest: &Partial) -> Violation {
    let stuck = deepest.candidates(history, deepest.end(history));
    Violation {
        placed: deepest.placed(),
        total: history.done.len(),
        state: deepest.state.clone(),
        stuck: stuck.take(STUCK_MAX).map(|index| history.original[index].clone()).collect(),
    }
}
