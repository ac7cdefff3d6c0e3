//! The forms in which collections are written.
//!
//! For: going through the items of any of them, whatever they are items of.
//! Not here: the values that are made of them (`mod`), streams (`stream`).
//!
//! ```text
//! plain       = number | string …                          (of pairs: their number)
//! packed      = string that holds a listpack, a ziplist or a set of integers
//! quicklist   = number | string that holds a ziplist …
//! quicklist 2 = number | 1, string | 2, string that holds a listpack …
//! ```

use super::string::{Item, read, read_length, read_number};
use super::{RdbError, listpack, ziplist};

/// How items are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// So many strings make one of those that are counted.
    Plain(usize),
    /// All in a listpack.
    Listpack,
    /// All in a ziplist.
    Ziplist,
    /// All in a set of integers.
    Integers,
    /// In several ziplists.
    Quicklist,
    /// In several listpacks, or on their own.
    Quicklist2,
}

const NODE_ALONE: u64 = 1;
const NODE_LISTPACK: u64 = 2;

/// Gives all items to `visit`, in order.
///
/// # Errors
/// When the form is not whole, or `visit` says so.
pub fn each(
    form: Form,
    input: &mut &[u8],
    mut visit: impl FnMut(&[u8]) -> Result<(), RdbError>,
) -> Result<(), RdbError> {
    let visit = &mut visit;
    match form {
        Form::Plain(strings) => {
            for _ in 0..read_length(input)? {
                (0..strings).try_for_each(|_| visit(&read(input)?))?;
            }
        }
        Form::Listpack => all(listpack::items(&read(input)?)?, visit)?,
        Form::Ziplist => all(ziplist::items(&read(input)?)?, visit)?,
        Form::Integers => {
            let numbers = ziplist::integers(&read(input)?)?;
            all(numbers.into_iter().map(Item::Integer), visit)?;
        }
        Form::Quicklist => {
            for _ in 0..read_length(input)? {
                all(ziplist::items(&read(input)?)?, visit)?;
            }
        }
        Form::Quicklist2 => {
            for _ in 0..read_length(input)? {
                match read_number(input)? {
                    NODE_ALONE => visit(&read(input)?)?,
                    NODE_LISTPACK => all(listpack::items(&read(input)?)?, visit)?,
                    _ => return Err(RdbError::Content),
                }
            }
        }
    }
    Ok(())
}

fn all<'a>(
    items: impl IntoIterator<Item = Item<'a>>,
    visit: &mut impl FnMut(&[u8]) -> Result<(), RdbError>,
) -> Result<(), RdbError> {
    items.into_iter().try_for_each(|item| visit(&item.text()))
}

/// As [`each`], two at a time.
///
/// # Errors
/// Also when one is left over.
pub fn each_pair(
    form: Form,
    input: &mut &[u8],
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), RdbError>,
) -> Result<(), RdbError> {
    let mut first = None;
    each(form, input, |item| match first.take() {
        None => {
            first = Some(item.to_vec());
            Ok(())
        }
        Some(one) => visit(&one, item),
    })?;
    if first.is_none() { Ok(()) } else { Err(RdbError::Content) }
}
