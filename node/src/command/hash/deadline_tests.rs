//! Deadlines of fields, through the commands.

use crate::command::testing::{Bench, NOW_MS};
use crate::replication::effect::Effects;

#[test]
fn deadlines_of_fields_are_set_read_and_taken_away() {
    Bench::new().expect(&[
        ("HSET h a 1 b 2 c 3", ":3|"),
        ("HEXPIRE h 10 FIELDS 3 a b none", "*3|:1|:1|:-2|"),
        ("HTTL h FIELDS 3 a c none", "*3|:10|:-1|:-2|"),
        ("HPTTL h FIELDS 1 a", "*1|:10000|"),
        ("HPEXPIRETIME h FIELDS 1 a", "*1|:1700000010000|"),
        ("HEXPIRETIME h FIELDS 1 a", "*1|:1700000010|"),
        ("HEXPIRE h 20 NX FIELDS 2 a c", "*2|:0|:1|"),
        ("HEXPIRE h 30 XX FIELDS 1 a", "*1|:1|"),
        ("HEXPIRE h 20 GT FIELDS 1 a", "*1|:0|"),
        ("HEXPIRE h 20 LT FIELDS 1 a", "*1|:1|"),
        ("HPERSIST h FIELDS 3 a a none", "*3|:1|:-1|:-2|"),
        ("HEXPIRE h 5 GT FIELDS 1 a", "*1|:0|"),
        ("HSET h b 4", ":0|"),
        ("HTTL h FIELDS 1 b", "*1|:-1|"),
        ("HPEXPIRE h 500 FIELDS 1 b", "*1|:1|"),
        ("HINCRBY h b 1", ":5|"),
        ("HPTTL h FIELDS 1 b", "*1|:500|"),
        ("HEXPIRE h 0 FIELDS 2 a b", "*2|:2|:2|"),
        ("HEXPIREAT h 1 FIELDS 1 c", "*1|:2|"),
        ("EXISTS h", ":0|"),
        ("HTTL h FIELDS 1 a", "*1|:-2|"),
        ("HSET h a 1", ":1|"),
        ("HGETDEL h FIELDS 2 a b", "*2|$1|1|$-1|"),
        ("EXISTS h", ":0|"),
    ]);
}

#[test]
fn values_are_read_and_get_other_deadlines() {
    Bench::new().expect(&[
        ("HSET h a 1 b 2", ":2|"),
        ("HGETEX h FIELDS 2 a none", "*2|$1|1|$-1|"),
        ("HGETEX h EX 10 FIELDS 2 a none", "*2|$1|1|$-1|"),
        ("HTTL h FIELDS 2 a b", "*2|:10|:-1|"),
        ("HGETEX h PXAT 1700000005000 FIELDS 1 a", "*1|$1|1|"),
        ("HPTTL h FIELDS 1 a", "*1|:5000|"),
        ("HGETEX h PERSIST FIELDS 2 a b", "*2|$1|1|$1|2|"),
        ("HTTL h FIELDS 1 a", "*1|:-1|"),
        ("HGETEX h EXAT 1 FIELDS 2 a b", "*2|$1|1|$1|2|"),
        ("EXISTS h", ":0|"),
        ("HGETEX h EX 10 FIELDS 2 a b", "*2|$-1|$-1|"),
        ("HGETEX h EX -1 FIELDS 1 a", "-ERR invalid expire time, must be >= 0|"),
        ("HGETEX h EX 99999999999999 FIELDS 1 a", "-ERR invalid expire time in 'hgetex' command|"),
        (
            "HGETEX h KEEPTTL FIELDS 1",
            "-ERR Mandatory argument FIELDS is missing or not at the right position|",
        ),
        ("HGETEX h FIELDS 0 a", "-ERR Number of fields must be a positive integer|"),
        ("HGETEX h FIELDS 2 a", "-ERR The `numfields` parameter must match the number of arguments|"),
        ("SET s 1", "+OK|"),
        ("HGETEX s x 1 FIELDS 1", "-WRONGTYPE Operation against a key holding the wrong kind of value|"),
    ]);
}

#[test]
fn fields_are_set_with_their_deadlines() {
    Bench::new().expect(&[
        ("HSETEX h FXX FIELDS 1 a 1", ":0|"),
        ("EXISTS h", ":0|"),
        ("HSETEX h FNX EX 10 FIELDS 2 a 1 b 2", ":1|"),
        ("HSETEX h FNX FIELDS 2 b 3 c 3", ":0|"),
        ("HSETEX h FXX FIELDS 2 b 3 c 3", ":0|"),
        ("HTTL h FIELDS 3 a b c", "*3|:10|:10|:-2|"),
        ("HSETEX h KEEPTTL FIELDS 1 a 4", ":1|"),
        ("HSETEX h FIELDS 1 b 5", ":1|"),
        ("HTTL h FIELDS 2 a b", "*2|:10|:-1|"),
        ("HGETALL h", "*4|$1|a|$1|4|$1|b|$1|5|"),
        ("HSETEX h PXAT 1 FIELDS 2 a 1 b 2", ":1|"),
        ("EXISTS h", ":0|"),
        (
            "HSETEX h EX 1 PX 1 FIELDS 1 a 1",
            "-ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified|",
        ),
        ("HSETEX h FXX FNX FIELDS 1 a 1", "-ERR Only one of FXX or FNX arguments can be specified|"),
        ("HSETEX h BAD 1 FIELDS 1 a 1", "-ERR unknown argument: BAD|"),
        ("HSETEX h FNX KEEPTTL FNX EX", "-ERR Only one of FXX or FNX arguments can be specified|"),
        ("HSETEX h FNX KEEPTTL FIELDS 1 a", "-ERR wrong number of arguments for 'hsetex' command|"),
        ("HSETEX h FIELDS 0 a 1", "-ERR invalid number of fields|"),
        ("HSETEX h FIELDS 2 a 1", "-ERR wrong number of arguments for 'hsetex' command|"),
        ("HSETEX h EX x FIELDS 1 a 1", "-ERR value is not an integer or out of range|"),
        ("SET s 1", "+OK|"),
        ("HSETEX s FIELDS 1 a 1", "-WRONGTYPE Operation against a key holding the wrong kind of value|"),
    ]);
}

#[test]
fn what_is_no_request_is_refused() {
    Bench::new().expect(&[
        ("HSET h a 1", ":1|"),
        ("HEXPIRE h x FIELDS 1 a", "-ERR value is not an integer or out of range|"),
        ("HEXPIRE h -1 FIELDS 1 a", "-ERR invalid expire time, must be >= 0|"),
        ("HEXPIRE h 9223372036854775807 FIELDS 1 a", "-ERR invalid expire time in 'hexpire' command|"),
        ("HEXPIRE h 1 FIELDS 2 a", "-ERR The `numfields` parameter must match the number of arguments|"),
        ("HEXPIRE h 1 FIELDS 0 a", "-ERR Parameter `numFields` should be greater than 0|"),
        ("HEXPIRE h 1 BAD 1 a", "-ERR Mandatory argument FIELDS is missing or not at the right position|"),
        ("HTTL h FIELDS 0 a", "-ERR Number of fields must be a positive integer|"),
        ("SET s 1", "+OK|"),
        ("HEXPIRE s 1 FIELDS 1 a", "-WRONGTYPE Operation against a key holding the wrong kind of value|"),
    ]);
}

#[test]
fn a_field_ends_when_it_is_looked_at_and_the_hash_with_the_last_one() {
    let mut bench = Bench::new();
    bench.expect(&[("HSET h a 1 b 2", ":2|"), ("HPEXPIRE h 100 FIELDS 1 a", "*1|:1|"), ("HLEN h", ":2|")]);
    bench.now_ms += 100;
    bench.expect(&[("HGET h a", "$1|1|")]);
    bench.now_ms += 1;
    bench.expect(&[("HLEN h", ":1|")]);
    assert_eq!(bench.count, 1, "the field is removed on all copies");
    bench.expect(&[("HGETALL h", "*2|$1|b|$1|2|"), ("HPEXPIRE h 100 FIELDS 1 b", "*1|:1|")]);
    assert_eq!(bench.keyspace.next_deadline(), Some(NOW_MS + 201));
    bench.now_ms += 101;
    bench.expect(&[("EXISTS h", ":0|")]);
    assert_eq!(bench.keyspace.next_deadline(), None);
}

#[test]
fn fields_end_by_themselves_the_earliest_first() {
    let mut bench = Bench::new();
    for number in 0..200 {
        bench.run(&[b"HSET", b"h", number.to_string().as_bytes(), b"value"]);
        let deadline = (NOW_MS + 1 + number / 2).to_string();
        bench.run(&[
            b"HPEXPIREAT",
            b"h",
            deadline.as_bytes(),
            b"FIELDS",
            b"1",
            number.to_string().as_bytes(),
        ]);
    }
    bench.words("HSET h stays 1");
    let mut effects = Effects::new(true);
    assert_eq!(bench.keyspace.sweep(NOW_MS + 51, 10, &mut effects), 64, "some at once");
    bench.keyspace.check();
    while bench.keyspace.sweep(NOW_MS + 51, 10, &mut effects) > 0 {
        bench.keyspace.check();
    }
    assert_eq!(effects.count(), 100);
    assert_eq!(bench.keyspace.next_deadline(), Some(NOW_MS + 51));
}

#[test]
fn a_reader_without_the_right_to_remove_does_not_see_what_has_ended() {
    let mut bench = Bench::new();
    bench.expect(&[("HSET h a 1 b 2 c 3", ":3|"), ("HPEXPIRE h 100 FIELDS 2 a c", "*2|:1|:1|")]);
    let place = bench.keyspace.place(b"h");
    let entry = bench.keyspace.look(place, NOW_MS + 200, &mut Effects::read_only()).expect("b is there");
    let crate::store::ValueRef::Hash(hash) = entry.value() else { panic!("a hash") };
    assert_eq!((hash.len(), hash.total()), (1, 3));
    assert_eq!(hash.nth(0), Some((&b"b"[..], &b"2"[..])));
    assert_eq!((hash.get(b"a"), hash.deadline(b"a")), (None, None));
    assert!(hash.iter().eq([(&b"b"[..], &b"2"[..])]));
    bench.keyspace.check();
}
