//! Sets, through the commands.

use std::collections::BTreeSet;

use korum_protocol::resp::ProtocolVersion;

use crate::command::testing::Bench;

#[test]
fn members_are_added_found_and_removed() {
    Bench::new().expect(&[
        ("sadd s a b a", ":2|"),
        ("sadd s a c", ":1|"),
        ("scard s", ":3|"),
        ("sismember s a", ":1|"),
        ("sismember s x", ":0|"),
        ("sismember x a", ":0|"),
        ("smismember s a x c", "*3|:1|:0|:1|"),
        ("smismember x a b", "*2|:0|:0|"),
        ("smembers s", "*3|$1|a|$1|b|$1|c|"),
        ("smembers x", "*0|"),
        ("type s", "+set|"),
        ("object encoding s", "$8|listpack|"),
        ("srem s a x", ":1|"),
        ("srem x a", ":0|"),
        ("srem s b c", ":2|"),
        ("exists s", ":0|"),
        ("scard s", ":0|"),
        ("sadd n 3 -1 2", ":3|"),
        ("object encoding n", "$6|intset|"),
        ("smembers n", "*3|$2|-1|$1|2|$1|3|"),
        ("sismember n 02", ":0|"),
        ("sadd n 02", ":1|"),
        ("sismember n 2", ":1|"),
        ("smembers n", "*4|$2|-1|$1|2|$1|3|$2|02|"),
    ]);
}

#[test]
fn members_move() {
    let mut bench = Bench::new();
    bench.expect(&[
        ("sadd s a b", ":2|"),
        ("smove s t a", ":1|"),
        ("smove s t x", ":0|"),
        ("smove x t a", ":0|"),
        ("smove s s b", ":1|"),
        ("smove s s x", ":0|"),
        ("sadd t b", ":1|"),
        ("smove s t b", ":1|"),
        ("exists s", ":0|"),
        ("scard t", ":2|"),
        ("set k v", "+OK|"),
        ("smove t k a", "-WRONGTYPE Operation against a key holding the wrong kind of value|"),
        ("smove x k a", ":0|"),
    ]);
    assert_eq!(bench.words("smove t t a"), ":1|");
    assert_eq!(bench.count, 0, "nothing changed");
}

#[test]
fn sets_are_put_together() {
    let mut bench = Bench::new();
    bench.expect(&[
        ("sadd a 1 2 3 x", ":4|"),
        ("sadd b 2 3 4", ":3|"),
        ("sadd c x 3", ":2|"),
        ("sinter a b", "*2|$1|2|$1|3|"),
        ("sinter a b c", "*1|$1|3|"),
        ("sinter a none", "*0|"),
        ("sinter a", "*4|$1|1|$1|2|$1|3|$1|x|"),
        ("sdiff a b", "*2|$1|1|$1|x|"),
        ("sdiff a none c", "*2|$1|1|$1|2|"),
        ("sdiff a a", "*0|"),
        ("sdiff none a", "*0|"),
        ("sunion b c none", "*4|$1|2|$1|3|$1|4|$1|x|"),
        ("sunion none", "*0|"),
        ("sintercard 2 a b", ":2|"),
        ("sintercard 2 a b limit 1", ":1|"),
        ("sintercard 2 a b limit 0", ":2|"),
        ("sintercard 2 a b limit -1", "-ERR LIMIT can't be negative|"),
        ("sintercard 2 a b limit", "-ERR syntax error|"),
        ("sintercard 0 a b", "-ERR numkeys should be greater than 0|"),
        ("sintercard x a b", "-ERR numkeys should be greater than 0|"),
        ("sintercard 3 a b", "-ERR Number of keys can't be greater than number of args|"),
        ("sinterstore d a b", ":2|"),
        ("object encoding d", "$6|intset|"),
        ("sunionstore d d c", ":3|"),
        ("smembers d", "*3|$1|2|$1|3|$1|x|"),
        ("expire d 100", ":1|"),
        ("sdiffstore d d b", ":1|"),
        ("ttl d", ":-1|"),
        ("sdiffstore d d c", ":0|"),
        ("exists d", ":0|"),
        ("set d v", "+OK|"),
        ("sinter a d", "-WRONGTYPE Operation against a key holding the wrong kind of value|"),
        ("sinter none d", "-WRONGTYPE Operation against a key holding the wrong kind of value|"),
        ("sunionstore e a d", "-WRONGTYPE Operation against a key holding the wrong kind of value|"),
        ("sinterstore d a none", ":0|"),
        ("exists d", ":0|"),
    ]);
    bench.version = ProtocolVersion::Resp3;
    bench.expect(&[("sinter a b", "~2|$1|2|$1|3|"), ("smembers none", "~0|"), ("sunion none", "~0|")]);
}

#[test]
fn chance_picks_members() {
    let mut bench = Bench::new();
    bench.expect(&[
        ("spop none", "$-1|"),
        ("spop none 3", "*0|"),
        ("srandmember none", "$-1|"),
        ("srandmember none 3", "*0|"),
        ("sadd s a b c d", ":4|"),
        ("spop s -1", "-ERR value is out of range, must be positive|"),
        ("spop s x", "-ERR value is out of range, must be positive|"),
        ("spop s 1 1", "-ERR syntax error|"),
        ("spop s 0", "*0|"),
        ("srandmember s 1 1", "-ERR syntax error|"),
        ("srandmember s 0", "*0|"),
        (
            "srandmember s -9223372036854775808",
            "-ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807|",
        ),
    ]);
    assert!(bench.words("srandmember s -10").starts_with("*10|"));
    assert!(bench.words("srandmember s 10").starts_with("*4|"));
    assert!(bench.words("srandmember s").starts_with("$1|"));
    assert!(bench.words("srandmember s -9223372036854775807").starts_with("-ERR the reply is too large"));
    let popped = bench.words("spop s 3");
    assert!(popped.starts_with("*3|"));
    assert_eq!(bench.count, 3);
    assert_eq!(bench.words("scard s"), ":1|");
    assert!(bench.words("spop s").starts_with("$1|"));
    bench.expect(&[
        ("exists s", ":0|"),
        ("sadd s a b", ":2|"),
        ("spop s 2", "*2|$1|a|$1|b|"),
        ("exists s", ":0|"),
    ]);
    bench.version = ProtocolVersion::Resp3;
    bench.expect(&[
        ("spop none 3", "~0|"),
        ("spop none", "_|"),
        ("sadd s a", ":1|"),
        ("spop s 9", "~1|$1|a|"),
    ]);
}

#[test]
fn a_large_set_is_walked_and_sampled() {
    let mut bench = Bench::new();
    for number in 0..600 {
        bench.words(&format!("sadd s member{number}"));
    }
    assert_eq!(bench.words("object encoding s"), "$9|hashtable|");
    assert!(bench.words("sscan s 0 count 100").starts_with("*2|$3|500|*100|"));
    assert!(bench.words("sscan s 100 count 100 match member7").starts_with("*2|$1|0|*1|$7|member7|"));
    bench.expect(&[
        ("sscan s x", "-ERR invalid cursor|"),
        ("sscan s 0 novalues", "-ERR syntax error|"),
        ("sscan x 0", "*2|$1|0|*0|"),
    ]);
    let popped = bench.words("spop s 598");
    let members: BTreeSet<_> = popped.split('|').filter(|part| part.starts_with('m')).collect();
    assert_eq!((members.len(), bench.count), (598, 598));
    assert_eq!(bench.words("object encoding s"), "$9|hashtable|");
    assert_eq!(bench.words("scard s"), ":2|");
}

#[test]
fn other_types_are_refused() {
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value|";
    let mut bench = Bench::new();
    bench.words("set k 1");
    bench.words("sadd s 1");
    for line in [
        "sadd k a",
        "srem k a",
        "smembers k",
        "sismember k a",
        "smismember k a",
        "scard k",
        "spop k",
        "spop k 0",
        "srandmember k",
        "srandmember k 1",
        "smove k s 1",
        "sunion s k",
        "sdiff s k",
        "sscan k 0",
        "get s",
        "hget s f",
    ] {
        assert_eq!(bench.words(line), wrong, "{line}");
    }
}
