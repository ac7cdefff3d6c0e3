//! From the command line to runs, a process for each seed.
//!
//! For: running seeds beside each other, and printing of each failure the one line that repeats it.
//! Not here: what a run is (`scenario`).
//!
//! A process a seed: so that nothing of one run, not even a counter inside a library, is left for the next.

use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use korum_node::env::mistake::{self, MISTAKES, Mistake};

use crate::invariants::i10_input;
use crate::known::KNOWN;
use crate::scenario;
use crate::world::log;

/// Longest time for one seed.
const SEED_WAIT: Duration = Duration::from_secs(300);

const USAGE: &str = "scripts/sim [--seeds N] [--seed FIRST] [--jobs N] [--known] [--twice] [--verbose] [--mistake NAME] [--mistakes]";

struct Options {
    first: u64,
    count: u64,
    jobs: usize,
    known: bool,
    twice: bool,
    verbose: bool,
    /// The mistake that every node makes.
    mistake: Option<Mistake>,
    /// Every mistake must be caught by one of the seeds.
    mistakes: bool,
    /// This process runs one seed.
    is_child: bool,
    is_quiet: bool,
}

fn options() -> Option<Options> {
    let mut options = Options {
        first: 1,
        count: 1,
        jobs: 2,
        known: false,
        twice: false,
        verbose: false,
        mistake: None,
        mistakes: false,
        is_child: false,
        is_quiet: false,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seed" => options.first = args.next()?.parse().ok()?,
            "--seeds" => options.count = args.next()?.parse().ok()?,
            "--jobs" => options.jobs = args.next()?.parse().ok().filter(|&jobs| jobs > 0)?,
            "--known" => options.known = true,
            "--twice" => options.twice = true,
            "--verbose" => options.verbose = true,
            "--mistake" => {
                let name = args.next()?;
                options.mistake = MISTAKES.iter().copied().find(|mistake| format!("{mistake:?}") == name);
                options.mistake?;
            }
            "--mistakes" => options.mistakes = true,
            "--one" => options.is_child = true,
            _ => return None,
        }
    }
    Some(options)
}

pub fn main() -> ExitCode {
    let Some(options) = options() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    if options.is_child || options.verbose {
        return one(&options);
    }
    let begun = Instant::now();
    if options.mistakes {
        return prove(&options);
    }
    let mut seeds: Vec<(u64, &str)> = Vec::new();
    if options.known {
        seeds.extend(KNOWN.iter().map(|&(name, seed)| (seed, name)));
    }
    seeds.extend((options.first..options.first + options.count).map(|seed| (seed, "")));
    if options.twice {
        seeds = seeds.iter().flat_map(|&seed| [seed, seed]).collect();
    }
    let runs = many(&seeds, &options);
    let failed: Vec<&Ended> = runs.iter().filter(|run| run.failed).collect();
    eprintln!("{} runs, {} failed, {} s", runs.len(), failed.len(), begun.elapsed().as_secs());
    let mistake = options.mistake.map_or(String::new(), |mistake| format!(" --mistake {mistake:?}"));
    for run in &failed {
        eprintln!("    scripts/sim --seed {}{mistake} --verbose    {}", run.seed, run.name);
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Every mistake, until a seed has caught it: a table.
fn prove(options: &Options) -> ExitCode {
    let mut missed = 0;
    println!("{:<20} {:>5}  what caught it", "mistake", "seeds");
    for &mistake in MISTAKES {
        let mut caught = None;
        let mut tried = 0;
        while tried < options.count && caught.is_none() {
            let more = (options.jobs as u64).min(options.count - tried);
            let first = options.first + tried;
            let seeds: Vec<(u64, &str)> = (first..first + more).map(|seed| (seed, "")).collect();
            let runs = many(&seeds, &Options { mistake: Some(mistake), is_quiet: true, ..*options });
            caught = runs.into_iter().filter(|run| run.failed).min_by_key(|run| run.seed);
            tried += more;
        }
        let name = format!("{mistake:?}");
        match caught {
            Some(run) => {
                let what: String = run.text.lines().next().unwrap_or_default().chars().take(150).collect();
                println!("{name:<20} {:>5}  {what}", run.seed + 1 - options.first);
            }
            None => {
                println!("{name:<20} {:>5}  NOT CAUGHT", format!(">{tried}"));
                missed += 1;
            }
        }
    }
    println!("{} mistakes, {missed} not caught", MISTAKES.len());
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one seed here.
fn one(options: &Options) -> ExitCode {
    if options.verbose {
        log::start();
    }
    std::panic::set_hook(Box::new(|panic| {
        let text = panic.to_string();
        if std::env::var_os("RUST_BACKTRACE").is_some() {
            eprintln!("{text}\n{}", std::backtrace::Backtrace::force_capture());
        }
        i10_input::note(text);
    }));
    let seed = options.first;
    // A fresh thread: whatever a thread keeps to make hash maps differ begins with the seed, and not with what this
    // one has done before.
    let mistake = options.mistake;
    let run = std::thread::Builder::new().spawn(move || {
        mistake::make(mistake);
        let result = std::panic::catch_unwind(|| scenario::run(seed));
        result.unwrap_or_else(|_| Err(i10_input::check().err().unwrap_or_default()))
    });
    let result = run.expect("a thread").join().unwrap_or_else(|_| Err("the world panicked".to_owned()));
    match result {
        Ok(summary) => {
            let scenario::Summary { plan, trace, delivered, virtual_ms, healed_ms, faults, lost, counts } =
                summary;
            eprintln!(
                "seed {seed}: {} nodes, R={}, {faults} faults{}, {virtual_ms} ms, healed in {healed_ms} ms, \
                 {delivered} messages, {} acknowledged, {} failed, {} unknown, {lost} lost, trace {trace:016x}",
                plan.nodes,
                plan.replication,
                if plan.is_wild { " (wild)" } else { "" },
                counts.acknowledged,
                counts.failed,
                counts.unknown,
            );
            ExitCode::SUCCESS
        }
        Err(what) => {
            eprintln!("seed {seed}: FAILED {what}");
            ExitCode::FAILURE
        }
    }
}

struct Job {
    seed: u64,
    name: &'static str,
    child: Child,
    began: Instant,
}

/// A run that is over.
struct Ended {
    seed: u64,
    name: &'static str,
    text: String,
    failed: bool,
}

/// Runs seeds beside each other; in the order in which they end.
fn many(seeds: &[(u64, &'static str)], options: &Options) -> Vec<Ended> {
    let mut waiting = seeds.iter();
    let mut running: Vec<Job> = Vec::new();
    let mut ended: Vec<Ended> = Vec::new();
    loop {
        while running.len() < options.jobs
            && let Some(&(seed, name)) = waiting.next()
        {
            running.push(start(seed, name, options.mistake));
        }
        if running.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
        for mut job in std::mem::take(&mut running) {
            let is_late = job.began.elapsed() > SEED_WAIT;
            if is_late {
                let _ = job.child.kill();
            }
            if matches!(job.child.try_wait(), Ok(None)) {
                running.push(job);
                continue;
            }
            let end = finish(job, is_late);
            if !options.is_quiet {
                let name = if end.name.is_empty() { String::new() } else { format!(" ({})", end.name) };
                eprintln!("{}{name}", end.text);
            }
            ended.push(end);
        }
    }
    if options.twice {
        ended.sort_by(|one, other| (one.seed, &one.text).cmp(&(other.seed, &other.text)));
        for pair in ended.chunks_mut(2) {
            if let [one, other] = pair
                && one.text != other.text
            {
                eprintln!("seed {}: FAILED two runs differ", one.seed);
                (one.failed, one.name) = (true, "two runs differ");
            }
        }
    }
    ended
}

fn start(seed: u64, name: &'static str, mistake: Option<Mistake>) -> Job {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--one", "--seed", &seed.to_string()]);
    if let Some(mistake) = mistake {
        command.args(["--mistake", &format!("{mistake:?}")]);
    }
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let child = command.spawn().expect("a process for a seed");
    Job { seed, name, child, began: Instant::now() }
}

fn finish(job: Job, is_late: bool) -> Ended {
    let Job { seed, name, child, .. } = job;
    let output = child.wait_with_output().expect("it has ended");
    let mut text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if is_late {
        text = format!("{text}\nseed {seed}: FAILED ended after {SEED_WAIT:?}");
    }
    Ended { seed, name, text, failed: is_late || !output.status.success() }
}
