//! The gates that a command passes, in order:
//!
//! 1. `resolve` (in `korum_protocol::command`): is there such a command, with so many arguments?
//! 2. `admit`: may this connection run it now?
//! 3. `route`: where do its keys live?
//! 4. `batch`: run it here at once, or leave a task; `split` takes multi-key commands apart.
//! 5. `finish`: wait once, for acknowledgements (`settle`) and for other nodes (`remote`).
//! 6. `assemble`: the replies, in request order; `count`: what was run, for the statistics.
//!
//! Commands without keys are answered by `keyless`, those that wait for the cluster by `alone` (`WAIT` by
//! `wait`, those that wait for something to come by `blocking`); those that speak for the whole cluster on the client
//! port by `everywhere`, some of them about databases by `databases`; what is said between `MULTI` and `EXEC` is queued
//! by `transaction`; scripts find their way through `scripts`, functions through `functions`; messages go out by
//! `publish`.

pub mod caller;
pub mod admit;
pub mod route;
pub mod execute;
mod parts;
mod means;
pub mod batch;
mod forwarded;
mod split;
pub mod slices;
pub mod everywhere;
pub mod databases;
pub mod blocking;
pub mod transaction;
pub mod publish;
pub mod track;
pub mod scripts;
pub mod functions;
mod finish;
mod remote;
mod settle;
mod repeat;
mod wait;
mod assemble;
mod count;
pub mod keyless;
pub mod alone;

pub use batch::Batch;
pub use caller::Caller;
pub use route::Port;
