//! What must hold all the time, looked at from inside.
//!
//! For: the invariants of the design (§8), by their numbers.
//! Not here: what clients may see (`history`), what must become true in the end (`ending`).
//!
//! | invariant | what is looked at |
//! |---|---|
//! | I1 | who would serve at this moment |
//! | I2 | the paths of all holders' copies, against what was answered; and every key's history (`history`) |
//! | I3 | the lease at the moment of each answer; roles |
//! | I4 | every map that any node makes or uses (`agreed`) |
//! | I5 | the table of each new map |
//! | I6 | the replica sets before and after each change; whom primaries send to |
//! | I7 | the holders before and after each change |
//! | I8 | roles, and whether a copy was ever whole |
//! | I9 | what waits on links |
//! | I10 | a panic anywhere ends the run |
//! | I11 | the bytes of copies at the same position |

mod agreed;
pub mod i10_input;
mod i11_bytes;
mod i1_one_server;
mod i2_kept;
mod i3_leases;
mod i5_tables;
mod i6_moves;
mod i7_copies_stay;
mod i8_copies;
mod i9_bounds;

use korum_node::env::witness::take_answers;

use crate::world::World;

pub use i11_bytes::same_bytes_everywhere;

/// Steps between two looks at roles and queues, which stay wrong when they are,
const ROLE_STEPS: u64 = 5;
/// and between two looks at all content, which cost more than the rest.
const CONTENT_STEPS: u64 = 25;

/// What the looks remember.
#[derive(Default)]
pub struct Watch {
    steps: u64,
    agreed: agreed::Agreed,
    kept: i2_kept::Kept,
    whole: i8_copies::Whole,
    contents: i11_bytes::Contents,
}

impl Watch {
    /// Looks at everything.
    ///
    /// # Errors
    /// What does not hold.
    pub fn look(&mut self, world: &World) -> Result<(), String> {
        self.steps += 1;
        i10_input::check()?;
        for step in self.agreed.new_steps()? {
            i5_tables::check(&step)?;
            i6_moves::check(&step)?;
            i7_copies_stay::check(&step)?;
        }
        self.agreed.check(world)?;
        i1_one_server::check(world)?;
        self.whole.check(world)?;
        let answers = take_answers();
        i3_leases::check_answers(&answers)?;
        let looks_at_all = self.steps.is_multiple_of(ROLE_STEPS);
        if looks_at_all || !answers.is_empty() {
            let cluster = world.nodes().next().map(|(_, _, node)| node.view().map.cluster_id.0);
            if let Some(newest) = cluster.and_then(|cluster| self.agreed.newest(cluster)) {
                self.kept.check(world, newest, &answers, looks_at_all)?;
            }
        }
        if looks_at_all {
            i3_leases::check_roles(world)?;
            i6_moves::check_streams(world)?;
            i9_bounds::check(world)?;
        }
        if self.steps.is_multiple_of(CONTENT_STEPS) {
            self.contents.check(world)?;
        }
        Ok(())
    }
}
