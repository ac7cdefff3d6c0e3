"""HyperLogLogs: counts, merges, and their bytes, which must be those of Redis."""

from . import Family


class HyperLogLogs(Family):
    NAME = "hyperloglogs"
    WEIGHT = 10
    PREFIX = b"p"
    SHARES = ((14, "add"), (2, "add_many"), (8, "count"), (6, "merge"), (3, "debug"), (4, "bytes"))

    def element(self):
        """An element."""
        return self.any(self.words.item(), b"%d" % self.random.randint(0, 100_000), self.random.randbytes(self.random.randint(0, 20)))

    def add(self):
        """A few elements."""
        return [b"PFADD", self.key()] + [self.element() for _ in range(self.random.randint(0, 4))]

    def add_many(self):
        """So many that small forms are too small."""
        return [b"PFADD", self.key()] + [self.element() for _ in range(self.any(100, 300, 1500))]

    def count(self):
        """The count of one or of several."""
        return [b"PFCOUNT"] + [self.key() for _ in range(self.any(1, 1, 2, 3))]

    def merge(self):
        """A merge."""
        return [b"PFMERGE"] + [self.key() for _ in range(self.random.randint(1, 4))]

    def debug(self):
        """How one is kept."""
        return [b"PFDEBUG", self.any(b"ENCODING", b"ENCODING", b"DECODE", b"GETREG", b"TODENSE", b"BAD"), self.key()]

    def bytes(self):
        """The string that it is, whole or damaged."""
        return self.any([b"GET", self.key()], [b"GET", self.key()], [b"OBJECT", b"ENCODING", self.key()], [b"DEL", self.key()],
                        [b"PEXPIRE", self.key(), self.words.never_twice(1000)(500000)],
                        [b"SETRANGE", self.key(), self.any(b"16", b"17", b"30"), self.any(b"\x01", b"\x84", b"\x7f\xff")],
                        [b"SET", self.key(), self.any(b"text", b"HYLL", b"HYLL\x01" + bytes(11), b"HYLL\x00" + bytes(11), b"HYLL\x02" + bytes(15))])
