//! Bits of strings, through the commands.

use crate::command::testing::Bench;

#[test]
fn bits_are_set_and_read() {
    let mut bench = Bench::new();
    bench.expect(&[
        ("SETBIT k 7 1", ":0|"),
        ("GET k", "$1|\u{1}|"),
        ("SETBIT k 7 1", ":1|"),
        ("SETBIT k 100 0", ":0|"),
        ("STRLEN k", ":13|"),
        ("GETBIT k 7", ":1|"),
        ("GETBIT k 1000", ":0|"),
        ("SETBIT k 4294967296 1", "-ERR bit offset is not an integer or out of range|"),
        ("SETBIT k -1 1", "-ERR bit offset is not an integer or out of range|"),
        ("SETBIT k 1 2", "-ERR bit is not an integer or out of range|"),
        ("SET n 12", "+OK|"),
        ("SETBIT n 0 0", ":0|"),
        ("OBJECT ENCODING n", "$3|raw|"),
    ]);
    bench.words("SETBIT n 0 0");
    assert_eq!(bench.count, 0, "nothing changed");
    bench.words("SETBIT k 7 1");
    assert_eq!(bench.count, 0);
}

#[test]
fn bits_are_counted_and_found() {
    Bench::new().expect(&[
        ("SET k foobar", "+OK|"),
        ("BITCOUNT k", ":26|"),
        ("BITCOUNT k 0 0", ":4|"),
        ("BITCOUNT k 1 1", ":6|"),
        ("BITCOUNT k 5 30 BIT", ":17|"),
        ("BITCOUNT k 1", "-ERR syntax error|"),
        ("BITCOUNT none 1", ":0|"),
        ("BITPOS k 1", ":1|"),
        ("BITPOS k 0", ":0|"),
        ("BITPOS k 1 2 -1", ":17|"),
        ("BITPOS none 1", ":-1|"),
        ("BITPOS none 0", ":0|"),
        ("SETBIT ones 0 1", ":0|"),
        ("BITFIELD ones SET u8 0 255", "*1|:128|"),
        ("BITPOS ones 0", ":8|"),
        ("BITPOS ones 0 0", ":8|"),
        ("BITPOS ones 0 0 -1", ":-1|"),
        ("BITPOS k 2", "-ERR The bit argument must be 1 or 0.|"),
    ]);
}

#[test]
fn strings_are_combined() {
    Bench::new().expect(&[
        ("SET a abc", "+OK|"),
        ("SET b abcdef", "+OK|"),
        ("BITOP AND d a b", ":6|"),
        ("GET d", "$6|abc\0\0\0|"),
        ("BITOP OR d a b", ":6|"),
        ("GET d", "$6|abcdef|"),
        ("BITOP XOR d a b none", ":6|"),
        ("GET d", "$6|\0\0\0def|"),
        ("BITOP NOT d none", ":0|"),
        ("EXISTS d", ":0|"),
        ("BITOP NOT d a b", "-ERR BITOP NOT must be called with a single source key.|"),
        ("BITOP NAND d a", "-ERR syntax error|"),
        ("HSET h f v", ":1|"),
        ("BITOP OR d a h", "-WRONGTYPE Operation against a key holding the wrong kind of value|"),
    ]);
}

#[test]
fn fields_overflow_as_asked() {
    Bench::new().expect(&[
        ("BITFIELD k INCRBY i5 100 1 GET u4 0", "*2|:1|:0|"),
        ("BITFIELD k SET u2 102 3", "*1|:0|"),
        ("BITFIELD k INCRBY u2 102 1", "*1|:0|"),
        ("BITFIELD k OVERFLOW SAT INCRBY u2 102 9 OVERFLOW FAIL INCRBY u2 102 1", "*2|:3|$-1|"),
        ("BITFIELD k SET i64 #1 -9223372036854775808 INCRBY i64 #1 -1", "*2|:58720256|:9223372036854775807|"),
        ("BITFIELD k GET u64 0", "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.|"),
        ("BITFIELD k GET i8 #x", "-ERR bit offset is not an integer or out of range|"),
        ("BITFIELD_RO k GET i8 0", "*1|:0|"),
        ("BITFIELD_RO k SET i8 0 1", "-ERR BITFIELD_RO only supports the GET subcommand|"),
        ("BITFIELD k", "*0|"),
    ]);
}
