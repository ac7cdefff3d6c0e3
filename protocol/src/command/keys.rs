//! Which arguments are keys?
//!
//! For: routing and access rules, which must find the keys of any command.
//! Not here: what happens to a key (`KeySpec` says it), slots (`placement`).

use super::{CommandId, CommandSpec, Flags, KeyFlags, KeyForm, KeySpec};
use crate::resp::Args;
use crate::resp::number::integer;

/// Finds the keys of a command whose specifications do not say where all of them stand.
pub type FindKeys = fn(&CommandSpec, &Args<'_>) -> Result<Vec<usize>, KeysError>;

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
    if spec.flags.contains(Flags::MOVABLEKEYS) {
        let found = spec.find_keys.unwrap_or(found)(spec, args)?;
        return Ok(KeyPositions(Positions::Found(found.into_iter())));
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

/// The keys that the specifications name, in their order.
///
/// # Errors
/// [`KeysError::Invalid`] when a number of keys is none, or more than there are arguments.
pub fn found(spec: &CommandSpec, args: &Args<'_>) -> Result<Vec<usize>, KeysError> {
    let mut found = Vec::new();
    for key in spec.keys {
        find(key, args, &mut found)?;
    }
    Ok(found)
}

/// The keys of this request, as [`key_positions`] finds them, and what happens to each.
///
/// # Errors
/// As there.
pub fn keys_with_flags(spec: &CommandSpec, args: &Args<'_>) -> Result<Vec<(usize, KeyFlags)>, KeysError> {
    let mut with_flags = Vec::new();
    if let Some(find_keys) = spec.find_keys {
        // One that is read, and those to which the outcome goes.
        let of = |nth: usize| if nth == 0 { spec.keys.first() } else { spec.keys.last() };
        let flags = |nth: usize| of(nth).map_or(KeyFlags::default(), |key| key.flags);
        with_flags.extend(find_keys(spec, args)?.into_iter().enumerate().map(|(nth, at)| (at, flags(nth))));
        return Ok(with_flags);
    }
    for key in spec.keys {
        let mut found = Vec::new();
        find(key, args, &mut found)?;
        let flags =
            if key.flags.contains(KeyFlags::VARIABLE_FLAGS) { varying(spec, args) } else { key.flags };
        with_flags.extend(found.into_iter().map(|at| (at, flags)));
    }
    Ok(with_flags)
}

/// What `SET` and `BITFIELD` do with their key depends on their arguments.
fn varying(spec: &CommandSpec, args: &Args<'_>) -> KeyFlags {
    let is = |at: usize, word: &[u8]| args.get(at).is_some_and(|given| given.eq_ignore_ascii_case(word));
    let changes = KeyFlags::of(&[KeyFlags::RW, KeyFlags::ACCESS, KeyFlags::UPDATE]);
    if spec.id == CommandId::Set {
        let mut at = 3;
        while at < args.len() {
            if is(at, b"get") {
                return changes;
            }
            let takes_time = [&b"ex"[..], b"px", b"exat", b"pxat"].iter().any(|word| is(at, word));
            at += if takes_time { 2 } else { 1 };
        }
        return KeyFlags::of(&[KeyFlags::OW, KeyFlags::UPDATE]);
    }
    let mut at = 2;
    while at < args.len() {
        let left = args.len() - at - 1;
        if is(at, b"get") && left >= 2 {
            at += 3;
        } else if is(at, b"overflow") && left >= 1 {
            at += 2;
        } else {
            return changes;
        }
    }
    KeyFlags::of(&[KeyFlags::RO, KeyFlags::ACCESS])
}

/// Appends the keys that one specification names.
fn find(key: &KeySpec, args: &Args<'_>, found: &mut Vec<usize>) -> Result<(), KeysError> {
    match key.form {
        KeyForm::Range => {
            let last = if key.last < 0 {
                range_end(key.last.into(), args.len()).ok_or(KeysError::Invalid)?
            } else {
                usize::from(key.first) + usize::from(key.last.unsigned_abs())
            };
            if last >= args.len() || last < usize::from(key.first) {
                return Err(KeysError::Invalid);
            }
            found.extend((usize::from(key.first)..=last).step_by(usize::from(key.step.max(1))));
        }
        KeyForm::Counted => found.extend(counted(key, args)?),
        KeyForm::After { word, from, parts } => {
            let is_it = |&at: &usize| args[at].eq_ignore_ascii_case(word.as_bytes());
            let Some(word) = (usize::from(from)..args.len()).find(is_it) else { return Ok(()) };
            let left = args.len() - word - 1;
            let count = if parts > 0 { left / usize::from(parts) } else { left.min(1) };
            found.extend(word + 1..word + 1 + count);
        }
        KeyForm::Unknown => {}
    }
    Ok(())
}

/// The keys of `SORT`: the one that is sorted, and the one behind the last `STORE`.
///
/// # Errors
/// Never.
pub fn of_sort(_: &CommandSpec, args: &Args<'_>) -> Result<Vec<usize>, KeysError> {
    let (mut target, mut index) = (None, 2);
    while let Some(word) = args.get(index) {
        let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
        index += if is(b"limit") {
            2
        } else if is(b"get") || is(b"by") {
            1
        } else if is(b"store") && index + 1 < args.len() {
            target = Some(index + 1);
            1
        } else {
            0
        };
        index += 1;
    }
    Ok(std::iter::once(1).chain(target).collect())
}

fn counted(key: &KeySpec, args: &Args<'_>) -> Result<std::ops::Range<usize>, KeysError> {
    let first = usize::from(key.first);
    let count = args.get(first).and_then(integer).and_then(|count| usize::try_from(count).ok());
    let count = count.filter(|&count| count < args.len() - first).ok_or(KeysError::Invalid)?;
    Ok(first + 1..first + 1 + count)
}

/// The last key's index among `count` arguments: `last` counts from the end when negative.
fn range_end(last: i16, count: usize) -> Option<usize> {
    let distance = usize::from(last.unsigned_abs());
    let end = if last < 0 { count.checked_sub(distance)? } else { distance };
    (end < count).then_some(end)
}
