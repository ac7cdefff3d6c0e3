//! The golden vectors of PLACEMENT.md §2, §3 and §9: what every implementation must compute.

use korum_protocol::placement::choose_k::{Ranking, jump_below, unit_seed};
use korum_protocol::placement::hash::sm;

fn ranking(seed: u64, unit: u64, total: u32) -> Vec<u32> {
    Ranking::new(unit_seed(seed, unit), total).collect()
}

/// FNV-1a-64 over the first three indices of units 0..16384.
fn digest(seed: u64, total: u32) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for unit in 0..16384 {
        for index in Ranking::new(unit_seed(seed, unit), total).take(3) {
            for byte in (index as u16).to_le_bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
    }
    hash
}

#[test]
fn splitmix_gives_its_published_outputs() {
    let expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ];
    let outputs: Vec<u64> = (0..5).map(|j| sm(1234567, j)).collect();
    assert_eq!(outputs, expected);
}

#[test]
fn unit_seeds_are_as_specified() {
    let expected = [
        (0, 0xe220a8397b1dcdaf),
        (1, 0x6e789e6aa1b965f4),
        (2, 0x06c45d188009454f),
        (12739, 0x1a9298ff87d50fe5),
        (16383, 0x39a3526fb2d4033c),
    ];
    for (unit, seed) in expected {
        assert_eq!(unit_seed(0, unit), seed, "unit {unit}");
    }
}

#[test]
fn jump_values_are_as_specified() {
    let expected = [
        (0, 1, 0),
        (1, 2, 1),
        (0x0123456789abcdef, 10, 9),
        (0x0123456789abcdef, 100, 69),
        (u64::MAX, 1000, 540),
        (0, 1000, 0),
    ];
    for (level, below, value) in expected {
        assert_eq!(jump_below(level, below), value, "jump_below({level:#x}, {below})");
    }
}

#[test]
fn rankings_are_as_specified() {
    type Golden =
        (u64, &'static str, &'static str, &'static str, &'static str, usize, &'static str, &'static str);
    let expected: [Golden; 5] = [
        (
            0,
            "2 1 0",
            "4 2 3 1 0",
            "4 9 6 8 7 5 2 3 1 0",
            "10 4 9 6 15 12 8 7 13 5 11 2 14 3 1 0",
            11,
            "81 82 48 10 20 21 18 88",
            "808 719 953 834 735 668 624 122",
        ),
        (
            1,
            "0 1 2",
            "0 4 1 2 3",
            "0 5 4 6 8 1 7 2 3 9",
            "0 5 14 4 6 10 8 1 7 15 2 3 13 11 12 9",
            4,
            "0 46 67 60 43 5 58 26",
            "0 142 658 534 613 129 279 417",
        ),
        (
            2,
            "0 1 2",
            "4 0 3 1 2",
            "8 4 0 9 7 5 3 1 6 2",
            "8 4 15 0 12 11 9 7 10 14 5 3 1 6 13 2",
            7,
            "31 61 97 17 84 8 22 79",
            "450 31 693 667 745 876 61 553",
        ),
        (
            12739,
            "0 2 1",
            "0 3 4 2 1",
            "9 5 6 8 0 7 3 4 2 1",
            "9 5 6 8 0 7 3 4 13 2 11 14 1 10 12 15",
            12,
            "93 73 45 57 19 72 70 22",
            "817 796 794 695 363 93 867 338",
        ),
        (
            16383,
            "1 2 0",
            "1 3 2 4 0",
            "1 7 3 6 2 4 5 9 8 0",
            "14 11 1 7 3 6 2 4 15 10 5 9 12 8 13 0",
            10,
            "17 30 57 18 29 41 60 48",
            "653 330 769 464 156 101 587 466",
        ),
    ];
    let numbers = |text: &str| text.split(' ').map(|number| number.parse().unwrap()).collect::<Vec<u32>>();
    for (unit, three, five, ten, sixteen, inserted_at, hundred, thousand) in expected {
        assert_eq!(ranking(0, unit, 3), numbers(three), "unit {unit} of 3");
        assert_eq!(ranking(0, unit, 5), numbers(five), "unit {unit} of 5");
        assert_eq!(ranking(0, unit, 10), numbers(ten), "unit {unit} of 10");
        assert_eq!(ranking(0, unit, 16), numbers(sixteen), "unit {unit} of 16");
        let mut seventeen = numbers(sixteen);
        seventeen.insert(inserted_at, 16);
        assert_eq!(ranking(0, unit, 17), seventeen, "unit {unit} of 17");
        assert_eq!(ranking(0, unit, 100)[..8], numbers(hundred), "unit {unit} of 100");
        assert_eq!(ranking(0, unit, 1000)[..8], numbers(thousand), "unit {unit} of 1000");
    }
}

#[test]
fn whole_tables_have_the_specified_digests() {
    assert_eq!(digest(0, 3), 0xf241be1fd87af9c5);
    assert_eq!(digest(0, 10), 0x43ed29a20d7e7e42);
    assert_eq!(digest(0, 100), 0x8acd84ab366776dd);
    assert_eq!(digest(0, 1000), 0x3e02c207f8af260a);
    assert_eq!(digest(42, 10), 0x2bf02dfdfd1fc9a0);
}
