#!/usr/bin/env python3
"""Random commands, sent to Redis 7.0 and to Korum: every reply must be the same, byte for byte.

  differential.py [--seed N] [--commands 20000] [--all] [--reference HOST:PORT] [--subject HOST:PORT]

For: the long tail of options, edge values and error texts of the string and key families.
Not here: many nodes (one partition's worth of commands is the same anywhere), speed.

Everything follows from the seed. After a difference it prints the seed, the command, both replies and the commands
that touched the same keys before; both servers are then emptied and it goes on, so that one run shows all kinds.
Without --reference it starts a redis-server of its own; without --subject a node (see support.py).
"""

import argparse
import os
import random
import re
import shutil
import socket
import sys
import tempfile
import time
from collections import OrderedDict

import support
import process
from resp import encode

BATCH = 40
# replies that depend on the moment: numbers may differ by this much (milliseconds, seconds)
NEAR = {"PTTL": 2000, "PEXPIRETIME": 2000, "TTL": 2, "EXPIRETIME": 2}
UNORDERED = {"KEYS", "SCAN"}
UNPREDICTABLE = {"TIME", "RANDOMKEY", "WAIT"}  # only that both answer with the same kind of reply


class Raw:
    """A connection that returns replies as the bytes that came."""

    def __init__(self, address):
        self.address = address
        self.hello = None
        self.open()

    def open(self):
        """A new connection, in the protocol of the old one."""
        self.socket = socket.create_connection(self.address, timeout=5)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb")
        if self.hello:
            self.batch([[b"HELLO", self.hello]])

    def batch(self, commands):
        """Send all, read all. When a reply does not come, it says so in its place and begins a new connection."""
        replies = []
        try:
            self.socket.sendall(b"".join(map(encode, commands)))
            for _ in commands:
                replies.append(self.read())
        except OSError as error:
            self.socket.close()
            self.open()
            replies.append(b"(no reply: %s)" % str(error).encode())
            replies += [b"(not reached)"] * (len(commands) - len(replies))
        return replies

    def read(self):
        """One reply, raw."""
        line = self.reader.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError(f"the connection ended after {line!r}")
        kind, rest = line[:1], line[1:-2]
        if kind in b"$=!" and int(rest) >= 0:
            return line + self.reader.read(int(rest) + 2)
        count = {b"*": 1, b"~": 1, b">": 1, b"%": 2}.get(kind, 0)
        if count and int(rest) > 0:
            return line + b"".join(self.read() for _ in range(count * int(rest)))
        return line


class Generator:
    """Commands from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.later = 0
        self.keys = [b"{d}%d" % i for i in range(12)] + [b"plain%d" % i for i in range(6)]
        self.keys += [b"", b"\x00\xff\r\n{d}", b"{}x", "schlüssel{d}".encode()]
        self.tagged = self.keys[:12] + [b"{d}\x00\r\n\xfe"]

    def any(self, *choices):
        """One of the choices."""
        return self.random.choice(choices)

    def maybe(self, *words, chance=0.3):
        """The words, or nothing."""
        return list(words) if self.random.random() < chance else []

    def key(self):
        """A key of any slot."""
        return self.random.choice(self.keys)

    def near(self):
        """A key of one slot, for commands of several keys."""
        return self.random.choice(self.tagged)

    def integer(self):
        """Integers and what only looks like one."""
        if self.random.random() < 0.6:
            return str(self.random.randint(-20, 20)).encode()
        return self.any(
            b"0", b"-0", b"+1", b"01", b" 1", b"1 ", b"1.0", b"", b"x", b"9223372036854775807", b"-9223372036854775808",
            b"9223372036854775808", b"-9223372036854775809", b"99999999999999999999999", b"0x10", b"1e3", b"\x001",
            b"2147483648", b"4294967296", b"-",
        )

    def float(self):
        """Numbers for INCRBYFLOAT, most of them exact in few digits."""
        if self.random.random() < 0.6:
            return str(self.random.randint(-2000, 2000) / self.any(1, 2, 4, 10, 100)).encode()
        return self.any(
            b"0", b"-0", b"1e3", b"1.5e2", b"-1e-3", b"3.0", b".5", b"5.", b"inf", b"-inf", b"nan", b"", b"x", b" 1", b"1 ",
            b"0x10", b"1e400", b"1e17", b"123456789012345678", b"0.1", b"+2", b"1e-10", b"infinity", b"1,5",
        )

    def value(self):
        """Values: numbers, text, bytes, some large."""
        kind = self.random.random()
        if kind < 0.35:
            return self.integer()
        if kind < 0.45:
            return self.float()
        if kind < 0.9:
            size = self.any(0, 1, 3, 10, 43, 44, 45, 46, 100)
            return bytes(self.random.choice(b"abcAB \x00\xff\r\n01") for _ in range(size))
        return bytes([self.random.randrange(256)]) * self.any(1000, 5000, 70_000)

    def offset(self):
        """Offsets into values."""
        return self.any(b"0", b"1", b"-1", b"3", b"-3", b"10", b"-100", b"100", b"5000", b"536870912", b"x", b"",
                        b"9223372036854775807", b"-9223372036854775808", b"4294967296", b"9223372036854775808")

    def never_twice(self, unit):
        """Makes a time to live a second longer than the last one (`unit` to a second): were two deadlines equal but for
        the millisecond in which each server was asked, GT and LT would be a matter of luck."""
        self.later += 1
        return lambda time: b"%d" % (time + self.later * unit)

    def seconds(self):
        """Times to live in seconds: far away, over or not a time."""
        far = self.never_twice(1)
        return self.any(far(100), far(1000), far(500), far(100000), b"0", b"-1", b"-100", b"x", b"", b"1.5", b"9223372036854775807",
                        b"-9223372036854775808", b"9223372036854775", b"9223372036854776", b"9223370399119966")

    def milliseconds(self):
        """Times to live in milliseconds."""
        far = self.never_twice(1000)
        return self.any(far(100000), far(1000000), far(500000), b"0", b"-1", b"-100000", b"x", b"9223372036854775807",
                        b"-9223372036854775808", b"9223370399119966000")

    def moment(self, unit):
        """A point in time, in seconds (1) or milliseconds (1000)."""
        fixed = self.any(4_000_000_000, 4_100_000_000, 1, 1_000_000_000)
        return self.any(b"%d" % (fixed * unit), b"%d" % (fixed * unit), b"0", b"-1", b"x", b"9223372036854775807")

    def option(self):
        """One option of an expiry, as SET and GETEX take it."""
        return self.any([b"EX", self.seconds()], [b"PX", self.milliseconds()], [b"EXAT", self.moment(1)],
                        [b"pxat", self.moment(1000)])

    def set(self):
        """SET with all its options."""
        words = [b"SET", self.key(), self.value()]
        options = [self.maybe(self.any(b"NX", b"XX", b"nx")), self.maybe(b"GET"), self.maybe(b"KEEPTTL", chance=0.1)]
        options.append(self.option() if self.random.random() < 0.4 else [])
        self.random.shuffle(options)
        return words + sum(options, [])

    def getex(self):
        """GETEX with all its options."""
        return [b"GETEX", self.key()] + self.any([], [b"PERSIST"], self.option(), self.option())

    def expire(self):
        """EXPIRE and kin with all their options."""
        word, moment = self.any((b"EXPIRE", self.seconds()), (b"PEXPIRE", self.milliseconds()),
                                (b"EXPIREAT", self.moment(1)), (b"PEXPIREAT", self.moment(1000)))
        flags = self.any([], [], [b"NX"], [b"XX"], [b"GT"], [b"LT"], [b"gt", b"XX"], [b"NX", b"GT"], [b"GT", b"LT"], [b"ZZ"])
        return [word, self.key(), moment] + flags

    def lcs(self):
        """LCS on short values."""
        options = [self.maybe(b"LEN"), self.maybe(b"IDX"), self.maybe(b"MINMATCHLEN", self.any(b"1", b"2", b"4", b"-1", b"x"))]
        options.append(self.maybe(b"WITHMATCHLEN"))
        self.random.shuffle(options)
        return [b"LCS", b"{d}l1", b"{d}l2"] + sum(options, [])

    def lcs_set(self):
        """The values that LCS reads."""
        return [b"SET", self.any(b"{d}l1", b"{d}l2"), bytes(self.random.choice(b"abcd") for _ in range(self.random.randrange(40)))]

    def many(self):
        """MGET, MSET and kin over keys of one slot or of many."""
        word = self.any(b"MGET", b"DEL", b"UNLINK", b"EXISTS", b"TOUCH", b"MSET", b"MSETNX")
        key = self.near if word == b"MSETNX" else self.key
        words = [word]
        for _ in range(self.random.randint(1, 5)):
            words += [key()] + ([self.value()] if word.startswith(b"MSET") else [])
        return words

    def two(self):
        """Commands about two keys of one slot."""
        return self.any([b"RENAME", self.near(), self.near()], [b"RENAMENX", self.near(), self.near()],
                        [b"COPY", self.near(), self.near()] + self.maybe(b"DB", self.any(b"0", b"0", b"x", b"-1"))
                        + self.maybe(b"REPLACE", chance=0.5) + self.maybe(b"BAD", chance=0.05))

    def simple(self):
        """Commands about one key without options."""
        word = self.any(b"GET", b"GETDEL", b"STRLEN", b"INCR", b"DECR", b"TTL", b"PTTL", b"EXPIRETIME", b"PEXPIRETIME",
                        b"PERSIST", b"TYPE", b"GET", b"EXISTS", b"DEL")
        return [word, self.key()]

    def valued(self):
        """Commands about one key and something more."""
        return self.any(
            [b"SETNX", self.key(), self.value()], [b"GETSET", self.key(), self.value()], [b"APPEND", self.key(), self.value()],
            [b"SETEX", self.key(), self.seconds(), self.value()], [b"PSETEX", self.key(), self.milliseconds(), self.value()],
            [b"INCRBY", self.key(), self.integer()], [b"DECRBY", self.key(), self.integer()],
            [b"INCRBYFLOAT", self.key(), self.float()], [b"GETRANGE", self.key(), self.offset(), self.offset()],
            [b"SUBSTR", self.key(), self.offset(), self.offset()],
            [b"SETRANGE", self.key(), self.any(b"0", b"1", b"5", b"100", b"-1", b"x", b"536870912", b"9223372036854775807"),
             self.any(b"", b"x", b"hello\x00")],
            [b"OBJECT", self.any(b"ENCODING", b"encoding", b"REFCOUNT", b"FREQ", b"BAD"), self.key()],
        )

    def other(self):
        """Commands about the keyspace, the connection and commands."""
        return self.any(
            [b"KEYS", self.any(b"*", b"plain*", b"{d}?", b"{d}[0-3]", b"{d}[^a-z]", b"plain\\1", b"[a-", b"*n*1", b"", b"{d}*[")],
            [b"ECHO", self.value()], [b"PING"], [b"PING", self.value()], [b"SELECT", self.any(b"0", b"x", b"-1")],
            [b"COMMAND", b"GETKEYS"] + self.any(self.simple, self.many, self.set, self.two)(), [b"COMMAND", b"GETKEYS", b"PING"],
            [b"COMMAND", b"GETKEYS", b"NOSUCH", b"a"], [b"OBJECT", b"ENCODING"], [b"TOUCH"], [b"DUMP", b"nothing"],
            [b"RESTORE", self.any(*self.keys), b"0", self.any(b"junk", b"", b"\x00\x01a\x0a\x00aaaaaaaa")],
            [b"RESTORE", self.key(), self.any(b"-1", b"x", b"0"), b"junk"] + self.any([b"REPLACE"], [b"BAD"], [b"IDLETIME", b"-1"], [b"FREQ", b"300"]),
            [b"NOSUCH", self.value()], [b"CLIENT", b"GETNAME"], [b"CLIENT", b"NOSUCH"], [b"OBJECT", b"NOSUCH", b"a"],
            [b"WAIT", b"0", b"0"], [b"WAIT", b"x", b"0"], [b"TIME", b"x"], [b"RANDOMKEY", b"x"],
        )

    def command(self):
        """The next one; now and then an argument too few or too many."""
        make = self.random.choices(
            [self.set, self.getex, self.expire, self.lcs, self.lcs_set, self.many, self.two, self.simple, self.valued, self.other],
            [18, 6, 10, 3, 3, 12, 8, 20, 20, 5],
        )[0]
        words = make()
        if self.random.random() < 0.03:
            if len(words) > 1 and self.random.random() < 0.5:
                words.pop()
            else:
                words.append(self.any(b"extra", b"", b"NX", b"GET", b"1"))
        if words[0] == b"MSETNX" and len(words) % 2 == 0:
            words.pop()  # keys must stay in one slot
        if self.random.random() < 0.02:
            words[0] = words[0].lower()
        return words


def same(command, left, right):
    """Are the replies the same, as far as the command lets them be?"""
    if not right or right[:1] == b"(":
        return False
    if left == right:
        return True
    word = command[0].decode("latin-1").upper()
    if word in NEAR and left[:1] == right[:1] == b":":
        return min(int(left[1:]), int(right[1:])) > 0 and abs(int(left[1:]) - int(right[1:])) <= NEAR[word]
    # whether a small number is shared depends in Redis on the way in which it came to be
    if word in UNPREDICTABLE or (word == "OBJECT" and command[1].upper() == b"REFCOUNT"):
        return left[:1] == right[:1]
    if word in UNORDERED:
        return sorted(left.split(b"\r\n")) == sorted(right.split(b"\r\n"))
    return False


def show(data, limit=300):
    """Bytes for people."""
    text = repr(bytes(data))[1:]
    return text if len(text) <= limit else f"{text[:limit]}... ({len(data)} bytes)"


def shape(command, left, right):
    """What kind of difference it is: the command and the replies without their particulars."""
    def of(reply):
        return re.sub(rb"[0-9]+", b"N", reply[:60]) if reply[:1] == b"-" else reply[:1]
    return command[0].upper(), tuple(w.upper() for w in command[1:2] if command[0].upper() in (b"OBJECT", b"COMMAND")), of(left), of(right)


def dump_and_restore(generator, server, source, target, tail):
    """DUMP on a server and RESTORE there what it said: the payload is its own business, the outcome is not."""
    payload = server.batch([[b"DUMP", source]])[0]
    if payload[:1] != b"$" or payload.startswith(b"$-1"):
        return [payload]
    data = payload.split(b"\r\n", 1)[1][:-2]
    return server.batch([[b"RESTORE", target, b"0", data] + tail, [b"GET", target], [b"PTTL", target]])


def compare(options, reference, subject):
    """Run; returns the differences by shape."""
    generator = Generator(options.seed)
    history = []
    differences = OrderedDict()
    servers = [Raw(reference), Raw(subject)]

    def fresh():
        """Empty servers on new connections: a reply that was one too many or too few must not shift the next ones."""
        history.clear()
        for server in servers:
            server.socket.close()
            server.open()
            server.batch([[b"FLUSHALL"]])

    def difference(command, left, right):
        name = shape(command, left, right)
        if name in differences:
            differences[name]["count"] += 1
            return
        touched = [one for one in history if set(one[1:]) & set(command[1:])][-6:]
        differences[name] = {"count": 1, "command": command, "left": left, "right": right, "before": touched}
        print(f"difference (seed {options.seed}, --commands {options.commands}) after {done} commands:")
        for one in touched:
            print("      before:", " ".join(show(word, 60) for word in one))
        print("     command:", " ".join(show(word, 80) for word in command))
        print("       redis:", show(left))
        print("       korum:", show(right), flush=True)

    done = 0
    begin = time.monotonic()
    fresh()
    if generator.random.random() < 0.5:
        for server in servers:
            server.hello = b"3"
            server.batch([[b"HELLO", b"3"]])
    while done < options.commands and time.monotonic() - begin < options.seconds:
        batch = [generator.command() for _ in range(BATCH)]
        replies = [server.batch(batch) for server in servers]
        for command, left, right in zip(batch, *replies):
            done += 1
            if not same(command, left, right):
                difference(command, left, right)
                fresh()
                break
            history.append(command)
        tail = generator.maybe(b"REPLACE", chance=0.6) + generator.maybe(b"ABSTTL", chance=0.2)
        source, target = generator.near(), generator.near()
        outcomes = [dump_and_restore(generator, server, source, target, tail) for server in servers]
        if not all(map(same, [[b"RESTORE"], [b"GET"], [b"PTTL"]], *outcomes)):
            difference([b"RESTORE", target, b"0", b"(own dump of %b)" % source] + tail,
                       b"".join(outcomes[0]), b"".join(outcomes[1]))
            fresh()
        # short times to live pass between batches, on both sides
        if generator.random.random() < 0.05:
            key = generator.near()
            for server in servers:
                server.batch([[b"SET", key, b"short", b"PX", b"1"]])
            time.sleep(0.01)
        if len(history) > 2000:
            del history[:1000]
        if differences and not options.all:
            break
    return differences, done


def address(text):
    """HOST:PORT."""
    host, _, port = text.rpartition(":")
    return host, int(port)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--commands", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=90, help="end after so long, however many commands were done")
    parser.add_argument("--all", action="store_true", help="go on after a difference and show every kind once")
    parser.add_argument("--reference", type=address)
    parser.add_argument("--subject", type=address)
    options = parser.parse_args()
    own = None
    directory = None
    try:
        reference = options.reference
        if reference is None:
            program = shutil.which("redis-server")
            if program is None:
                print("skipped: redis-server is not installed")
                return 0
            directory = tempfile.mkdtemp(prefix="korum-reference-")
            port = process.free_ports(1)[0]
            own = process.spawn([program, "--port", str(port), "--save", "", "--bind", "127.0.0.1", "--dir", directory],
                                os.path.join(directory, "log"))
            reference = ("127.0.0.1", port)
            for _ in range(300):
                try:
                    socket.create_connection(reference, timeout=1).close()
                    break
                except OSError:
                    time.sleep(0.02)
        differences, done = compare(options, reference, options.subject or support.single())
    finally:
        if own:
            process.end(*own)
            shutil.rmtree(directory, ignore_errors=True)
    if differences:
        print(f"{len(differences)} kinds of differences in {done} commands; again: "
              f"differential.py --seed {options.seed} --commands {options.commands} --all")
        return 1
    print(f"{done} commands, no difference (seed {options.seed})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
