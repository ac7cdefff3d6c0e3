//! Natural numbers of any size.
//!
//! For: the exact steps of [`super::float`]; the caller bounds their size.

use std::cmp::Ordering;

/// A natural number of any size: 32 bits a limb, lowest first, no zero limbs at the end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Natural(Vec<u32>);

impl Natural {
    pub fn small(number: u32) -> Self {
        Self::of_u64(u64::from(number))
    }

    pub fn of_u64(number: u64) -> Self {
        let mut natural = Self(vec![number as u32, (number >> 32) as u32]);
        natural.trim();
        natural
    }

    pub fn of_digits(digits: &[u8], radix: u32) -> Self {
        let mut natural = Self(Vec::new());
        for &digit in digits {
            natural.multiply_add(radix, u32::from(digit));
        }
        natural
    }

    pub fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    pub fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    pub fn bits(&self) -> usize {
        self.0.last().map_or(0, |last| self.0.len() * 32 - last.leading_zeros() as usize)
    }

    pub fn compare(&self, other: &Self) -> Ordering {
        let by_len = self.0.len().cmp(&other.0.len());
        by_len.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    pub fn multiply_add(&mut self, factor: u32, summand: u32) {
        let mut carry = u64::from(summand);
        for limb in &mut self.0 {
            let product = u64::from(*limb) * u64::from(factor) + carry;
            *limb = product as u32;
            carry = product >> 32;
        }
        if carry != 0 {
            self.0.push(carry as u32);
        }
    }

    pub fn multiply_by_power_of_ten(&mut self, power: usize) {
        for _ in 0..power / 9 {
            self.multiply_add(1_000_000_000, 0);
        }
        for _ in 0..power % 9 {
            self.multiply_add(10, 0);
        }
    }

    pub fn add(&mut self, other: &Self) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        let mut carry = 0;
        for (index, limb) in self.0.iter_mut().enumerate() {
            let sum = u64::from(*limb) + u64::from(other.0.get(index).copied().unwrap_or(0)) + carry;
            *limb = sum as u32;
            carry = sum >> 32;
        }
        if carry != 0 {
            self.0.push(carry as u32);
        }
    }

    /// Takes away `other`, which is not larger.
    pub fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        for (index, limb) in self.0.iter_mut().enumerate() {
            let (less, first) = limb.overflowing_sub(other.0.get(index).copied().unwrap_or(0));
            let (less, second) = less.overflowing_sub(u32::from(borrow));
            *limb = less;
            borrow = first || second;
        }
        debug_assert!(!borrow);
        self.trim();
    }

    pub fn shift_left(&mut self, bits: usize) {
        if self.is_zero() {
            return;
        }
        let shift = bits % 32;
        if shift > 0 {
            let mut carry = 0;
            for limb in &mut self.0 {
                (*limb, carry) = (*limb << shift | carry, *limb >> (32 - shift));
            }
            if carry != 0 {
                self.0.push(carry);
            }
        }
        if bits >= 32 {
            self.0.splice(0..0, std::iter::repeat_n(0, bits / 32));
        }
    }

    /// Divides by `2^bits`, rounding to nearest and ties to even.
    pub fn shift_right_rounding(&mut self, bits: usize) {
        debug_assert!(bits > 0);
        let bit =
            |natural: &Self, at: usize| natural.0.get(at / 32).is_some_and(|limb| limb >> (at % 32) & 1 == 1);
        let half = bit(self, bits - 1);
        let below = (0..bits - 1).any(|at| at < self.bits() && bit(self, at));
        let odd = bit(self, bits);
        self.0.drain(..(bits / 32).min(self.0.len()));
        let shift = bits % 32;
        if shift > 0 {
            let mut carry = 0;
            for limb in self.0.iter_mut().rev() {
                (*limb, carry) = (*limb >> shift | carry, *limb << (32 - shift));
            }
        }
        self.trim();
        if half && (below || odd) {
            self.add(&Self::small(1));
        }
    }

    pub fn into_decimal(mut self) -> String {
        let mut groups = Vec::new();
        while !self.is_zero() {
            let mut rest = 0u64;
            for limb in self.0.iter_mut().rev() {
                let part = rest << 32 | u64::from(*limb);
                *limb = (part / 1_000_000_000) as u32;
                rest = part % 1_000_000_000;
            }
            self.trim();
            groups.push(rest);
        }
        let Some(first) = groups.pop() else { return "0".to_owned() };
        let mut text = first.to_string();
        for group in groups.iter().rev() {
            text.push_str(&format!("{group:09}"));
        }
        text
    }
}
