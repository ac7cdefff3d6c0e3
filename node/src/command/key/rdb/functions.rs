//! Libraries of functions in one payload, as `FUNCTION DUMP` writes them.
//!
//! For: the code of libraries, there and back.
//! Not here: what libraries are (`script::library`).
//!
//! ```text
//! payload = (245 | string)* | version 2 | CRC-64 8
//! ```

use super::string::{read, take, write_length};
use super::{VERSION, checked, finish};

const FUNCTION: u8 = 245;
const FUNCTION_BEFORE_7: u8 = 246;

/// The payload of libraries with this code.
#[must_use]
pub fn dump<'c>(codes: impl Iterator<Item = &'c [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    for code in codes {
        out.push(FUNCTION);
        write_length(&mut out, code.len() as u64);
        out.extend_from_slice(code);
    }
    finish(&mut out, VERSION);
    out
}

/// The code of the libraries in a payload.
///
/// # Errors
/// With the text of the error reply, when the payload is damaged or holds something else.
pub fn restore(payload: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let mut input = checked(payload).map_err(|error| error.to_string())?;
    let mut codes = Vec::new();
    while !input.is_empty() {
        match take(&mut input, 1) {
            Ok([FUNCTION]) => {}
            Ok([FUNCTION_BEFORE_7]) => return Err("ERR Pre-release function format not supported.".into()),
            _ => return Err("ERR given type is not a function".into()),
        }
        let code = read(&mut input).map_err(|_| "ERR Failed loading library data")?;
        codes.push(code.into_owned());
    }
    Ok(codes)
}

#[cfg(test)]
mod tests {
    use super::super::crc64;
    use super::*;

    #[test]
    fn libraries_are_dumped_as_redis_does() {
        assert_eq!(dump(std::iter::empty()), b"\n\0]\x9b\\@\x0f\x7f\xa2\xda");
        let codes: [&[u8]; 3] = [b"", b"12", &[b'x'; 100_000]];
        assert_eq!(restore(&dump(codes.into_iter())).unwrap(), codes);
    }

    #[test]
    fn other_payloads_are_refused() {
        let of = |body: &[u8]| {
            let mut payload = body.to_vec();
            finish(&mut payload, VERSION);
            assert_eq!(crc64::checksum(&payload[..body.len() + 2]).to_le_bytes(), payload[body.len() + 2..]);
            restore(&payload)
        };
        assert_eq!(restore(b"x"), Err("ERR DUMP payload version or checksum are wrong".into()));
        assert_eq!(of(b"\x00\x01x"), Err("ERR given type is not a function".into()));
        assert_eq!(of(b"\xf6\x01x"), Err("ERR Pre-release function format not supported.".into()));
        assert_eq!(of(b"\xf5\x05x"), Err("ERR Failed loading library data".into()));
    }
}
