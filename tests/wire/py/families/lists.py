"""Lists: both ends, places, searches, moves from list to list.

Left out: LPOS with the lowest of all ranks, which 7.2 refuses and 7.0 does not; timeouts that are too large, which 7.0
calls negative; a number of keys that makes keys of other words, since they are in other slots.
"""

from . import Family


class Lists(Family):
    NAME = "lists"
    WEIGHT = 40
    PREFIX = b"l"
    SHARES = ((20, "push"), (8, "pop"), (10, "read"), (5, "place"), (4, "insert"), (4, "remove"), (2, "trim"), (6, "search"),
              (6, "move"), (5, "several"), (1, "large"), (1, "long"), (3, "waits"))
    EXCHANGED = (b"list",)
    READS = {b"list": [[b"LRANGE", b"KEY", b"0", b"-1"], [b"LLEN", b"KEY"]]}

    def index(self):
        """Places, most of them near the ends."""
        if self.random.random() < 0.8:
            return b"%d" % self.random.randint(-8, 8)
        return self.any(self.words.offset, self.words.integer)()

    def side(self):
        """An end."""
        return self.any(b"LEFT", b"RIGHT", b"left", b"RIGHT", b"UP" if self.random.random() < 0.1 else b"LEFT")

    def push(self):
        """Items are pushed."""
        word = self.any(b"LPUSH", b"RPUSH", b"RPUSH", b"LPUSHX", b"RPUSHX")
        return [word, self.key()] + [self.words.item() for _ in range(self.random.randint(1, 5))]

    def pop(self):
        """Items are popped, with a count or without."""
        count = self.maybe(self.any(b"0", b"1", b"2", b"3", b"1000", b"-1", b"x", b"9223372036854775807", b"9223372036854775808"))
        return [self.any(b"LPOP", b"RPOP"), self.key()] + count

    def read(self):
        """Items are read by their places."""
        return self.any([b"LRANGE", self.key(), self.index(), self.index()], [b"LRANGE", self.key(), b"0", b"-1"],
                        [b"LINDEX", self.key(), self.index()], [b"LLEN", self.key()])

    def place(self):
        """An item is replaced."""
        return [b"LSET", self.key(), self.index(), self.words.item()]

    def insert(self):
        """An item is put beside another one."""
        return [b"LINSERT", self.key(), self.any(b"BEFORE", b"AFTER", b"after", b"BEFORE", b"NEAR"), self.words.item(), self.words.item()]

    def remove(self):
        """Equal items are removed."""
        return [b"LREM", self.key(), self.any(b"0", b"1", b"-1", b"2", b"-2", b"x", self.words.integer()), self.words.item()]

    def trim(self):
        """A range is kept."""
        return [b"LTRIM", self.key(), self.any(b"0", b"1", self.index()), self.any(b"-1", b"-2", b"5", self.index())]

    def search(self):
        """LPOS with all its options."""
        rank = self.any(b"1", b"2", b"-1", b"-2", b"0", b"x", self.words.integer())
        options = [self.maybe(b"RANK", b"1" if rank == b"-9223372036854775808" else rank),
                   self.maybe(b"COUNT", self.any(b"0", b"1", b"2", b"-1", b"x", b"1000")),
                   self.maybe(b"MAXLEN", self.any(b"0", b"1", b"5", b"-1", b"x", b"1000")), self.maybe(b"BAD", chance=0.03)]
        return [b"LPOS", self.key(), self.words.item()] + self.words.shuffled(*options)

    def move(self):
        """Items go from one list to another, or round in one."""
        return self.any([b"RPOPLPUSH", self.key(), self.key()], [b"LMOVE", self.key(), self.key(), self.side(), self.side()])

    def several(self):
        """LMPOP over several keys."""
        keys = [self.key() for _ in range(self.random.randint(1, 4))]
        count = self.any(b"%d" % len(keys), b"%d" % len(keys), b"%d" % len(keys), b"0", b"-1", b"x", b"99", b"1")
        tail = self.maybe(b"COUNT", self.any(b"1", b"2", b"1000", b"0", b"-1", b"x")) + self.maybe(b"COUNT", b"1", chance=0.03)
        return [b"LMPOP", count] + keys + [self.side()] + tail

    def large(self):
        """More items than a block has room for."""
        start = self.random.randrange(1000)
        return [self.any(b"LPUSH", b"RPUSH"), self.key()] + [b"item%d" % number for number in range(start, start + self.any(300, 1500))]

    def long(self):
        """An item longer than a block."""
        item = bytes([self.random.randrange(97, 105)]) * self.any(3000, 9000, 20000)
        key = self.key()
        return self.any([b"LPUSH", key, item], [b"RPUSH", key, item], [b"LSET", key, self.index(), item],
                        [b"LINSERT", key, b"BEFORE", self.words.item(), item])

    def waits(self):
        """Commands that may wait, a moment: nobody else pushes anything meanwhile."""
        time = self.any(b"0.01", b"0.01", b"0.001", b"1e-2", b"-1", b"x", b"")
        keys = [self.key() for _ in range(self.random.randint(1, 3))]
        return self.any(
            [b"BLPOP"] + keys + [time], [b"BRPOP"] + keys + [time], [b"BRPOPLPUSH", self.key(), self.key(), time],
            [b"BLMOVE", self.key(), self.key(), self.side(), self.side(), time],
            [b"BLMPOP", time, b"%d" % len(keys)] + keys + [self.side()] + self.maybe(b"COUNT", self.any(b"2", b"0")),
        )

    def is_allowed(self, command):
        """A word too many makes a key of the timeout."""
        return command[0].upper() not in (b"BLPOP", b"BRPOP") or all(b"{d}" in key for key in command[1:-1])
