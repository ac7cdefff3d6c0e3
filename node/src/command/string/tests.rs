//! Answers as redis-server 7.0.15 gives them.

use crate::command::testing::Bench;

const NOT_INT: &str = "-ERR value is not an integer or out of range|";

#[test]
fn counters_count_and_keep_their_deadline() {
    Bench::new().expect(&[
        ("incr n", ":1|"),
        ("expire n 100", ":1|"),
        ("incrby n 41", ":42|"),
        ("decr n", ":41|"),
        ("decrby n 1", ":40|"),
        ("ttl n", ":100|"),
        ("get n", "$2|40|"),
        ("set n 9223372036854775807", "+OK|"),
        ("ttl n", ":-1|"),
        ("incr n", "-ERR increment or decrement would overflow|"),
        ("decrby n -9223372036854775808", "-ERR decrement would overflow|"),
        ("incrby n 9223372036854775808", NOT_INT),
        ("set s 010", "+OK|"),
        ("incr s", NOT_INT),
        ("get s", "$3|010|"),
    ]);
}

#[test]
fn set_takes_its_options() {
    let mut bench = Bench::new();
    bench.expect(&[
        ("set k v", "+OK|"),
        ("get k", "$1|v|"),
        ("get x", "$-1|"),
        ("set k w nx", "$-1|"),
        ("set x w xx", "$-1|"),
        ("set k w XX GET", "$1|v|"),
        ("set x w xx get", "$-1|"),
        ("set k u nx get", "$1|w|"),
        ("set x v nx get", "$-1|"),
        ("get x", "$1|v|"),
        ("set k v ex 10", "+OK|"),
        ("ttl k", ":10|"),
        ("set k w keepttl", "+OK|"),
        ("pttl k", ":10000|"),
        ("set k w", "+OK|"),
        ("ttl k", ":-1|"),
        ("set k v px 1500", "+OK|"),
        ("pttl k", ":1500|"),
        ("ttl k", ":2|"),
        ("set k v exat 1700000100", "+OK|"),
        ("ttl k", ":100|"),
        ("set k v pxat 1700000000001", "+OK|"),
        ("pexpiretime k", ":1700000000001|"),
        ("set k v ex 10 ex 20", "+OK|"),
        ("ttl k", ":20|"),
        ("set k v nx xx", "-ERR syntax error|"),
        ("set k v ex 10 px 10", "-ERR syntax error|"),
        ("set k v ex 10 keepttl", "-ERR syntax error|"),
        ("set k v keepttl ex 10", "-ERR syntax error|"),
        ("set k v ex", "-ERR syntax error|"),
        ("set k v persist", "-ERR syntax error|"),
        ("set k v foo", "-ERR syntax error|"),
        ("set k v ex 0", "-ERR invalid expire time in 'set' command|"),
        ("set k v px -1", "-ERR invalid expire time in 'set' command|"),
        ("set k v ex 9223372036854775", "-ERR invalid expire time in 'set' command|"),
        ("set k v ex 9223372036854775807", "-ERR invalid expire time in 'set' command|"),
        ("set k v px 9223372036854775807", "-ERR invalid expire time in 'set' command|"),
        ("set k v ex a", NOT_INT),
        ("setex k 5 v", "+OK|"),
        ("ttl k", ":5|"),
        ("psetex k 5 v", "+OK|"),
        ("pttl k", ":5|"),
        ("setex k 0 v", "-ERR invalid expire time in 'setex' command|"),
        ("psetex k 0 v", "-ERR invalid expire time in 'psetex' command|"),
    ]);
    bench.now_ms += 6;
    bench.expect(&[("get k", "$-1|"), ("setnx k v", ":1|"), ("setnx k v", ":0|")]);
}

#[test]
fn get_and_change() {
    let mut bench = Bench::new();
    bench.expect(&[
        ("getset k v", "$-1|"),
        ("expire k 9", ":1|"),
        ("getset k w", "$1|v|"),
        ("ttl k", ":-1|"),
        ("getex k ex 7", "$1|w|"),
        ("ttl k", ":7|"),
        ("getex k", "$1|w|"),
        ("ttl k", ":7|"),
        ("getex k persist", "$1|w|"),
        ("ttl k", ":-1|"),
        ("getex k px 70", "$1|w|"),
        ("pttl k", ":70|"),
        ("getex k exat 1800000000", "$1|w|"),
        ("expiretime k", ":1800000000|"),
        ("getex k ex 0", "-ERR invalid expire time in 'getex' command|"),
        ("getex k ex a", NOT_INT),
        ("getex none ex a", "$-1|"),
        ("getex k ex 5 persist", "-ERR syntax error|"),
        ("getex k keepttl", "-ERR syntax error|"),
        ("getex k nx", "-ERR syntax error|"),
        ("getex k pxat 1", "$1|w|"),
        ("get k", "$-1|"),
        ("set k v", "+OK|"),
        ("getdel k", "$1|v|"),
        ("getdel k", "$-1|"),
        ("exists k", ":0|"),
    ]);
}

#[test]
fn many_at_once() {
    Bench::new().expect(&[
        ("mset a 1 b 2", "+OK|"),
        ("mset a", "-ERR wrong number of arguments for 'mset' command|"),
        ("mset a 1 b", "-ERR wrong number of arguments for 'mset' command|"),
        ("msetnx a 1 b", "-ERR wrong number of arguments for 'msetnx' command|"),
        ("mget a x b a", "*4|$1|1|$-1|$1|2|$1|1|"),
        ("msetnx c 3 b 4", ":0|"),
        ("exists c", ":0|"),
        ("msetnx c 3 c 4", ":1|"),
        ("get c", "$1|4|"),
    ]);
}
