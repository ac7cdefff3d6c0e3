//! HyperLogLogs: estimates, and the commands.

use super::{estimate, sketch};
use crate::command::testing::Bench;
use proptest::prelude::*;

#[test]
fn elements_are_counted_once() {
    let mut bench = Bench::new();
    bench.expect(&[
        ("PFADD k a b c d e f g", ":1|"),
        ("PFADD k a b c", ":0|"),
        ("PFCOUNT k", ":7|"),
        ("PFADD l g h i", ":1|"),
        ("PFCOUNT k l none", ":9|"),
        ("PFMERGE m k l", "+OK|"),
        ("PFCOUNT m", ":9|"),
        ("PFDEBUG ENCODING m", "+sparse|"),
        ("PFDEBUG TODENSE m", ":1|"),
        ("PFCOUNT m", ":9|"),
        ("PFADD m j", ":1|"),
        ("PFCOUNT m", ":10|"),
        ("PFADD new", ":1|"),
        ("PFADD new", ":0|"),
        ("PFCOUNT new", ":0|"),
        ("SET s text", "+OK|"),
        ("PFADD s a", "-WRONGTYPE Key is not a valid HyperLogLog string value.|"),
        ("PFCOUNT none", ":0|"),
    ]);
    bench.words("PFCOUNT m");
    assert_eq!(bench.count, 0, "the count is kept");
}

#[test]
fn a_corrupted_sketch_is_an_error() {
    Bench::new().expect(&[
        ("PFADD k", ":1|"),
        ("SETRANGE k 16 \u{1}", ":18|"),
        ("PFCOUNT k", "-INVALIDOBJ Corrupted HLL object detected|"),
        ("PFMERGE k l", "-INVALIDOBJ Corrupted HLL object detected|"),
    ]);
}

#[test]
fn many_elements_become_dense_and_are_about_right() {
    let mut bench = Bench::new();
    for number in 0..5000 {
        bench.run(&[b"PFADD", b"k", number.to_string().as_bytes()]);
    }
    assert_eq!(bench.words("PFDEBUG ENCODING k"), "+dense|");
    let count: i64 = bench.words("PFCOUNT k").trim_matches([':', '|']).parse().unwrap();
    assert!((4900..5100).contains(&count), "{count}");
}

proptest! {
    #[test]
    fn sparse_and_dense_are_the_same_registers(
        raises in proptest::collection::vec((0..300usize, 1..34u8), 1..300),
    ) {
        let (mut sparse, mut dense) = (sketch::empty(), sketch::empty());
        sketch::make_dense(&mut dense).unwrap();
        for (index, value) in raises {
            let index = index * 54;
            prop_assert_eq!(
                sketch::raise(&mut sparse, index, value).unwrap(),
                sketch::raise(&mut dense, index, value).unwrap()
            );
        }
        let counts = [&sparse, &dense].map(|sketch| estimate::count(&sketch::all_runs(sketch).unwrap()));
        prop_assert_eq!(counts[0], counts[1]);
        sketch::make_dense(&mut sparse).unwrap();
        prop_assert_eq!(sparse, dense);
    }

    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60), index in 0..16384usize, value in 1..60u8) {
        let mut sketch = [b"HYLL\x01\0\0\0\0\0\0\0\0\0\0\0", &bytes[..]].concat();
        let _ = sketch::all_runs(&sketch);
        let _ = sketch::raise(&mut sketch, index, value);
        let _ = sketch::make_dense(&mut sketch);
    }
}
