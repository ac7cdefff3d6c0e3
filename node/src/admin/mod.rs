//! What a node tells of itself; reads state, never changes it.
//!
//! For: the texts of `INFO` and `KORUM STATUS`, counters, process figures.
//! Not here: parsing of the commands that ask (`command::server`, `command::korum`).

pub mod command_stats;
pub mod explain;
pub mod forecast;
pub mod histogram;
pub mod info;
mod json;
pub mod log;
pub mod process;
pub mod snapshot;
pub mod stats;
pub mod slowlog;
pub mod sparkline;
pub mod status;
pub mod stop;
