//! Moving partitions to where they belong.
//!
//! For: making the exceptions of the map's holders disappear.
//! Next: `plan` says what is to be moved, `execute` moves it, `throttle` and `window` say how
//! fast.

pub mod execute;
pub mod plan;
mod silence;
pub mod throttle;
mod window;
