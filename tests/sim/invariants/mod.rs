//! What must hold after every step, looked at from inside.
//!
//! For: one file an invariant of the design (§8), each with its number in its name.
//! Not here: what clients may see (`history`), what must become true in the end (`ending`).
//!
//! | invariant | where |
//! |---|---|
//! | I1, I3 | `i1_one_server` |
//! | I2 | every key's history, final reads included (`history`) |
//! | I4, I5 | `i4_maps` |
//! | I6 | a property of pure functions: `protocol/tests/map_properties.rs` |
//! | I7, I8 | `i8_copies` |
//! | I9 | `i9_bounds` |
//! | I10 | a panic anywhere ends the run (`runner`) |
//! | I11 | `i11_bytes` |

mod i11_bytes;
mod i1_one_server;
mod i4_maps;
mod i8_copies;
mod i9_bounds;

use crate::world::World;

pub use i11_bytes::same_bytes_everywhere;

/// Steps between two looks at all content: it costs more than the rest.
const CONTENT_STEPS: u64 = 25;

/// What the looks remember.
#[derive(Default)]
pub struct Watch {
    steps: u64,
    maps: i4_maps::Maps,
    contents: i11_bytes::Contents,
}

impl Watch {
    /// Looks at everything.
    ///
    /// # Errors
    /// What does not hold.
    pub fn look(&mut self, world: &World) -> Result<(), String> {
        self.steps += 1;
        self.maps.check(world)?;
        i1_one_server::check(world)?;
        if self.steps.is_multiple_of(5) {
            i8_copies::check(world)?;
            i9_bounds::check(world)?;
        }
        if self.steps.is_multiple_of(CONTENT_STEPS) {
            self.contents.check(world)?;
        }
        Ok(())
    }
}
