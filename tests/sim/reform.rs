//! A majority of the voters is lost for ever, and an operator re-forms the quorum.
//!
//! For: the phase that follows the faults in some runs: the loss, the command, one lost node that comes back with its
//! directory and one without.
//! Not here: sending the command (`errands`), what must hold (`invariants`, `ending`).

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use crate::errands::Errand;
use crate::faults::Faults;
use crate::scenario::Run;

/// Fewer voters lose no majority and keep one.
const VOTERS_MIN: usize = 3;
/// Longest time until no survivor serves.
const LEASES_MS: u64 = 3_000;
/// Longest time for the operator: a re-forming takes up to 20 s, and one that failed is asked for again.
const REFORM_MS: u64 = 60_000;
/// Longest time for a lost node to learn that it is outside.
const LEARN_MS: u64 = 30_000;

/// Whom it hits.
struct Lost {
    /// All of them.
    members: Vec<usize>,
    /// One that comes back as it was.
    with_directory: Option<usize>,
    /// One that comes back as a new node.
    empty: Option<usize>,
}

/// Does it all, to a cluster that is healthy.
///
/// # Errors
/// What did not hold.
pub fn lose_majority(run: &mut Run, faults: &mut Faults) -> Result<(), String> {
    let mut chance = SmallRng::seed_from_u64(run.plan.seed ^ 0x666f_726d);
    let Some(lost) = choose(run, &mut chance) else { return Ok(()) };
    tracing::info!(members = ?lost.members, "a majority of the voters is lost");
    // Partitions that no survivor holds are lost, and that is said.
    run.plan.is_wild = true;
    for &number in &lost.members {
        let member = &mut run.world.members[number];
        member.kill(run.world.now_us, false);
        (member.leaves, member.ended) = (true, None);
    }
    run.tell_clients();
    run.until(LEASES_MS, "survivors without a quorum keep their leases", |world| {
        let serves = world
            .nodes()
            .any(|(_, member, _)| member.look(world.now_us, |node| node.is_leased()) == Some(true));
        if serves { Err("one serves".to_owned()) } else { Ok(()) }
    })?;
    faults.add_errand(Errand::Reform, run.world.now_us);
    run.tend_until(faults, REFORM_MS, "the quorum is not re-formed", |_, faults| faults.is_idle())?;
    tracing::info!("the quorum is re-formed");
    if let Some(number) = lost.with_directory {
        let seeds = run.seeds();
        run.world.members[number].start(&seeds);
        run.until(LEARN_MS, "a lost node does not learn that it is outside", |world| {
            match &world.members[number].ended {
                Some(Err(_)) => Ok(()),
                other => Err(format!("it ended with {other:?}")),
            }
        })?;
        run.world.members[number].ended = None;
    }
    if let Some(number) = lost.empty {
        let seeds = run.seeds();
        let member = &mut run.world.members[number];
        member.leaves = false;
        member.lose_disk();
        member.start(&seeds);
        run.tell_clients();
    }
    Ok(())
}

/// A majority of the voters, and who of them comes back.
fn choose(run: &Run, chance: &mut SmallRng) -> Option<Lost> {
    let (_, _, node) = run.world.nodes().next()?;
    let voters = node.cluster().consensus().voters().voters;
    let voting = run.world.nodes().filter(|(_, _, node)| voters.contains(&node.id()));
    let mut members: Vec<usize> = voting.map(|(number, ..)| number).collect();
    if members.len() < VOTERS_MIN {
        return None;
    }
    members.shuffle(chance);
    members.truncate(chance.random_range(members.len() / 2 + 1..members.len()));
    let mut comes_back = |place: usize| (chance.random_range(0..2) == 0).then(|| members[place]);
    let (with_directory, empty) = (comes_back(0), comes_back(1));
    Some(Lost { members, with_directory, empty })
}
