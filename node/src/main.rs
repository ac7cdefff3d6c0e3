//! The node's process: arguments become a config, the config runs, and its end becomes an exit code.

use std::io::Write;
use std::process::ExitCode;

use korum_node::config::{Action, Config};
use korum_node::env::Clock;
use korum_node::server;

#[cfg(feature = "sim")]
compile_error!("feature `sim` takes network, clock and disk away: it is for scripts/sim only");

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match Config::of_process() {
        Ok(Action::Print(text)) => {
            // A reader that is gone wants nothing more.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Ok(Action::Run(config)) => run(*config),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run(config: Config) -> ExitCode {
    korum_node::admin::log::start(&config.log);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = runtime.map_err(server::ServerError::from).and_then(|runtime| {
        let outcome = runtime.block_on(server::run(config, Clock::system(), |_| {}));
        runtime.shutdown_background();
        outcome
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "korum-node stops");
            eprintln!("korum-node: {error}");
            ExitCode::FAILURE
        }
    }
}
