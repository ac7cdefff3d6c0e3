//! What an operator does meanwhile: drain, forget, change the number of copies, re-form a lost quorum.
//!
//! For: sending a command to some node until one has taken it.
//! Not here: when (`faults`).

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::scenario::Run;
use crate::workload::ask;
use crate::world::client_ip;
use crate::world::host::Host;
use crate::world::member::CLIENT_PORT;

/// Pause between two tries.
const PAUSE_US: u64 = 400_000;

thread_local! {
    static ANSWER: RefCell<Option<Result<String, String>>> = const { RefCell::new(None) };
}

/// One thing to do.
#[derive(Clone, Debug)]
pub enum Errand {
    Drain { number: usize, id: String },
    Forget(String),
    Replication(u8),
    Reform,
}

/// What is to be done, in order.
#[derive(Default)]
pub struct Errands {
    waiting: VecDeque<(u64, Errand)>,
    operator: Option<Host>,
    asked_so_far: usize,
}

impl Errands {
    /// To be done not before a moment.
    pub fn add(&mut self, not_before_us: u64, errand: Errand) {
        self.waiting.push_back((not_before_us, errand));
    }

    /// Everything is done.
    ///
    /// # Errors
    /// What is not.
    pub fn is_idle(&self) -> Result<(), String> {
        self.waiting.front().map_or(Ok(()), |(_, errand)| Err(format!("not done yet: {errand:?}")))
    }

    /// A millisecond of the operator's time.
    pub fn step(&mut self, run: &mut Run) {
        let now = run.world.now_us;
        if let Some(operator) = &mut self.operator {
            operator.step(now);
            if !operator.is_idle() {
                return;
            }
            operator.kill(now);
            self.operator = None;
            let answer = ANSWER.take().unwrap_or_else(|| Err("nothing".to_owned()));
            self.take_in(run, answer);
            return;
        }
        let Some((not_before, errand)) = self.waiting.front() else { return };
        if *not_before > now {
            return;
        }
        let words = match errand {
            Errand::Drain { id, .. } => vec!["KORUM".to_owned(), "DRAIN".into(), id.clone()],
            Errand::Forget(id) => vec!["KORUM".to_owned(), "FORGET".into(), id.clone()],
            Errand::Replication(copies) => {
                vec!["KORUM".to_owned(), "REPLICATION".into(), copies.to_string()]
            }
            Errand::Reform => {
                vec!["KORUM".to_owned(), "REFORM-QUORUM".into(), "THE-OTHERS-ARE-GONE-FOR-EVER".into()]
            }
        };
        let seeds = run.seeds();
        let address = format!("{}:{CLIENT_PORT}", seeds[self.asked_so_far % seeds.len()]);
        self.asked_so_far += 1;
        let mut operator = Host::new("operator".to_owned(), client_ip(200), 1);
        operator.boot(async move {
            let answer = ask(address, words).await;
            ANSWER.set(Some(answer));
        });
        self.operator = Some(operator);
    }

    fn take_in(&mut self, run: &mut Run, answer: Result<String, String>) {
        let Some((_, errand)) = self.waiting.pop_front() else { return };
        let settled = |text: &str| {
            // The last: it was done after the operator had given up waiting.
            let settled = ["leaving already", "Unknown node", "copies already", "nothing to re-form"];
            settled.iter().any(|done| text.contains(done))
        };
        let is_done = match &answer {
            Ok(_) => true,
            Err(text) => settled(text),
        };
        tracing::info!(?errand, ?answer, is_done, "errand");
        if !is_done {
            self.waiting.push_front((run.world.now_us + PAUSE_US, errand));
        } else if let Errand::Drain { number, .. } = errand {
            run.world.members[number].leaves = true;
            run.tell_clients();
        }
    }
}
