//! From the command line to runs, a process for each seed.
//!
//! For: running seeds beside each other, and printing of each failure the one line that repeats it.
//! Not here: what a run is (`scenario`).
//!
//! A process a seed: so that nothing of one run, not even a counter inside a library, is left for the next.

use std::cell::RefCell;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::known::KNOWN;
use crate::scenario;
use crate::world::log;

/// Longest time for one seed.
const SEED_WAIT: Duration = Duration::from_secs(300);

const USAGE: &str = "scripts/sim [--seeds N] [--seed FIRST] [--jobs N] [--known] [--twice] [--verbose]";

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What a panic said, if there was one.
///
/// # Errors
/// There was one.
pub fn panicked() -> Result<(), String> {
    PANIC.with(|panic| panic.borrow().clone().map_or(Ok(()), |text| Err(format!("I10: {text}"))))
}

struct Options {
    first: u64,
    count: u64,
    jobs: usize,
    known: bool,
    twice: bool,
    verbose: bool,
    /// This process runs one seed.
    is_child: bool,
}

fn options() -> Option<Options> {
    let mut options =
        Options { first: 1, count: 1, jobs: 2, known: false, twice: false, verbose: false, is_child: false };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--seed" => options.first = args.next()?.parse().ok()?,
            "--seeds" => options.count = args.next()?.parse().ok()?,
            "--jobs" => options.jobs = args.next()?.parse().ok().filter(|&jobs| jobs > 0)?,
            "--known" => options.known = true,
            "--twice" => options.twice = true,
            "--verbose" => options.verbose = true,
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
    let mut seeds: Vec<(u64, &str)> = Vec::new();
    if options.known {
        seeds.extend(KNOWN.iter().map(|&(name, seed)| (seed, name)));
    }
    seeds.extend((options.first..options.first + options.count).map(|seed| (seed, "")));
    if options.twice {
        seeds = seeds.iter().flat_map(|&seed| [seed, seed]).collect();
    }
    many(&seeds, options.jobs, options.twice)
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
        // A second one is a consequence of the first.
        let _ = PANIC.try_with(|first| first.borrow_mut().get_or_insert(text).len());
    }));
    let seed = options.first;
    // A fresh thread: whatever a thread keeps to make hash maps differ begins with the seed, and not with what this
    // one has done before.
    let run = std::thread::Builder::new().spawn(move || {
        let result = std::panic::catch_unwind(|| scenario::run(seed));
        result.unwrap_or_else(|_| Err(panicked().err().unwrap_or_default()))
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

fn many(seeds: &[(u64, &'static str)], jobs: usize, twice: bool) -> ExitCode {
    let begun = Instant::now();
    let mut waiting = seeds.iter();
    let mut running: Vec<Job> = Vec::new();
    let mut lines: Vec<(u64, String)> = Vec::new();
    let mut failed: Vec<(u64, &str)> = Vec::new();
    loop {
        while running.len() < jobs
            && let Some(&(seed, name)) = waiting.next()
        {
            let child = Command::new(std::env::current_exe().expect("this program"))
                .args(["--one", "--seed", &seed.to_string()])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .expect("a process for a seed");
            running.push(Job { seed, name, child, began: Instant::now() });
        }
        if running.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
        let mut still = Vec::new();
        for mut job in running {
            let is_late = job.began.elapsed() > SEED_WAIT;
            if is_late {
                let _ = job.child.kill();
            }
            match job.child.try_wait() {
                Ok(None) => still.push(job),
                _ => {
                    let (seed, name) = (job.seed, job.name);
                    let output = job.child.wait_with_output().expect("it has ended");
                    let text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                    let named = if name.is_empty() { String::new() } else { format!(" ({name})") };
                    eprintln!("{text}{named}");
                    if !output.status.success() {
                        if is_late {
                            eprintln!("seed {seed}: FAILED ended after {SEED_WAIT:?}");
                        }
                        eprintln!("    again: scripts/sim --seed {seed} --verbose");
                        failed.push((seed, name));
                    }
                    lines.push((seed, text));
                }
            }
        }
        running = still;
    }
    if twice {
        lines.sort();
        for pair in lines.chunks(2).filter(|pair| pair.len() == 2 && pair[0] != pair[1]) {
            eprintln!("seed {}: FAILED two runs differ", pair[0].0);
            failed.push((pair[0].0, "two runs differ"));
        }
    }
    let took = begun.elapsed().as_secs();
    eprintln!("{} seeds, {} failed, {took} s", seeds.len(), failed.len());
    for (seed, name) in &failed {
        eprintln!("    scripts/sim --seed {seed} --verbose    {name}");
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
