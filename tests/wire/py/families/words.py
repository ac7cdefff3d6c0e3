"""Keys, values, numbers and times to live, from a seed: what all families make commands of."""

import random


class Words:
    """The parts of commands."""

    def __init__(self, seed, families=()):
        self.random = random.Random(seed)
        self.later = 0
        self.families = [family for family in families if family.PREFIX]
        self.keys = [b"{d}%d" % i for i in range(12)] + [b"plain%d" % i for i in range(6)]
        self.keys += [b"", b"\x00\xff\r\n{d}", b"{}x", "schlüssel{d}".encode()]
        self.tagged = self.keys[:12] + [b"{d}\x00\r\n\xfe"]

    def any(self, *choices):
        """One of the choices."""
        return self.random.choice(choices)

    def maybe(self, *words, chance=0.3):
        """The words, or nothing."""
        return list(words) if self.random.random() < chance else []

    def shuffled(self, *parts):
        """Parts of a command, put together in any order."""
        parts = list(parts)
        self.random.shuffle(parts)
        return sum(parts, [])

    def of_family(self, chance):
        """A key of a family that has its own, or nothing."""
        if self.families and self.random.random() < chance:
            return self.random.choice(self.random.choice(self.families).keys())
        return None

    def key(self):
        """A key of any slot."""
        return self.of_family(0.2) or self.random.choice(self.keys)

    def near(self):
        """A key of the one slot that commands of several keys are about."""
        return self.of_family(0.2) or self.random.choice(self.tagged)

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

    def item(self):
        """An item of a collection: mostly few short ones that meet again, seldom one too long for small forms."""
        kind = self.random.random()
        if kind < 0.55:
            return self.any(*b"a b c d e f g h i j".split())
        if kind < 0.75:
            return b"%d" % self.random.randint(-3, 12)
        if kind < 0.97:
            return self.any(b"", b"\x00\xff\r\n", b"x" * 63, b"x" * 64, b"01", b"-0", b"9223372036854775807", b"3.5", b"abc")
        return self.any(b"y" * 65, b"z" * 300, bytes(range(256)))

    def glob(self):
        """A pattern."""
        return self.any(b"*", b"a*", b"[a-d]", b"?", b"[^a]", b"*\xff*", b"", b"\\a", b"*[")

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

    def until(self):
        """One option of an expiry, as SET and GETEX take it."""
        return self.any([b"EX", self.seconds()], [b"PX", self.milliseconds()], [b"EXAT", self.moment(1)],
                        [b"pxat", self.moment(1000)])
