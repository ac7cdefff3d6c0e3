//! Lists, through the commands.

use crate::command::testing::Bench;

const WRONG: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value|";
const SYNTAX: &str = "-ERR syntax error|";
const INTEGER: &str = "-ERR value is not an integer or out of range|";
const POSITIVE: &str = "-ERR value is out of range, must be positive|";

#[test]
fn items_are_pushed_and_popped_at_both_ends() {
    Bench::new().expect(&[
        ("rpushx l a", ":0|"),
        ("lpushx l a", ":0|"),
        ("rpush l a b", ":2|"),
        ("lpush l c d", ":4|"),
        ("lpushx l e", ":5|"),
        ("rpushx l f", ":6|"),
        ("lrange l 0 -1", "*6|$1|e|$1|d|$1|c|$1|a|$1|b|$1|f|"),
        ("llen l", ":6|"),
        ("lpop l", "$1|e|"),
        ("rpop l", "$1|f|"),
        ("lpop l 2", "*2|$1|d|$1|c|"),
        ("rpop l 9", "*2|$1|b|$1|a|"),
        ("exists l", ":0|"),
        ("lpop l", "$-1|"),
        ("rpop l 1", "*-1|"),
        ("lpop l x", POSITIVE),
        ("lpop l -1", POSITIVE),
        ("lpop l 1 2", "-ERR wrong number of arguments for 'lpop' command|"),
        ("rpush l a", ":1|"),
        ("lpop l 0", "*0|"),
        ("type l", "+list|"),
        ("object encoding l", "$8|listpack|"),
        ("lpop l", "$1|a|"),
        ("llen l", ":0|"),
    ]);
}

#[test]
fn items_have_places() {
    Bench::new().expect(&[
        ("rpush l a b c d", ":4|"),
        ("lindex l 0", "$1|a|"),
        ("lindex l -1", "$1|d|"),
        ("lindex l 4", "$-1|"),
        ("lindex l -5", "$-1|"),
        ("lindex l x", INTEGER),
        ("lindex x x", "$-1|"),
        ("lindex l -9223372036854775808", "$-1|"),
        ("lrange l 1 2", "*2|$1|b|$1|c|"),
        ("lrange l -2 99", "*2|$1|c|$1|d|"),
        ("lrange l 3 1", "*0|"),
        ("lrange l -9223372036854775808 9223372036854775807", "*4|$1|a|$1|b|$1|c|$1|d|"),
        ("lrange x 0 1", "*0|"),
        ("lrange x y 1", INTEGER),
        ("lset l 1 B", "+OK|"),
        ("lset l -1 D", "+OK|"),
        ("lset l 4 x", "-ERR index out of range|"),
        ("lset x 0 x", "-ERR no such key|"),
        ("lset l x x", INTEGER),
        ("linsert l before B y", ":5|"),
        ("linsert l AFTER D z", ":6|"),
        ("linsert l before no z", ":-1|"),
        ("linsert x before no z", ":0|"),
        ("linsert x near no z", SYNTAX),
        ("lrange l 0 -1", "*6|$1|a|$1|y|$1|B|$1|c|$1|D|$1|z|"),
        ("ltrim l 1 -2", "+OK|"),
        ("lrange l 0 -1", "*4|$1|y|$1|B|$1|c|$1|D|"),
        ("ltrim l 0 -1", "+OK|"),
        ("ltrim l x 1", INTEGER),
        ("ltrim l 2 1", "+OK|"),
        ("exists l", ":0|"),
        ("ltrim l 2 1", "+OK|"),
    ]);
}

#[test]
fn what_changes_nothing_has_no_effect() {
    let mut bench = Bench::new();
    bench.words("rpush l a b");
    for line in [
        "ltrim l 0 -1",
        "lrem l 0 x",
        "lset l 0 a",
        "lpop l 0",
        "lmove l l left left",
        "linsert l before x y",
    ] {
        bench.words(line);
        assert_eq!(bench.count, 0, "{line}");
    }
}

#[test]
fn equal_items_are_found_and_removed() {
    let mut bench = Bench::new();
    bench.expect(&[
        ("rpush l a b c a b a", ":6|"),
        ("lpos l a", ":0|"),
        ("lpos l a rank 2", ":3|"),
        ("lpos l a rank -1", ":5|"),
        ("lpos l a rank 4", "$-1|"),
        ("lpos l a count 0", "*3|:0|:3|:5|"),
        ("lpos l a rank -1 count 2", "*2|:5|:3|"),
        ("lpos l a count 0 maxlen 4", "*2|:0|:3|"),
        ("lpos l b maxlen 1", "$-1|"),
        ("lpos l x count 1", "*0|"),
        ("lpos x x count 1", "*0|"),
        ("lpos x x", "$-1|"),
        ("lpos l a count -1", "-ERR COUNT can't be negative|"),
        ("lpos l a maxlen x", "-ERR MAXLEN can't be negative|"),
        ("lpos l a rank x", INTEGER),
        ("lpos l a rank", SYNTAX),
        ("lpos l a near 1", SYNTAX),
        ("lrem l 1 a", ":1|"),
        ("lrem l -1 a", ":1|"),
        ("lrange l 0 -1", "*4|$1|b|$1|c|$1|a|$1|b|"),
        ("lrem l 0 b", ":2|"),
        ("lrem l 0 x", ":0|"),
        ("lrem x 0 x", ":0|"),
        ("lrem x y x", INTEGER),
        ("lrem l 5 a", ":1|"),
        ("lrem l -5 c", ":1|"),
        ("exists l", ":0|"),
    ]);
    assert!(bench.words("lpos x x rank 0").starts_with("-ERR RANK can't be zero: use 1 to start"));
}

#[test]
fn items_move_between_lists() {
    Bench::new().expect(&[
        ("rpush a 1 2 3", ":3|"),
        ("lmove a b left right", "$1|1|"),
        ("lmove a b right LEFT", "$1|3|"),
        ("lrange b 0 -1", "*2|$1|3|$1|1|"),
        ("rpoplpush a b", "$1|2|"),
        ("exists a", ":0|"),
        ("rpoplpush a b", "$-1|"),
        ("lmove a b left left", "$-1|"),
        ("lmove a b up left", SYNTAX),
        ("rpoplpush b b", "$1|1|"),
        ("lrange b 0 -1", "*3|$1|1|$1|2|$1|3|"),
        ("lmove b b left right", "$1|1|"),
        ("lrange b 0 -1", "*3|$1|2|$1|3|$1|1|"),
        ("ltrim b 0 0", "+OK|"),
        ("pexpire b 5000", ":1|"),
        ("rpoplpush b b", "$1|2|"),
        ("pttl b", ":5000|"),
        ("set s 1", "+OK|"),
        ("rpoplpush b s", WRONG),
        ("rpoplpush s b", WRONG),
        ("rpoplpush none s", "$-1|"),
        ("lrange b 0 -1", "*1|$1|2|"),
    ]);
}

#[test]
fn items_are_popped_from_the_first_list_that_has_any() {
    Bench::new().expect(&[
        ("rpush b 1 2 3", ":3|"),
        ("set s 1", "+OK|"),
        ("lmpop 2 a b left", "*2|$1|b|*1|$1|1|"),
        ("lmpop 2 a b right count 9", "*2|$1|b|*2|$1|3|$1|2|"),
        ("lmpop 2 a b right count 9", "*-1|"),
        ("lmpop 2 a s right", WRONG),
        ("lmpop 0 a left", "-ERR numkeys should be greater than 0|"),
        ("lmpop x a left", "-ERR numkeys should be greater than 0|"),
        ("lmpop 9 a left", SYNTAX),
        ("lmpop 1 a up", SYNTAX),
        ("lmpop 1 a left count 0", "-ERR count should be greater than 0|"),
        ("lmpop 1 a left count", SYNTAX),
        ("lmpop 1 a left count 1 count 1", SYNTAX),
    ]);
}

#[test]
fn other_types_are_refused_and_refuse() {
    let mut bench = Bench::new();
    bench.words("set s 1");
    bench.words("rpush l 1");
    for line in [
        "lpush s 1",
        "rpush s 1",
        "lpushx s 1",
        "lpop s",
        "lpop s 1",
        "llen s",
        "lrange s 0 1",
        "lindex s 0",
        "lset s 0 1",
        "linsert s before 1 1",
        "lrem s 0 1",
        "ltrim s 0 1",
        "lpos s 1",
        "get l",
        "hget l f",
        "incr l",
    ] {
        assert_eq!(bench.words(line), WRONG, "{line}");
    }
    bench.expect(&[("copy l k", ":1|"), ("rename k m", "+OK|"), ("lrange m 0 -1", "*1|$1|1|")]);
}

#[test]
fn a_long_list_is_a_row_of_blocks() {
    let mut bench = Bench::new();
    for number in 0..2000 {
        bench.words(&format!("rpush l item{number}"));
    }
    bench.expect(&[
        ("object encoding l", "$9|quicklist|"),
        ("lindex l 1000", "$8|item1000|"),
        ("lrange l 1500 1501", "*2|$8|item1500|$8|item1501|"),
        ("linsert l before item1000 x", ":2001|"),
        ("lpos l item1000", ":1001|"),
        ("lset l 1000 y", "+OK|"),
        ("lrem l 0 y", ":1|"),
        ("ltrim l 1990 -1", "+OK|"),
        ("llen l", ":10|"),
        ("object encoding l", "$8|listpack|"),
        ("lindex l 0", "$8|item1990|"),
    ]);
}

#[test]
fn commands_that_may_wait_take_what_is_there_or_answer_null() {
    let mut bench = Bench::new();
    bench.expect(&[
        ("rpush l 1 2 3 4 5", ":5|"),
        ("blpop none l 0", "*2|$1|l|$1|1|"),
        ("brpop l 0.5", "*2|$1|l|$1|5|"),
        ("blmove l m left right 0", "$1|2|"),
        ("brpoplpush l m 0", "$1|4|"),
        ("blmpop 0 2 none m left count 9", "*2|$1|m|*2|$1|4|$1|2|"),
        ("blpop m 0", "*-1|"),
        ("brpop m none 1", "*-1|"),
        ("blmpop 1 1 m right", "*-1|"),
        ("blmove m l left left 1", "$-1|"),
        ("brpoplpush m l 1", "$-1|"),
        ("blpop l x", "-ERR timeout is not a float or out of range|"),
        ("brpoplpush l m -1", "-ERR timeout is negative|"),
        ("blmove l m up left x", SYNTAX),
        ("blmpop x 1 m up", SYNTAX),
        ("blmpop x 1 m left", "-ERR timeout is not a float or out of range|"),
        ("blmpop 1 0 m up", "-ERR numkeys should be greater than 0|"),
        ("set s x", "+OK|"),
        ("blpop none s l 0", WRONG),
        ("brpoplpush l s 0", WRONG),
        ("llen l", ":1|"),
    ]);
}
