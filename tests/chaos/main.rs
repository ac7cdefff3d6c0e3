//! The program behind `scripts/chaos`: faults on real nodes, as often as one likes, and a table of what came out.

#![expect(clippy::print_stdout, reason = "a table for people")]

use std::process::ExitCode;

use korum_tests::chaos::{Fault, Outcome, report, run};

/// What was asked for.
struct Options {
    runs: u64,
    seed: u64,
    nodes: usize,
    faults: Vec<Fault>,
    flags: Vec<String>,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(why) => {
            println!("{why}");
            for fault in Fault::ALL {
                let (name, about) = fault.about();
                println!("  {name:<15} {about}");
            }
            return ExitCode::from(2);
        }
    };
    let flags: Vec<&str> = options.flags.iter().map(String::as_str).collect();
    let mut rows: Vec<(Fault, Vec<Outcome>)> = Vec::new();
    let mut is_good = true;
    for &fault in &options.faults {
        let mut outcomes = Vec::new();
        for seed in options.seed..options.seed + options.runs {
            let outcome = run(fault, seed, options.nodes, &flags);
            println!(
                "{} seed {seed}: gap {:.1?} from {:.1?}, healing {:.1?} from {:.1?}, {} acknowledged, {} unknown, whole after {:?}{}",
                fault.about().0,
                outcome.gap,
                outcome.gap_at,
                outcome.gap_healing,
                outcome.gap_healing_at,
                outcome.acknowledged,
                outcome.unknown,
                outcome.healed,
                if outcome.is_good() { "" } else { " FAILED" }
            );
            if !outcome.is_good() {
                is_good = false;
                println!("{}", report::trouble(fault, seed, options.nodes, &flags, &outcome));
            }
            outcomes.push(outcome);
        }
        rows.push((fault, outcomes));
    }
    println!("\n{}", report::table(&rows));
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { runs: 1, seed: 1, nodes: 3, faults: Vec::new(), flags: Vec::new() };
    while let Some(flag) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{flag} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{flag} {value}: not a number"));
        match flag.as_str() {
            "--runs" => options.runs = number()?,
            "--seed" => options.seed = number()?,
            "--nodes" => options.nodes = usize::try_from(number()?).map_err(|error| error.to_string())?,
            "--fault" => {
                options.faults.push(Fault::named(&value).ok_or(format!("there is no fault {value}"))?)
            }
            "--flags" => options.flags = value.split_whitespace().map(str::to_owned).collect(),
            _ => {
                return Err(format!(
                    "unknown: {flag}; known: --runs N --fault NAME --seed S --nodes N --flags '…'; faults:"
                ));
            }
        }
    }
    if options.faults.is_empty() {
        options.faults = Fault::ALL.to_vec();
    }
    Ok(options)
}
