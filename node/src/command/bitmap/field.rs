//! Integers of any width anywhere in a string.
//!
//! For: `BITFIELD` and `BITFIELD_RO`.
//! Not here: reading and writing bits (`bits`).

use super::bits::Bits;
use super::{bit_offset, make_room, overwrite, seen};
use crate::command::args::{integer, is};
use crate::command::{Call, SYNTAX_ERROR, Stop};
use crate::store::{Classes, StringRef, integer as text};

/// `i1` to `i64`, `u1` to `u63`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Type {
    is_signed: bool,
    width: u32,
}

/// What happens to a number that does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Overflow {
    /// The highest bits are lost.
    Wrap,
    /// The nearest number that fits is taken.
    Saturate,
    /// Nothing happens.
    Fail,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Get,
    Set(i64),
    Increment(i64),
}

#[derive(Clone, Copy, Debug)]
struct Step {
    what: What,
    kind: Type,
    offset: usize,
    overflow: Overflow,
}

impl Step {
    /// The answer, and the bytes to be written from the one that holds the offset on.
    fn run(&self, bytes: &[u8]) -> (Option<i64>, Option<Vec<u8>>) {
        let Self { what, kind, offset, overflow } = *self;
        let old = kind.number(Bits(bytes).integer(offset, kind.width));
        let (new, answer) = match what {
            What::Get => (None, Some(old)),
            What::Set(number) => {
                let new = kind.fit(kind.given(number), overflow);
                (new, new.map(|_| old))
            }
            What::Increment(increment) => {
                let new = kind.fit(i128::from(old) + i128::from(increment), overflow);
                (new, new)
            }
        };
        (answer, new.map(|new| Bits(bytes).with_integer(offset, kind.width, new as u64)))
    }
}

impl Type {
    fn parse(argument: &[u8]) -> Result<Self, Stop> {
        let (is_signed, digits) = match argument.split_first() {
            Some((b'i', digits)) => (true, digits),
            Some((b'u', digits)) => (false, digits),
            _ => (true, &b""[..]),
        };
        let most = if is_signed { 64 } else { 63 };
        match text::parse(digits) {
            Some(width) if (1..=most).contains(&width) => Ok(Self { is_signed, width: width as u32 }),
            _ => Err(
                "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but \
                      i64 is."
                    .into(),
            ),
        }
    }

    /// The number that `bits`, the lowest ones, stand for.
    fn number(self, bits: u64) -> i64 {
        let unused = 64 - self.width;
        if self.is_signed { (bits << unused) as i64 >> unused } else { bits as i64 }
    }

    /// A number made to fit, or nothing.
    fn fit(self, number: i128, overflow: Overflow) -> Option<i64> {
        let (least, most) = if self.is_signed {
            (-(1 << (self.width - 1)), (1 << (self.width - 1)) - 1)
        } else {
            (0, (1_i128 << self.width) - 1)
        };
        match overflow {
            _ if (least..=most).contains(&number) => Some(number as i64),
            Overflow::Wrap => Some(self.number(number as u64 & u64::MAX >> (64 - self.width))),
            Overflow::Saturate => Some(number.clamp(least, most) as i64),
            Overflow::Fail => None,
        }
    }

    /// A number to be set, as `fit` takes it: to an unsigned type a negative one is a very large one.
    fn given(self, number: i64) -> i128 {
        if self.is_signed { number.into() } else { (number as u64).into() }
    }
}

/// Reads all steps.
fn parse(call: &Call<'_>) -> Result<Vec<Step>, Stop> {
    let args = call.args;
    let (mut steps, mut overflow, mut index) = (Vec::new(), Overflow::Wrap, 2);
    while let Some(word) = args.get(index) {
        let left = args.len() - index - 1;
        if is(word, "overflow") && left >= 1 {
            let named = [("wrap", Overflow::Wrap), ("sat", Overflow::Saturate), ("fail", Overflow::Fail)];
            let found = named.into_iter().find(|(name, _)| is(&args[index + 1], name));
            overflow = found.ok_or("ERR Invalid OVERFLOW type specified")?.1;
            index += 2;
            continue;
        }
        let is_get = is(word, "get") && left >= 2;
        let is_set = is(word, "set") && left >= 3;
        if !(is_get || is_set || is(word, "incrby") && left >= 3) {
            return Err(SYNTAX_ERROR.into());
        }
        let kind = Type::parse(&args[index + 1])?;
        let offset = bit_offset(&args[index + 2], Some(kind.width))?;
        let what = match is_get {
            true => What::Get,
            false if is_set => What::Set(integer(&args[index + 3])?),
            false => What::Increment(integer(&args[index + 3])?),
        };
        steps.push(Step { what, kind, offset, overflow });
        index += if is_get { 3 } else { 4 };
    }
    Ok(steps)
}

/// `BITFIELD key [GET type offset] [SET type offset value] [INCRBY type offset increment] [OVERFLOW WRAP|SAT|FAIL] …`
pub fn bitfield(call: &mut Call<'_>) {
    call.answer(|call| {
        let steps = parse(call)?;
        run(call, &steps)
    });
}

/// `BITFIELD_RO key [GET type offset] …`
pub fn bitfield_ro(call: &mut Call<'_>) {
    call.answer(|call| {
        let steps = parse(call)?;
        if steps.iter().any(|step| !matches!(step.what, What::Get)) {
            return Err("ERR BITFIELD_RO only supports the GET subcommand".into());
        }
        run(call, &steps)
    });
}

fn run(call: &mut Call<'_>, steps: &[Step]) -> Result<(), Stop> {
    let place = call.place(1);
    let writes = steps.iter().filter(|step| !matches!(step.what, What::Get));
    match writes.map(|step| (step.offset + step.kind.width as usize - 1) / 8).max() {
        Some(last) => {
            let found = seen(call, place, last)?;
            make_room(call, place, last, found);
        }
        None => {
            call.read_string(place)?;
        }
    }
    let mut is_changed = false;
    call.reply.array(steps.len());
    for step in steps {
        let string = call.read_string(place)?;
        let (answer, part) = step.run(&string.map(StringRef::bytes).unwrap_or_default());
        if let Some(part) = part {
            overwrite(call, place, step.offset / 8, &part);
            is_changed = true;
        }
        match answer {
            Some(number) => call.reply.integer(number),
            None => call.reply.null(),
        }
    }
    if is_changed {
        call.notify(Classes::STRING, "setbit", place);
    }
    Ok(())
}
