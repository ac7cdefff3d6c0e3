//! The parts of an effect as bytes.

use bytes::{BufMut, BytesMut};

use super::EffectError;
use crate::store::value::EMBEDDED_BYTES_MAX;
use crate::store::{StringRef, ValueRef};

const VALUE_INTEGER: u8 = 1;
const VALUE_STRING: u8 = 2;
const VALUE_RAW_STRING: u8 = 3;

pub(super) fn put_varint(out: &mut BytesMut, mut number: u64) {
    while number >= 0x80 {
        out.put_u8(number as u8 | 0x80);
        number >>= 7;
    }
    out.put_u8(number as u8);
}

pub(super) fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.put_slice(bytes);
}

pub(super) fn put_key(out: &mut BytesMut, kind: u8, key: &[u8]) {
    out.reserve(key.len() + 16);
    out.put_u8(kind);
    put_bytes(out, key);
}

pub(super) fn put_value(out: &mut BytesMut, string: StringRef<'_>) {
    match string {
        StringRef::Integer(number) => {
            out.put_u8(VALUE_INTEGER);
            put_varint(out, ((number << 1) ^ (number >> 63)) as u64);
        }
        StringRef::Raw(bytes) if bytes.len() <= EMBEDDED_BYTES_MAX => {
            out.put_u8(VALUE_RAW_STRING);
            put_bytes(out, bytes);
        }
        // Equal strings have equal bytes on the wire.
        StringRef::Bytes(bytes) | StringRef::Raw(bytes) => {
            put_string_head(out, bytes.len());
            out.put_slice(bytes);
        }
    }
}

pub(super) fn put_string_head(out: &mut BytesMut, length: usize) {
    out.put_u8(VALUE_STRING);
    put_varint(out, length as u64);
}

pub(super) fn take_byte(input: &mut &[u8]) -> Result<u8, EffectError> {
    let (&byte, rest) = input.split_first().ok_or(EffectError::Truncated)?;
    *input = rest;
    Ok(byte)
}

pub(super) fn take_varint(input: &mut &[u8]) -> Result<u64, EffectError> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = take_byte(input)?;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return Err(EffectError::TooLarge);
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(EffectError::TooLarge)
}

pub(super) fn take_length(input: &mut &[u8]) -> Result<usize, EffectError> {
    usize::try_from(take_varint(input)?).map_err(|_| EffectError::TooLarge)
}

pub(super) fn take_bytes<'a>(input: &mut &'a [u8]) -> Result<&'a [u8], EffectError> {
    let len = take_length(input)?;
    let (bytes, rest) = input.split_at_checked(len).ok_or(EffectError::Truncated)?;
    *input = rest;
    Ok(bytes)
}

pub(super) fn take_value<'a>(input: &mut &'a [u8]) -> Result<ValueRef<'a>, EffectError> {
    Ok(ValueRef::String(match take_byte(input)? {
        VALUE_INTEGER => {
            let number = take_varint(input)?;
            StringRef::Integer((number >> 1) as i64 ^ -((number & 1) as i64))
        }
        VALUE_STRING => StringRef::Bytes(take_bytes(input)?),
        VALUE_RAW_STRING => StringRef::Raw(take_bytes(input)?),
        unknown => return Err(EffectError::UnknownValue(unknown)),
    }))
}
