//! Decompression of LZF, with which Redis compresses strings in `DUMP` payloads.
//!
//! Not here: compression; a payload may always be plain.
//!
//! ```text
//! 000lllll                  l + 1 literal bytes follow
//! lllooooo oooooooo         copy l + 2 bytes (l < 7) from o + 1 bytes back
//! 111ooooo llllllll oooooooo   copy l + 9 bytes
//! ```

/// The content of `input`, if it has exactly `length` bytes. Allocates no more than the input can fill:
/// three bytes of it make at most 264.
#[must_use]
pub fn decompress(mut input: &[u8], length: usize) -> Option<Vec<u8>> {
    if length > input.len().checked_mul(100)? {
        return None;
    }
    let mut out = Vec::with_capacity(length);
    while let Some((&control, rest)) = input.split_first() {
        input = rest;
        let control = usize::from(control);
        if control < 0x20 {
            let (literal, rest) = input.split_at_checked(control + 1)?;
            input = rest;
            out.extend_from_slice(literal);
        } else {
            let mut len = control >> 5;
            if len == 7 {
                let (&more, rest) = input.split_first()?;
                input = rest;
                len += usize::from(more);
            }
            len += 2;
            let (&low, rest) = input.split_first()?;
            input = rest;
            let back = ((control & 0x1f) << 8 | usize::from(low)) + 1;
            let start = out.len().checked_sub(back)?;
            if out.len() + len > length {
                return None;
            }
            // The copy may overlap its own outcome.
            for at in start..start + len {
                out.push(out[at]);
            }
        }
        if out.len() > length {
            return None;
        }
    }
    (out.len() == length).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn runs_and_literals() {
        // "aaaaaaaaaa": one literal, then nine copied from one byte back.
        assert_eq!(decompress(&[0, b'a', 0xe0, 0, 0], 10), Some(b"aaaaaaaaaa".to_vec()));
        assert_eq!(decompress(&[2, b'a', b'b', b'c', 0x20, 2], 6), Some(b"abcabc".to_vec()));
        assert_eq!(decompress(&[0, b'a', 0x20, 1], 4), None, "before the beginning");
        assert_eq!(decompress(&[0, b'a', 0xe0, 255, 0], 10), None, "longer than said");
        assert_eq!(decompress(&[0, b'a'], 2), None, "shorter than said");
        assert_eq!(decompress(&[5, b'a'], 6), None, "cut off");
        assert_eq!(decompress(&[0, b'a'], 1 << 29), None, "more than it can be");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(input: Vec<u8>, length in 0..10_000usize) {
            if let Some(out) = decompress(&input, length) {
                prop_assert_eq!(out.len(), length);
            }
        }
    }
}
