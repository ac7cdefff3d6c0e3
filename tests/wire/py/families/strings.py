"""Strings: options of SET and GETEX, numbers, ranges, LCS."""

from . import Family


class Strings(Family):
    NAME = "strings"
    WEIGHT = 60
    SHARES = ((18, "set"), (6, "getex"), (3, "lcs"), (3, "lcs_set"), (7, "many"), (8, "simple"), (20, "valued"))
    EXCHANGED = (b"string",)
    READS = {b"string": [[b"GET", b"KEY"]]}

    def key(self):
        return self.words.key()

    def set(self):
        """SET with all its options."""
        until = self.words.until() if self.random.random() < 0.4 else []
        options = [self.maybe(self.any(b"NX", b"XX", b"nx")), self.maybe(b"GET"), self.maybe(b"KEEPTTL", chance=0.1), until]
        return [b"SET", self.key(), self.words.value()] + self.words.shuffled(*options)

    def getex(self):
        """GETEX with all its options."""
        return [b"GETEX", self.key()] + self.any([], [b"PERSIST"], self.words.until(), self.words.until())

    def lcs(self):
        """LCS on short values."""
        options = [self.maybe(b"LEN"), self.maybe(b"IDX"), self.maybe(b"MINMATCHLEN", self.any(b"1", b"2", b"4", b"-1", b"x")),
                   self.maybe(b"WITHMATCHLEN")]
        return [b"LCS", b"{d}l1", b"{d}l2"] + self.words.shuffled(*options)

    def lcs_set(self):
        """The values that LCS reads."""
        return [b"SET", self.any(b"{d}l1", b"{d}l2"), bytes(self.random.choice(b"abcd") for _ in range(self.random.randrange(40)))]

    def many(self):
        """MGET, MSET and kin over keys of one slot or of many."""
        word = self.any(b"MGET", b"MSET", b"MSETNX")
        key = self.words.near if word == b"MSETNX" else self.key
        words = [word]
        for _ in range(self.random.randint(1, 5)):
            words += [key()] + ([self.words.value()] if word.startswith(b"MSET") else [])
        return words

    def is_allowed(self, command):
        return command[0].upper() != b"MSETNX" or len(command) % 2 == 1  # keys must stay in one slot

    def simple(self):
        """Commands about one key without options."""
        return [self.any(b"GET", b"GETDEL", b"STRLEN", b"INCR", b"DECR", b"GET"), self.key()]

    def valued(self):
        """Commands about one key and something more."""
        key, words = self.key(), self.words
        return self.any(
            [b"SETNX", key, words.value()], [b"GETSET", key, words.value()], [b"APPEND", key, words.value()],
            [b"SETEX", key, words.seconds(), words.value()], [b"PSETEX", key, words.milliseconds(), words.value()],
            [b"INCRBY", key, words.integer()], [b"DECRBY", key, words.integer()],
            [b"INCRBYFLOAT", key, words.float()], [b"GETRANGE", key, words.offset(), words.offset()],
            [b"SUBSTR", key, words.offset(), words.offset()],
            [b"SETRANGE", key, self.any(b"0", b"1", b"5", b"100", b"-1", b"x", b"536870912", b"9223372036854775807"),
             self.any(b"", b"x", b"hello\x00")],
        )
