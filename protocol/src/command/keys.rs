//! Which arguments are keys?
//!
//! For: routing and access rules, which must find the keys of any command.
//! Not here: what happens to a key (`KeySpec` says it), slots (`placement`).

use super::CommandSpec;
use crate::resp::Args;

/// Finds the keys of a command whose keys have no fixed place (as `EVAL` counts them in an argument).
pub type FindKeys = fn(&Args<'_>) -> Result<Vec<usize>, KeysError>;

/// Why the keys cannot be found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeysError {
    /// The arguments end before the keys do.
    #[error("ERR Invalid arguments specified for command")]
    Invalid,
}

/// Indices of the keys, in order.
#[derive(Clone, Debug)]
pub struct KeyPositions(Positions);

#[derive(Clone, Debug)]
enum Positions {
    Fixed { next: usize, last: usize, step: usize },
    Found(std::vec::IntoIter<usize>),
}

impl Iterator for KeyPositions {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        match &mut self.0 {
            Positions::Fixed { next, last, step } => {
                let index = *next;
                *next = index + *step;
                (index <= *last).then_some(index)
            }
            Positions::Found(found) => found.next(),
        }
    }
}

/// Where the keys of this request stand: none for a command without keys. The arity was checked before
/// ([`super::resolve()`] does), so fixed places are there.
///
/// # Errors
/// [`KeysError::Invalid`] when the arguments end before the keys do.
#[inline]
pub fn key_positions(spec: &CommandSpec, args: &Args<'_>) -> Result<KeyPositions, KeysError> {
    if let Some(find) = spec.find_keys {
        return find(args).map(|found| KeyPositions(Positions::Found(found.into_iter())));
    }
    let Ok(first @ 1..) = usize::try_from(spec.first_key) else {
        return Ok(KeyPositions(Positions::Fixed { next: 1, last: 0, step: 1 }));
    };
    let last = range_end(spec.last_key, args.len()).ok_or(KeysError::Invalid)?;
    if last < first {
        return Err(KeysError::Invalid);
    }
    let step = usize::from(spec.key_step.unsigned_abs()).max(1);
    Ok(KeyPositions(Positions::Fixed { next: first, last, step }))
}

/// The last key's index among `count` arguments: `last` counts from the end when negative.
fn range_end(last: i16, count: usize) -> Option<usize> {
    let distance = usize::from(last.unsigned_abs());
    let end = if last < 0 { count.checked_sub(distance)? } else { distance };
    (end < count).then_some(end)
}
