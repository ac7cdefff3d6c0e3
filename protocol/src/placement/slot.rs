//! Which slot is a key in?
//!
//! For: CRC16/XMODEM of the key or of its hash tag, exactly as every Redis Cluster client computes it.
//! Not here: slots to partitions (`View::partition_of_slot`).

/// Number of slots; fixed by the Redis Cluster protocol.
pub const SLOTS: u16 = 16384;

/// The generator polynomial of CRC16/XMODEM.
const POLYNOMIAL: u16 = 0x1021;

/// `TABLES[i][b]`: what byte `b` adds to the checksum when `i` bytes follow it.
/// Eight tables let eight bytes be looked up independently of each other.
static TABLES: [[u16; 256]; 8] = tables();

const fn tables() -> [[u16; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ POLYNOMIAL };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut after = 1;
    while after < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc: u16 = tables[after - 1][byte];
            tables[after][byte] = (crc << 8) ^ tables[0][(crc >> 8) as usize];
            byte += 1;
        }
        after += 1;
    }
    tables
}

/// CRC16/XMODEM: polynomial 0x1021, initial value 0, nothing reflected.
#[must_use]
pub fn crc16(bytes: &[u8]) -> u16 {
    let at = |after: usize, byte: u8| TABLES[after][usize::from(byte)];
    let (chunks, rest) = bytes.as_chunks::<8>();
    let mut crc = 0u16;
    for chunk in chunks {
        let [high, low] = crc.to_be_bytes();
        crc = at(7, chunk[0] ^ high)
            ^ at(6, chunk[1] ^ low)
            ^ at(5, chunk[2])
            ^ at(4, chunk[3])
            ^ at(3, chunk[4])
            ^ at(2, chunk[5])
            ^ at(1, chunk[6])
            ^ at(0, chunk[7]);
    }
    for &byte in rest {
        crc = (crc << 8) ^ at(0, (crc >> 8) as u8 ^ byte);
    }
    crc
}

/// The part of a key that is hashed: what stands between its first `{` and the first `}` after it,
/// if that is not empty; else the whole key.
#[must_use]
pub fn hash_tag(key: &[u8]) -> &[u8] {
    let Some(open) = memchr::memchr(b'{', key) else { return key };
    let inside = &key[open + 1..];
    match memchr::memchr(b'}', inside) {
        None | Some(0) => key,
        Some(close) => &inside[..close],
    }
}

/// The slot of a key, `0..SLOTS`.
#[must_use]
pub fn slot_of(key: &[u8]) -> u16 {
    crc16(hash_tag(key)) % SLOTS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn checksum_and_slot_of_the_published_check_string() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot_of(b"123456789"), 12739);
        assert_eq!(slot_of(b""), 0);
        assert_eq!(slot_of(b"foo"), 12182);
    }

    #[test]
    fn only_a_filled_tag_is_hashed() {
        let tags: [(&[u8], &[u8]); 8] = [
            (b"{user1000}.following", b"user1000"),
            (b"foo{}{bar}", b"foo{}{bar}"),
            (b"foo{{bar}}zap", b"{bar"),
            (b"foo{bar}{zap}", b"bar"),
            (b"foo{bar", b"foo{bar"),
            (b"foo}bar{", b"foo}bar{"),
            (b"}{a}", b"a"),
            (b"{}", b"{}"),
        ];
        for (key, tag) in tags {
            assert_eq!(hash_tag(key), tag);
        }
    }

    proptest! {
        #[test]
        fn checksum_equals_the_bitwise_definition(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let mut crc = 0u16;
            for &byte in &bytes {
                crc ^= u16::from(byte) << 8;
                for _ in 0..8 {
                    crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ POLYNOMIAL };
                }
            }
            prop_assert_eq!(crc16(&bytes), crc);
        }
    }
}
