//! Many runs as a table.

use std::fmt::Write;
use std::time::Duration;

use super::fault::Fault;
use super::run::Outcome;

/// The rows for people: one fault each.
#[must_use]
pub fn table(rows: &[(Fault, Vec<Outcome>)]) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{:<15} {:>4}  {:>25}  {:>9} {:>9}  {:>8} {:>7} {:>7} {:>6} {:>5} {:>10} {:>8}",
        "fault",
        "runs",
        "write gap ms med/p95/max",
        "healing",
        "whole",
        "acked",
        "refused",
        "unknown",
        "queued",
        "lost",
        "violations",
        "severed"
    );
    for (fault, runs) in rows {
        let sum = |count: fn(&Outcome) -> usize| runs.iter().map(count).sum::<usize>();
        let most = |time: fn(&Outcome) -> Duration| ms(runs.iter().map(time).max().unwrap_or_default());
        let mut gaps: Vec<Duration> = runs.iter().map(|run| run.gap).collect();
        gaps.sort_unstable();
        let gap = format!("{} / {} / {}", ms(at(&gaps, 50)), ms(at(&gaps, 95)), ms(at(&gaps, 100)));
        let severed = runs.iter().filter_map(|run| run.severed).max().map_or("-".to_owned(), ms);
        let _ = writeln!(
            text,
            "{:<15} {:>4}  {:>25}  {:>9} {:>9}  {:>8} {:>7} {:>7} {:>6} {:>5} {:>10} {:>8}",
            fault.about().0,
            runs.len(),
            gap,
            most(|run| run.gap_healing),
            most(|run| run.healed),
            sum(|run| run.acknowledged),
            sum(|run| run.failed),
            sum(|run| run.unknown),
            sum(|run| run.items),
            sum(|run| run.lost.len()),
            sum(|run| run.violations.len()),
            severed,
        );
    }
    text.push_str(
        "write gap: the longest time that a writer at a healthy node waited; healing: the same after the fault's end, \
         the longest; whole: until every copy was in place, the longest; queued: items that went through queues; \
         severed: the last acknowledgement of a node after it was cut off. Milliseconds.\n",
    );
    text
}

/// What went wrong in a run, and how to see it again.
#[must_use]
pub fn trouble(fault: Fault, seed: u64, nodes: usize, flags: &[&str], run: &Outcome) -> String {
    let name = fault.about().0;
    let mut text = String::new();
    for (what, found) in [("lost", &run.lost), ("violation", &run.violations), ("trouble", &run.troubles)] {
        for one in found.iter().take(5) {
            let _ = writeln!(text, "{name}, seed {seed}: {what}: {one}");
        }
    }
    if let Some(path) = &run.kept {
        let _ = writeln!(text, "kept: {path}");
    }
    let flags = if flags.is_empty() { String::new() } else { format!(" --flags \"{}\"", flags.join(" ")) };
    let _ =
        writeln!(text, "again: scripts/chaos --fault {name} --seed {seed} --runs 1 --nodes {nodes}{flags}");
    text
}

fn ms(time: Duration) -> String {
    if time == Duration::MAX { "never".to_owned() } else { time.as_millis().to_string() }
}

/// The percentile of sorted times.
fn at(sorted: &[Duration], percent: usize) -> Duration {
    let place = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(place).copied().unwrap_or_default()
}
