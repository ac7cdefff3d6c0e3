//! The same commands in several databases, on one partition and its replica.

use korum_protocol::map::DatabaseOrder;

use super::testing::Bench;
use crate::store::Databases;

const SAME: &str = "-ERR source and destination objects are the same|";
const OUT_OF_RANGE: &str = "-ERR DB index is out of range|";

/// Runs lines in a database and compares the answers.
fn expect(bench: &mut Bench, database: u8, lines: &[(&str, &str)]) {
    bench.database = database;
    bench.expect(lines);
}

#[test]
fn keys_of_two_databases_are_two_keys() {
    let mut bench = Bench::new();
    expect(&mut bench, 0, &[("set k zero", "+OK|"), ("set \u{ff}k other", "+OK|")]);
    expect(
        &mut bench,
        3,
        &[("get k", "$-1|"), ("set k three", "+OK|"), ("rename k l", "+OK|"), ("append l .", ":6|")],
    );
    expect(&mut bench, 0, &[("get k", "$4|zero|"), ("exists l", ":0|")]);
    expect(&mut bench, 3, &[("mget k l", "*2|$-1|$6|three.|"), ("del k l", ":1|")]);
    assert_eq!(bench.keyspace.len(), 2);
}

#[test]
fn replies_name_keys_as_clients_know_them() {
    let mut bench = Bench::new();
    bench.run(&[b"rpush", b"\xfflist", b"x"]);
    assert_eq!(
        bench.run(&[b"lmpop", b"1", b"\xfflist", b"left"]),
        b"*2\r\n$5\r\n\xfflist\r\n*1\r\n$1\r\nx\r\n"
    );
    expect(
        &mut bench,
        9,
        &[
            ("rpush l a b c d", ":4|"),
            ("blpop none l 0", "*2|$1|l|$1|a|"),
            ("lmpop 2 none l left", "*2|$1|l|*1|$1|b|"),
            ("blmpop 0 1 l right", "*2|$1|l|*1|$1|d|"),
            ("zadd z 1 a 2 b 3 c", ":3|"),
            ("zmpop 1 z min", "*2|$1|z|*1|*2|$1|a|$1|1|"),
            ("bzpopmax none z 0", "*3|$1|z|$1|c|$1|3|"),
            ("xadd s 1-1 f v", "$3|1-1|"),
            ("xread streams s 0", "*1|*2|$1|s|*1|*2|$3|1-1|*2|$1|f|$1|v|"),
            (
                "xreadgroup group g c streams s >",
                "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option|",
            ),
            ("rpush {t}ids 1 2", ":2|"),
            ("mset {t}w1 9 {t}w2 8", "+OK|"),
            ("sort {t}ids by {t}w* get # get {t}w* store {t}sorted", ":4|"),
            ("lrange {t}sorted 0 -1", "*4|$1|2|$1|8|$1|1|$1|9|"),
            ("sunionstore u u", ":0|"),
            ("sadd one a b", ":2|"),
            ("sadd other b", ":1|"),
            ("sdiff one other", "*1|$1|a|"),
            ("zunionstore both 2 one z", ":2|"),
            ("bitop or bits w {t}w1", ":1|"),
        ],
    );
}

#[test]
fn keys_move_and_are_copied_to_other_databases() {
    let mut bench = Bench::new();
    expect(
        &mut bench,
        0,
        &[
            ("set a 1 ex 100", "+OK|"),
            ("move a 0", SAME),
            ("move a 16", OUT_OF_RANGE),
            ("move a x", "-ERR value is not an integer or out of range|"),
            ("move none 1", ":0|"),
            ("copy a a db 1", ":1|"),
            ("copy a a db 0", SAME),
            ("copy a a db 1", ":0|"),
            ("append a 2", ":2|"),
            ("move a 1", ":0|"),
            ("copy a a db 1 replace", ":1|"),
            ("move a 2", ":1|"),
            ("exists a", ":0|"),
        ],
    );
    for database in [1, 2] {
        expect(&mut bench, database, &[("get a", "$2|12|"), ("ttl a", ":100|")]);
    }
    expect(&mut bench, 2, &[("move a 0", ":1|")]);
    let told: Vec<_> = bench.notices.iter().map(|notice| (notice.event, notice.key.to_vec())).collect();
    let (here, there) = (b"\xff\x02a".to_vec(), b"a".to_vec());
    assert_eq!(told, [("new", there.clone()), ("move_from", here), ("move_to", there)]);
}

#[test]
fn a_partition_tells_of_one_database() {
    let mut bench = Bench::new();
    for number in 0..50 {
        expect(&mut bench, number % 3, &[(&format!("set k{number} v px 10000"), "+OK|")]);
    }
    bench.database = 2;
    bench.run(&[b"set", b"\xff\x02", b"v"]);
    expect(
        &mut bench,
        2,
        &[
            ("korum part 0 count", ":17|"),
            ("korum part 0 swapped 0", ":1|"),
            ("korum part 0 swapped 1", ":0|"),
        ],
    );
    let found = bench.words("korum part 0 keys k?");
    assert!(
        found.starts_with("*3|") && ["|k2|", "|k5|", "|k8|"].iter().all(|name| found.contains(name)),
        "{found}"
    );
    expect(&mut bench, 5, &[("korum part 0 random", "$-1|"), ("korum part 0 scan 0 10", "*2|:-1|*0|")]);
    expect(&mut bench, 1, &[("korum part 0 scan 0 1000 match k1", "*2|:-1|*1|$2|k1|")]);
    expect(
        &mut bench,
        0,
        &[("korum part 0 sizes", "*12|:0|:17|:17|:170000|:1|:17|:17|:170000|:2|:17|:16|:160000|")],
    );
    for _ in 0..20 {
        bench.database = 1;
        let name = bench.words("korum part 0 random");
        let number: u32 = name.trim_end_matches('|').rsplit('k').next().unwrap().parse().unwrap();
        assert_eq!(number % 3, 1, "{name}");
    }
    // Pieces of a walk see each key of the database once.
    let (mut seen, mut from) = (0, "0".to_owned());
    while from != "-1" {
        let piece = bench.words(&format!("korum part 0 scan {from} 3"));
        seen += piece.matches("|k").count();
        from = piece.split(['|', ':']).nth(2).unwrap().to_owned();
    }
    assert_eq!(seen, 17);
    expect(&mut bench, 1, &[("korum clear 0 DB", "+OK|"), ("korum part 0 count", ":0|")]);
    assert_eq!((bench.count, bench.keyspace.len()), (0, 34));
    expect(&mut bench, 1, &[("korum clear 0 DB", "+OK|")]);
    assert_eq!(bench.count, 0, "nothing to remove");
    expect(&mut bench, 7, &[("korum clear 0", "+OK|")]);
    assert_eq!((bench.count, bench.keyspace.len()), (1, 0));
}

#[test]
fn after_a_swap_numbers_lead_to_other_keys() {
    let mut bench = Bench::new();
    expect(&mut bench, 0, &[("set k zero", "+OK|")]);
    expect(&mut bench, 4, &[("set k four", "+OK|")]);
    bench.keyspace.databases = Databases::new(16, DatabaseOrder::default().swapped(0, 4));
    expect(
        &mut bench,
        0,
        &[("get k", "$4|four|"), ("copy k l db 4", ":1|"), ("korum part 0 swapped 1", ":1|")],
    );
    expect(&mut bench, 4, &[("get k", "$4|zero|"), ("get l", "$4|four|"), ("move l 0", ":1|")]);
    expect(&mut bench, 0, &[("korum part 0 sizes", "*8|:4|:1|:0|:0|:0|:2|:0|:0|")]);
}
