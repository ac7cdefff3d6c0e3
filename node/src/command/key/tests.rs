//! Answers as redis-server 7.0.15 gives them.

use crate::command::testing::Bench;

const NOT_INT: &str = "-ERR value is not an integer or out of range|";

#[test]
fn many_keys_are_counted() {
    Bench::new().expect(&[
        ("mset a 1 b 2 c 3", "+OK|"),
        ("exists a b x a", ":3|"),
        ("touch a x b", ":2|"),
        ("type a", "+string|"),
        ("type x", "+none|"),
        ("del a x a", ":1|"),
        ("unlink b c", ":2|"),
        ("exists a b c", ":0|"),
    ]);
}

#[test]
fn deadlines_are_set_and_told() {
    let mut bench = Bench::new();
    bench.expect(&[
        ("ttl k", ":-2|"),
        ("pexpiretime k", ":-2|"),
        ("expire k 10", ":0|"),
        ("set k v", "+OK|"),
        ("ttl k", ":-1|"),
        ("expiretime k", ":-1|"),
        ("persist k", ":0|"),
        ("expire k 10", ":1|"),
        ("ttl k", ":10|"),
        ("pttl k", ":10000|"),
        ("expiretime k", ":1700000010|"),
        ("pexpiretime k", ":1700000010000|"),
        ("persist k", ":1|"),
        ("pexpire k 1499", ":1|"),
        ("ttl k", ":1|"),
        ("pexpire k 1500", ":1|"),
        ("ttl k", ":2|"),
        ("expireat k 1700000100", ":1|"),
        ("ttl k", ":100|"),
        ("pexpireat k 1700000100499", ":1|"),
        ("expiretime k", ":1700000100|"),
        ("expire k a", NOT_INT),
        ("expire k 9223372036854775807", "-ERR invalid expire time in 'expire' command|"),
        ("expire k -9223372036854775808", "-ERR invalid expire time in 'expire' command|"),
        ("expireat k 9223372036854775807", "-ERR invalid expire time in 'expireat' command|"),
        ("pexpire k 9223372036854775807", "-ERR invalid expire time in 'pexpire' command|"),
        ("pexpireat k 9223372036854775807", ":1|"),
        ("pexpiretime k", ":9223372036854775807|"),
        ("persist k", ":1|"),
    ]);
    for past in
        ["expire k -1", "expire k 0", "pexpire k -9223372036854775808", "expireat k 1", "pexpireat k 0"]
    {
        bench.expect(&[("set k v", "+OK|"), (past, ":1|"), ("exists k", ":0|")]);
    }
    bench.expect(&[("set k v px 5", "+OK|")]);
    bench.now_ms += 5;
    bench.expect(&[("pttl k", ":0|"), ("get k", "$1|v|")]);
    bench.now_ms += 1;
    bench.expect(&[("pttl k", ":-2|")]);
    assert!(bench.keyspace.is_empty(), "looking at an expired key removes it");
    assert_eq!(bench.count, 1, "and replicas are told");
}

#[test]
fn deadlines_are_set_on_conditions() {
    const NX: &str = "-ERR NX and XX, GT or LT options at the same time are not compatible|";
    Bench::new().expect(&[
        ("set k v", "+OK|"),
        ("expire k 10 xx", ":0|"),
        ("expire k 10 gt", ":0|"),
        ("expire k 10 NX", ":1|"),
        ("expire k 20 nx", ":0|"),
        ("expire k 10 gt", ":0|"),
        ("expire k 11 gt", ":1|"),
        ("expire k 11 lt", ":0|"),
        ("expire k 9 lt", ":1|"),
        ("expire k 12 xx", ":1|"),
        ("expire k 13 xx gt", ":1|"),
        ("ttl k", ":13|"),
        ("persist k", ":1|"),
        ("expire k 13 lt", ":1|"),
        ("expire k 1 nx xx", NX),
        ("expire k 1 nx gt", NX),
        ("expire k 1 gt lt", "-ERR GT and LT options at the same time are not compatible|"),
        ("expire k 1 foo", "-ERR Unsupported option foo|"),
        ("expire k a foo", "-ERR Unsupported option foo|"),
        ("expire none 1 nx", ":0|"),
        ("expire k -1 gt", ":0|"),
        ("expire k -1 lt", ":1|"),
        ("exists k", ":0|"),
    ]);
}

#[test]
fn keys_are_renamed_and_copied() {
    Bench::new().expect(&[
        ("rename a b", "-ERR no such key|"),
        ("renamenx a b", "-ERR no such key|"),
        ("rename a a", "-ERR no such key|"),
        ("set a 1 ex 10", "+OK|"),
        ("set b 2", "+OK|"),
        ("rename a a", "+OK|"),
        ("renamenx a a", ":0|"),
        ("renamenx a b", ":0|"),
        ("rename a b", "+OK|"),
        ("get b", "$1|1|"),
        ("ttl b", ":10|"),
        ("exists a", ":0|"),
        ("renamenx b a", ":1|"),
        ("copy a b", ":1|"),
        ("ttl b", ":10|"),
        ("get b", "$1|1|"),
        ("copy a b", ":0|"),
        ("set a 5", "+OK|"),
        ("copy a b replace", ":1|"),
        ("ttl b", ":-1|"),
        ("copy a b db 0 REPLACE", ":1|"),
        ("copy none b replace", ":0|"),
        ("get b", "$1|5|"),
        ("copy a a", "-ERR source and destination objects are the same|"),
        ("copy a b db 99", "-ERR DB index is out of range|"),
        ("copy a b db x", NOT_INT),
        (
            "copy a b db 99999999999",
            "-ERR value is out of range, value must between -2147483648 and 2147483647|",
        ),
        ("copy a b db", "-ERR syntax error|"),
        ("copy a b foo", "-ERR syntax error|"),
    ]);
}

#[test]
fn encodings_are_those_of_redis() {
    let mut bench = Bench::new();
    bench.expect(&[
        ("object encoding none", "$-1|"),
        ("object freq none", "$-1|"),
        ("set n 12", "+OK|"),
        ("object encoding n", "$3|int|"),
        ("object refcount n", ":2147483647|"),
        ("set n 10000", "+OK|"),
        ("object refcount n", ":1|"),
        ("append n 1", ":6|"),
        ("object encoding n", "$3|raw|"),
        ("incr n", ":100002|"),
        ("object encoding n", "$3|int|"),
        ("incrbyfloat n 1", "$6|100003|"),
        ("object encoding n", "$6|embstr|"),
        ("set s abc", "+OK|"),
        ("object encoding s", "$6|embstr|"),
        ("copy s t", ":1|"),
        ("object encoding t", "$6|embstr|"),
        ("setrange s 1 x", ":3|"),
        ("get s", "$3|axc|"),
        ("object encoding s", "$3|raw|"),
        ("rename s u", "+OK|"),
        ("object encoding u", "$3|raw|"),
        ("append new 12", ":2|"),
        ("object encoding new", "$3|int|"),
        ("setrange new2 0 12", ":2|"),
        ("object encoding new2", "$3|raw|"),
        ("set l 12345678901234567890123456789012345678901234", "+OK|"),
        ("object encoding l", "$6|embstr|"),
        ("set l 123456789012345678901234567890123456789012345", "+OK|"),
        ("object encoding l", "$3|raw|"),
        ("set k v", "+OK|"),
    ]);
    assert!(bench.words("object freq k").starts_with("-ERR An LFU maxmemory policy is not selected, access"));
    bench.now_ms += 3_700;
    bench.expect(&[
        ("object idletime k", ":3|"),
        ("ttl k", ":-1|"),
        ("exists k", ":1|"),
        ("object idletime k", ":3|"),
        ("touch k", ":1|"),
        ("object idletime k", ":0|"),
    ]);
}

#[test]
fn strings_are_changed_in_place() {
    const TOO_LONG: &str = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)|";
    Bench::new().expect(&[
        ("append k abc", ":3|"),
        ("append k def", ":6|"),
        ("append k def", ":9|"),
        ("strlen k", ":9|"),
        ("strlen none", ":0|"),
        ("set n -12", "+OK|"),
        ("strlen n", ":3|"),
        ("getrange n 1 -1", "$2|12|"),
        ("getrange k 0 2", "$3|abc|"),
        ("substr k -3 -1", "$3|def|"),
        ("getrange none 0 2", "$0||"),
        ("getrange k a 2", NOT_INT),
        ("setrange none 5 ", ":0|"),
        ("exists none", ":0|"),
        ("setrange k 5 ", ":9|"),
        ("setrange z 2 x", ":3|"),
        ("get z", "$3|\0\0x|"),
        ("expire k 100", ":1|"),
        ("setrange k 7 XYZ", ":10|"),
        ("get k", "$10|abcdefdXYZ|"),
        ("append k !", ":11|"),
        ("ttl k", ":100|"),
        ("setrange k -1 x", "-ERR offset is out of range|"),
        ("setrange k a x", NOT_INT),
        ("setrange k 536870912 x", TOO_LONG),
        ("setrange none 9223372036854775807 x", TOO_LONG),
    ]);
}

/// What redis-server 7.0.15 answers to `DUMP`.
const DUMPS: &[(&[u8], &[u8])] = &[
    (b"hello", b"\x00\x05hello\x0a\x00cr\xdfve4 \x0a"),
    (b"", b"\x00\x00\x0a\x00]\x9b\x5c@\x0f\x7f\xa2\xda"),
    (b"0", b"\x00\xc0\x00\x0a\x00\x98@\xa7x\xf8P\x03\x08"),
    (b"-1", b"\x00\xc0\xff\x0a\x00\x0c\x93~$\x85\x08\x9d\xc5"),
    (b"127", b"\x00\xc0\x7f\x0a\x00\x0d\xb5\xeb1RT\xc5\x14"),
    (b"128", b"\x00\xc1\x80\x00\x0a\x00\xebz\xb3\xb5\x10\xcfKe"),
    (b"-128", b"\x00\xc0\x80\x0a\x00\x99f2m/\x0c[\xd9"),
    (b"-129", b"\x00\xc1\x7f\xff\x0a\x00\x17`\x82(T\x80\x84\x80"),
    (b"32767", b"\x00\xc1\xff\x7f\x0a\x00IZ7\xda\x17\xf4\xd5+"),
    (b"-32769", b"\x00\xc2\xff\x7f\xff\xff\x0a\x00\xae\xe3LM\x06\xc6\x856"),
    (b"2147483647", b"\x00\xc2\xff\xff\xff\x7f\x0a\x00,t\xe5\x9e\xe0.\xad\xa1"),
    (b"2147483648", b"\x00\x0a2147483648\x0a\x00\xe7\xb1)\xa3L\x1dv\xee"),
    (b"-2147483648", b"\x00\xc2\x00\x00\x00\x80\x0a\x00\xc7O\x87>3U\x81\x87"),
    (b"9223372036854775807", b"\x00\x139223372036854775807\x0a\x00:e~\x94\x81\xe8_\x22"),
    (b"007", b"\x00\x03007\x0a\x00rX\xe2{Li\xba\xd9"),
    (b"aaaaaaaaaaaaaaaaaaaa", b"\x00\x14aaaaaaaaaaaaaaaaaaaa\x0a\x00\x83\xb4k^\x1b\x11\xac\xf1"),
    (b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", b"\x00\xc3\x09?\x01aa\xe02\x00\x01aa\x0a\x00\xc7\xb4T\xc1k\x88f\xcb"),
    (b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", b"\x00\xc3\x0cA,\x01aa\xe0\xff\x00\xe0\x17\x00\x01aa\x0a\x00K\x1b\xc2bRF\xe7\x13"),
    (b"abcabcabcabcabcabcabcabcabcabcabcabcabc", b"\x00\xc3\x0b'\x03abca\xe0\x18\x02\x01bc\x0a\x00\xb9Q\x90)\x9e\x9aso"),
    (b"The quick brown fox jumps over the lazy dog, and the quick brown dog over the lazy fox.", b"\x00\xc3?@W\x1fThe quick brown fox jumps over t \x1e\x0clazy dog, and`\x11\xe0\x030 \x18\xe0\x06* B\x00.\x0a\x00A\x225\x8e\xfe\xfb\x98\xcf"),
    (b"@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\x5c]^_`abcdefghijklmnopqrstuvwxyz{|}~\x7f\x00\xff", b"\x00@B@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\x5c]^_`abcdefghijklmnopqrstuvwxyz{|}~\x7f\x00\xff\x0a\x00n,z\xfe\xe9\x15L\xc4"),
];

#[test]
fn dumps_of_redis_are_restored_and_ours_differ_only_in_compression() {
    let mut bench = Bench::new();
    for (value, payload) in DUMPS {
        assert_eq!(bench.run(&[b"restore", b"k", b"0", payload, b"replace"]), b"+OK\r\n");
        assert_eq!(
            bench.run(&[b"get", b"k"]),
            [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
        );
        let ours = bench.run(&[b"dump", b"k"]);
        if payload[1] != 0xc3 {
            let expected = [format!("${}\r\n", payload.len()).as_bytes(), payload, b"\r\n"].concat();
            assert_eq!(ours, expected);
        }
        // Any damage is seen.
        for at in 0..payload.len() {
            let mut damaged = payload.to_vec();
            damaged[at] ^= 1;
            let answer = bench.run(&[b"restore", b"x", b"0", &damaged]);
            assert_eq!(answer, b"-ERR DUMP payload version or checksum are wrong\r\n");
        }
    }
}

#[test]
fn restore_takes_its_options() {
    let mut bench = Bench::new();
    let payload = DUMPS[0].1;
    let mut restore = |key: &str, ttl: &str, options: &str, expected: &str| {
        let mut arguments = vec![b"restore".as_slice(), key.as_bytes(), ttl.as_bytes(), payload];
        arguments.extend(options.split(' ').filter(|option| !option.is_empty()).map(str::as_bytes));
        let answer = String::from_utf8_lossy(&bench.run(&arguments)).replace("\r\n", "");
        assert_eq!(answer, expected, "{key} {ttl} {options}");
        bench.words(&format!("pttl {key}"))
    };
    assert_eq!(restore("k", "0", "", "+OK"), ":-1|");
    restore("k", "0", "", "-BUSYKEY Target key name already exists.");
    restore("k", "-1", "", "-BUSYKEY Target key name already exists.");
    restore("k", "-1", "replace", "-ERR Invalid TTL value, must be >= 0");
    restore("k", "a", "replace", "-ERR value is not an integer or out of range");
    assert_eq!(restore("k", "500", "REPLACE", "+OK"), ":500|");
    assert_eq!(restore("k", "1700000000700", "replace absttl", "+OK"), ":700|");
    assert_eq!(restore("k", "1", "replace absttl", "+OK"), ":-2|");
    assert_eq!(restore("k", "9223372036854775807", "replace", "+OK").len(), 21);
    restore("z", "0", "idletime -1", "-ERR Invalid IDLETIME value, must be >= 0");
    restore("z", "0", "freq 256", "-ERR Invalid FREQ value, must be >= 0 and <= 255");
    restore("z", "0", "freq 1 idletime 1", "-ERR syntax error");
    restore("z", "0", "foo", "-ERR syntax error");
    restore("z", "0", "freq 7", "+OK");
    restore("i", "0", "idletime 100", "+OK");
    assert_eq!(bench.words("object idletime i"), ":100|");
    assert_eq!(bench.words("restore q 0 abc"), "-ERR DUMP payload version or checksum are wrong|");
    assert_eq!(bench.words("dump none"), "$-1|");
}
