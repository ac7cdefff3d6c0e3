"""Strings as bits: single ones, ranges, combined strings, integers of any width."""

from . import Family


class Bitmaps(Family):
    NAME = "bitmaps"
    WEIGHT = 20
    PREFIX = b"b"
    SHARES = ((14, "bit"), (10, "count"), (10, "find"), (6, "combine"), (14, "field"), (3, "string"))

    def at(self):
        """An offset in bits."""
        near = b"%d" % self.random.randint(0, 200)
        return self.any(near, near, near, b"0", b"7", b"8", b"1000", b"-1", b"x", b"4294967295", b"4294967296", b"#1", b"01", b"") \
            if self.random.random() < 0.4 else near

    def index(self):
        """One end of a range."""
        return self.any(b"0", b"1", b"-1", b"2", b"-2", b"5", b"9", b"-20", b"100", b"-100", b"x", b"9223372036854775807",
                        b"-9223372036854775808", b"%d" % self.random.randint(-90, 90))

    def unit(self):
        """What a range counts in."""
        return self.any([], [b"BIT"], [b"byte"], [b"BYTE"], [b"bit"], [b"BAD"])

    def bit(self):
        """A single bit. Bits far away are only read: half a gigabyte is for another test."""
        if self.random.random() < 0.6:
            at = self.at()
            return [b"SETBIT", self.key(), b"1001" if at == b"4294967295" else at, self.any(b"0", b"1", b"1", b"2", b"x")]
        return [b"GETBIT", self.key(), self.at()]

    def count(self):
        """BITCOUNT with its options."""
        return [b"BITCOUNT", self.key()] + self.any([], [self.index(), self.index()] + self.unit(), [self.index()])

    def find(self):
        """BITPOS with its options."""
        range_ = self.any([], [self.index()], [self.index(), self.index()], [self.index(), self.index()] + self.unit())
        return [b"BITPOS", self.key(), self.any(b"0", b"1", b"0", b"1", b"2", b"x")] + range_

    def combine(self):
        """BITOP."""
        word = self.any(b"AND", b"or", b"XOR", b"NOT", b"BAD")
        sources = [self.key() for _ in range(1 if word == b"NOT" and self.random.random() < 0.8 else self.random.randint(1, 4))]
        return [b"BITOP", word, self.key()] + sources

    def kind(self):
        """A type of integer."""
        if self.random.random() < 0.9:
            return self.any(b"u", b"i") + b"%d" % self.random.randint(1, 63)
        return self.any(b"i64", b"u64", b"u0", b"x8", b"i65", b"", b"u", b"U8")

    def place(self):
        """Where an integer stands."""
        return self.any(b"%d" % self.random.randint(0, 150), b"#%d" % self.random.randint(0, 6), b"-1", b"#x", b"#-1", b"x")

    def field(self):
        """BITFIELD with several steps."""
        steps = []
        for _ in range(self.random.randint(0, 4)):
            number = self.any(self.words.integer(), b"%d" % self.random.randint(-300, 300))
            steps += self.any([b"GET", self.kind(), self.place()], [b"SET", self.kind(), self.place(), number],
                              [b"INCRBY", self.kind(), self.place(), number], [b"incrby", self.kind(), self.place(), number],
                              [b"OVERFLOW", self.any(b"WRAP", b"SAT", b"FAIL", b"sat", b"BAD")])
        return [self.any(b"BITFIELD", b"BITFIELD", b"BITFIELD_RO"), self.key()] + steps

    def string(self):
        """A string to begin with."""
        return self.any([b"SET", self.key(), bytes(self.random.choice(b"\x00\x00\xff\xff\x0f\xa5") for _ in range(self.random.randint(0, 40)))],
                        [b"SET", self.key(), b"12345"], [b"DEL", self.key()], [b"OBJECT", b"ENCODING", self.key()], [b"STRLEN", self.key()])
