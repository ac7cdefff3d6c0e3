//! Hashes, through the commands.

use crate::command::testing::Bench;

#[test]
fn fields_are_set_read_and_deleted() {
    Bench::new().expect(&[
        ("hset h a 1 b 2", ":2|"),
        ("hset h b 3 c 4", ":1|"),
        ("hget h b", "$1|3|"),
        ("hget h x", "$-1|"),
        ("hget x x", "$-1|"),
        ("hmget h a x c", "*3|$1|1|$-1|$1|4|"),
        ("hmget x a", "*1|$-1|"),
        ("hgetall h", "*6|$1|a|$1|1|$1|b|$1|3|$1|c|$1|4|"),
        ("hkeys h", "*3|$1|a|$1|b|$1|c|"),
        ("hvals h", "*3|$1|1|$1|3|$1|4|"),
        ("hgetall x", "*0|"),
        ("hlen h", ":3|"),
        ("hexists h a", ":1|"),
        ("hexists h x", ":0|"),
        ("hstrlen h a", ":1|"),
        ("hsetnx h a 9", ":0|"),
        ("hsetnx h d 9", ":1|"),
        ("hmset h e 5", "+OK|"),
        ("type h", "+hash|"),
        ("object encoding h", "$8|listpack|"),
        ("hdel h a x b", ":2|"),
        ("hdel h c d e", ":3|"),
        ("exists h", ":0|"),
    ]);
}

#[test]
fn fields_are_counted_with() {
    Bench::new().expect(&[
        ("hincrby h n 5", ":5|"),
        ("hincrby h n -7", ":-2|"),
        ("hincrbyfloat h n 0.5", "$4|-1.5|"),
        ("hincrby h n 1", "-ERR hash value is not an integer|"),
        ("hset h n 9223372036854775807", ":0|"),
        ("hincrby h n 1", "-ERR increment or decrement would overflow|"),
        ("hincrby h n x", "-ERR value is not an integer or out of range|"),
        ("hset h t text", ":1|"),
        ("hincrbyfloat h t 1", "-ERR hash value is not a float|"),
        ("hincrbyfloat h t x", "-ERR value is not a valid float|"),
        ("hincrbyfloat h t inf", "-ERR value is NaN or Infinity|"),
    ]);
}

#[test]
fn other_types_are_refused_and_refuse() {
    let wrong = "-WRONGTYPE Operation against a key holding the wrong kind of value|";
    let mut bench = Bench::new();
    bench.words("set s 1");
    bench.words("hset h f 1");
    for line in
        ["hset s f 1", "hget s f", "hgetall s", "hdel s f", "hscan s 0", "hrandfield s", "hincrby s f 1"]
    {
        assert_eq!(bench.words(line), wrong, "{line}");
    }
    for line in ["get h", "append h x", "incr h", "getset h x", "setrange h 0 x"] {
        assert_eq!(bench.words(line), wrong, "{line}");
    }
    bench.expect(&[("mget h s", "*2|$-1|$1|1|"), ("set h x", "+OK|"), ("get h", "$1|x|")]);
}

#[test]
fn a_hash_keeps_its_deadline_and_can_be_copied_and_renamed() {
    Bench::new().expect(&[
        ("hset h f 1", ":1|"),
        ("pexpire h 5000", ":1|"),
        ("hset h g 2", ":1|"),
        ("pttl h", ":5000|"),
        ("copy h k", ":1|"),
        ("rename h l", "+OK|"),
        ("hgetall k", "*4|$1|f|$1|1|$1|g|$1|2|"),
        ("hgetall l", "*4|$1|f|$1|1|$1|g|$1|2|"),
        ("pttl k", ":5000|"),
    ]);
}

#[test]
fn a_large_hash_is_walked_and_sampled() {
    let mut bench = Bench::new();
    for number in 0..600 {
        bench.words(&format!("hset h field{number} {number}"));
    }
    assert_eq!(bench.words("object encoding h"), "$9|hashtable|");
    assert!(bench.words("hscan h 0 count 100").starts_with("*2|$3|500|*200|"));
    assert!(bench.words("hscan h 100 count 100 match field7 novalues").starts_with("*2|$1|0|*1|$6|field7|"));
    assert!(bench.words("hrandfield h 3").starts_with("*3|"));
    assert!(bench.words("hrandfield h -700 withvalues").starts_with("*1400|"));
    assert!(bench.words("hrandfield h 9999").starts_with("*600|"));
    bench.expect(&[
        ("hrandfield h 0", "*0|"),
        ("hrandfield x", "$-1|"),
        ("hrandfield x 2", "*0|"),
        ("hrandfield h 1 x", "-ERR syntax error|"),
        ("hscan h x", "-ERR invalid cursor|"),
        ("hscan h 0 count 0", "-ERR syntax error|"),
        ("hscan x 0", "*2|$1|0|*0|"),
        ("del h", ":1|"),
        ("exists h", ":0|"),
    ]);
}
