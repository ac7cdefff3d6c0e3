//! Redis' floating point numbers: the 80-bit long double of x86, without its hardware.
//!
//! For: `INCRBYFLOAT` with the digits that Redis answers on any machine. Numbers are read, added and
//! printed exactly and rounded once, to nearest and ties to even, as the C library and the x87 do.
//! Bounded: texts have at most 5119 bytes, so numbers inside at most some 35,000 bits.

use std::cmp::Ordering;

use super::natural::Natural;

/// The answer to a text that is not a number.
pub const NOT_A_FLOAT: &str = "ERR value is not a valid float";
/// Longest text that is read, bytes. Redis' `MAX_LONG_DOUBLE_CHARS` with its final zero.
const TEXT_MAX: usize = 5 * 1024 - 1;
/// Bits of a mantissa.
const MANTISSA_BITS: i64 = 64;
/// The exponent of the highest bit of the smallest normal number, and of the largest number.
const EXPONENT_MIN: i64 = -16382;
const EXPONENT_MAX: i64 = 16383;
/// Decimals that are printed before zeros at the end are cut off.
const DECIMALS: usize = 17;
/// Texts with exponents past this are read as if they had this one: larger than any that matters.
const EXPONENT_TEXT_MAX: i64 = 100_000;

/// A number `±mantissa × 2^exponent`, or an infinity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LongDouble {
    negative: bool,
    mantissa: u64,
    exponent: i64,
    infinite: bool,
}

impl LongDouble {
    /// Nothing.
    pub const ZERO: Self = Self { negative: false, mantissa: 0, exponent: 0, infinite: false };

    /// Is it an infinity?
    #[must_use]
    pub fn is_infinite(self) -> bool {
        self.infinite
    }

    /// Whether it is below zero, and how many thousandths it is without its sign: rounded up, of a number below zero
    /// down; `None` if they are too many.
    #[must_use]
    pub fn thousandths(self) -> (bool, Option<u64>) {
        let product = u128::from(self.mantissa) * 1000;
        let count = match u32::try_from(self.exponent) {
            _ if self.infinite => None,
            Ok(left) => product.checked_shl(left).filter(|&count| count >> left.min(127) == product),
            Err(_) => match u32::try_from(self.exponent.unsigned_abs()) {
                Ok(right @ 0..128) => {
                    let rest = u128::from(!self.negative && product & ((1 << right) - 1) != 0);
                    Some((product >> right) + rest)
                }
                Ok(_) | Err(_) => Some(u128::from(!self.negative && product != 0)),
            },
        };
        (self.negative, count.and_then(|count| u64::try_from(count).ok()))
    }

    /// Reads a number as `strtold` does: decimal, hexadecimal or infinite. `None` if it is not one, is not
    /// a number at all, or is too large or too small to tell from infinity or zero.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > TEXT_MAX {
            return None;
        }
        let (negative, rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        if rest.eq_ignore_ascii_case(b"inf") || rest.eq_ignore_ascii_case(b"infinity") {
            return Some(Self { negative, infinite: true, ..Self::ZERO });
        }
        match rest {
            [b'0', b'x' | b'X', hex @ ..] => {
                let (digits, exponent) = split(hex, 16, b'p', 4)?;
                Self::ratio(negative, Natural::of_digits(&digits, 16), &Natural::small(1), exponent)
            }
            decimal => {
                let (digits, exponent) = split(decimal, 10, b'e', 1)?;
                // More than 10^4950 or less than 10^-5000 whatever the digits are: do not compute it.
                let top = digits.len() as i64 + exponent;
                if !digits.is_empty() && !(-5000..=4950).contains(&top) {
                    return None;
                }
                let mut number = Natural::of_digits(&digits, 10);
                let mut divisor = Natural::small(1);
                let scaled = if exponent < 0 { &mut divisor } else { &mut number };
                if !digits.is_empty() {
                    scaled.multiply_by_power_of_ten(exponent.unsigned_abs() as usize);
                }
                Self::ratio(negative, number, &divisor, 0)
            }
        }
    }

    /// `number / divisor × 2^exponent`, rounded; `None` where that leaves the range on either side.
    fn ratio(negative: bool, mut number: Natural, divisor: &Natural, exponent: i64) -> Option<Self> {
        if number.is_zero() {
            return Some(Self { negative, ..Self::ZERO });
        }
        let mut divisor = divisor.clone();
        // Scale so that divisor <= number < 2 divisor; then `top` is the exponent of the highest bit.
        let mut top = number.bits() as i64 - divisor.bits() as i64;
        if top > 0 {
            divisor.shift_left(top as usize)
        } else {
            number.shift_left(-top as usize)
        }
        if number.compare(&divisor) == Ordering::Less {
            number.shift_left(1);
            top -= 1;
        }
        top += exponent;
        if top > EXPONENT_MAX {
            return None;
        }
        let bits = MANTISSA_BITS - (EXPONENT_MIN - top).max(0);
        if bits < 0 {
            return None;
        }
        let mut mantissa: u64 = 0;
        for _ in 0..bits {
            mantissa <<= 1;
            if number.compare(&divisor) != Ordering::Less {
                number.subtract(&divisor);
                mantissa |= 1;
            }
            number.shift_left(1);
        }
        let mut exponent = top - bits + 1;
        let up = match number.compare(&divisor) {
            Ordering::Greater => true,
            Ordering::Equal => mantissa & 1 == 1,
            Ordering::Less => false,
        };
        if up {
            match mantissa.checked_add(1) {
                Some(more) => mantissa = more,
                None => {
                    mantissa = 1 << 63;
                    exponent += 1;
                    if exponent + MANTISSA_BITS - 1 > EXPONENT_MAX {
                        return None;
                    }
                }
            }
        }
        (mantissa != 0).then_some(Self { negative, mantissa, exponent, infinite: false })
    }

    /// The sum; `None` if it is not finite.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        if self.infinite || other.infinite {
            return None;
        }
        if self.mantissa == 0 || other.mantissa == 0 {
            return Some(if self.mantissa == 0 { other } else { self });
        }
        let exponent = self.exponent.min(other.exponent);
        let natural = |number: Self| {
            let mut natural = Natural::of_u64(number.mantissa);
            natural.shift_left((number.exponent - exponent) as usize);
            natural
        };
        let (mut a, mut b) = (natural(self), natural(other));
        let mut negative = self.negative;
        if self.negative == other.negative {
            a.add(&b);
        } else if a.compare(&b) == Ordering::Less {
            b.subtract(&a);
            (a, negative) = (b, other.negative);
        } else {
            a.subtract(&b);
        }
        if a.is_zero() {
            return Some(Self::ZERO);
        }
        Self::ratio(negative, a, &Natural::small(1), exponent)
    }

    /// Redis' text of a finite number: 17 decimals, less the zeros at the end.
    #[must_use]
    pub fn to_text(self) -> String {
        let mut scaled = Natural::of_u64(self.mantissa);
        scaled.multiply_by_power_of_ten(DECIMALS);
        if self.exponent >= 0 {
            scaled.shift_left(self.exponent as usize);
        } else {
            scaled.shift_right_rounding(self.exponent.unsigned_abs() as usize);
        }
        let mut digits = scaled.into_decimal();
        if digits.len() <= DECIMALS {
            digits.insert_str(0, &"0".repeat(DECIMALS + 1 - digits.len()));
        }
        digits.insert(digits.len() - DECIMALS, '.');
        let text = digits.trim_end_matches('0').trim_end_matches('.');
        if self.negative && text != "0" { format!("-{text}") } else { text.to_owned() }
    }
}

/// Splits `digits[.digits][mark exponent]` into the values of its digits, without zeros in front, and the
/// exponent that they are then to be scaled with; a digit counts `step` in that exponent.
fn split(text: &[u8], radix: u32, mark: u8, step: i64) -> Option<(Vec<u8>, i64)> {
    let is_mark = |byte: &u8| byte.eq_ignore_ascii_case(&mark);
    let (number, exponent) = match text.iter().position(is_mark) {
        Some(at) => (&text[..at], exponent(&text[at + 1..])?),
        None => (text, 0),
    };
    let (whole, fraction) = match number.iter().position(|&byte| byte == b'.') {
        Some(at) => (&number[..at], &number[at + 1..]),
        None => (number, &[][..]),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut digits = Vec::with_capacity(number.len());
    for &byte in whole.iter().chain(fraction) {
        let digit = (byte as char).to_digit(radix)? as u8;
        if digit != 0 || !digits.is_empty() {
            digits.push(digit);
        }
    }
    Some((digits, exponent - fraction.len() as i64 * step))
}

fn exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let size =
        digits.iter().fold(0i64, |sum, digit| (sum * 10 + i64::from(digit - b'0')).min(EXPONENT_TEXT_MAX));
    Some(if negative { -size } else { size })
}
