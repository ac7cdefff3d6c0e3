//! CRC-64/Redis: the Jones polynomial, reflected, without inversion.
//!
//! For: the checksum of `DUMP` payloads.

/// The polynomial, bits reversed.
const POLYNOMIAL: u64 = 0x95AC_9329_AC4B_C9B5;

/// `TABLES[k][b]`: what byte `b` does to the checksum when `k` bytes follow it.
static TABLES: [[u64; 256]; 8] = tables();

const fn tables() -> [[u64; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc = tables[table - 1][byte];
            tables[table][byte] = tables[0][(crc & 0xff) as usize] ^ crc >> 8;
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// The checksum of `bytes`.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let crc = words.iter().fold(0, |crc, word| {
        let mixed = (crc ^ u64::from_le_bytes(*word)).to_le_bytes();
        mixed.iter().zip(TABLES.iter().rev()).fold(0, |sum, (byte, table)| sum ^ table[usize::from(*byte)])
    });
    rest.iter().fold(crc, |crc: u64, byte| TABLES[0][usize::from(crc as u8 ^ byte)] ^ crc >> 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_check_values() {
        assert_eq!(checksum(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(checksum(b""), 0);
    }

    #[test]
    fn eight_bytes_at_once_are_eight_bytes() {
        let bytes: Vec<u8> = (0..100u8).map(|n| n.wrapping_mul(37)).collect();
        for len in 0..bytes.len() {
            let slow = bytes[..len]
                .iter()
                .fold(0u64, |crc, byte| TABLES[0][usize::from(crc as u8 ^ byte)] ^ crc >> 8);
            assert_eq!(checksum(&bytes[..len]), slow);
        }
    }
}
