//! Starts the log.
//!
//! For: one line an event on standard error, as the config says.
//! Not here: what is logged.

use tracing_subscriber::EnvFilter;

use crate::config::{Log, LogFormat};
use korum_raft::LOG_DIRECTIVE;

/// Sets up the log of the process, once.
pub fn start(config: &Log) {
    // Raft's own chatter is of use to its authors only, unless asked for.
    let filter = if config.level.contains('=') {
        config.level.clone()
    } else {
        format!("{},{LOG_DIRECTIVE}", config.level)
    };
    let filter =
        EnvFilter::try_new(&filter).unwrap_or_else(|_| EnvFilter::new(format!("info,{LOG_DIRECTIVE}")));
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_target(true);
    match config.format {
        LogFormat::Text => builder.with_ansi(false).init(),
        LogFormat::Json => builder.json().init(),
    }
}
