"""Streams: entries with explicit ids, trimming, groups, what is pending, what XINFO tells.

Not here: `*` (its ids are the servers' clocks) and BLOCK that waits.
Listed differences, most of Redis 7.0 against 7.2, which Korum follows:
  XINFO CONSUMERS and FULL tell when a consumer was active: `masked` leaves that out;
  RESTORE puts blocks together anew, so that the nodes of the radix tree are others (`masked` too);
  XSETID refuses an id below that of a deleted entry: none is given;
  XREADGROUP, XCLAIM and XAUTOCLAIM create their consumer even if it gets nothing: it is created before.
"""

from . import Family, rules

LONG_AGO = 1_000_000_000_000  # ms: times before this were given by a command, later ones are the present
LEFT_OUT = (b"inactive", b"active-time", b"radix-tree-keys", b"radix-tree-nodes")
OF_THE_MOMENT = (b"idle", b"seen-time")


def _time(number):
    """A time or a span of time: which of the two kinds it is."""
    return b"long" if int(number) > 1_000_000_000 and int(number) < LONG_AGO else b"moment"


def _masked(reply):
    kind, content = reply
    if not isinstance(content, list):
        return reply
    items, index = [], 0
    while index < len(content):
        word = content[index][1]
        if word in LEFT_OUT and index + 1 < len(content):
            index += 2
            continue
        items.append(_masked(content[index]))
        index += 1
        if word in OF_THE_MOMENT and index < len(content) and content[index][0] == b":":
            items.append((b":", b"moment"))
            index += 1
    kinds = b"".join(item[0] for item in items)
    if kinds == b"$$::":  # id, consumer, idle or time, count
        items[2] = (b":", _span(items[2][1]))
    elif kinds == b"$::" and b"-" in items[0][1]:  # id, time, count
        items[1] = (b":", _span(items[1][1]))
    return (kind, items)


def _span(number):
    """Idle times are short or as long as the present time, times are near the present or given: told apart roughly."""
    number = int(number)
    return b"%d" % number if 1_000_000 < number < 1_000_000_000 else b"long" if number > 1_000_000_000 else b"short"


def masked(left, right):
    """The same but for times of the present, and for what Redis 7.0 does not tell."""
    return left == right or _masked(left) == _masked(right)


class Streams(Family):
    NAME = "streams"
    WEIGHT = 40
    PREFIX = b"x"
    SHARES = ((20, "add"), (3, "many"), (10, "range"), (6, "read"), (5, "delete"), (4, "trim"), (2, "set_id"), (6, "group"),
              (16, "read_group"), (7, "acknowledge"), (6, "pending"), (7, "claim"), (5, "auto_claim"), (7, "info"), (1, "drop"))
    RULES = {"XPENDING": masked, "XINFO CONSUMERS": masked, "XINFO STREAM": masked}
    EXCHANGED = (b"stream",)
    FLEETING = (b"stream",)  # `~` trims whole blocks, and a stream that was restored has others
    READS = {b"stream": [[b"XRANGE", b"KEY", b"-", b"+"], [b"XINFO", b"STREAM", b"KEY", b"FULL", b"COUNT", b"0"], [b"XLEN", b"KEY"]]}

    def __init__(self, words):
        super().__init__(words)
        self.clock = 10
        self.added = [b"1-0"]
        self.current = self.keys()[0]

    def key(self):
        """Mostly the key of the command before, so that something comes together there."""
        if self.random.random() < 0.04:
            self.current = super().key()
        return self.current

    def next_id(self):
        """An id for a new entry, mostly greater than all before."""
        self.clock += self.random.randint(0, 2)
        if self.random.random() < 0.06:
            return self.id()
        if self.random.random() < 0.2:
            return self.any(b"%d" % self.clock, b"%d-*" % self.clock)
        self.added.append(b"%d-%d" % (self.clock, self.random.randint(0, 3)))
        return self.added[-1]

    def id(self):
        """An id that may be there, or is none."""
        if self.random.random() < 0.8:
            return self.any(*self.added[-self.any(4, 20, 300):])
        if self.random.random() < 0.7:
            ms = max(0, self.clock - self.random.randint(0, self.any(10, 60, 300)))
            return self.any(b"%d" % ms, b"%d-%d" % (ms, self.random.randint(0, 3)), b"%d-0" % ms)
        return self.any(b"0", b"0-0", b"0-1", b"x", b"", b"-", b"+", b"1-", b"1-x", b"-1", b"1--1", b"1--01", b"007-01", b" 1-2", b"1-2-3",
                        b"18446744073709551615", b"18446744073709551615-18446744073709551615", b"18446744073709551616", b"*", b"$", b">",
                        b"(1", b"9223372036854775808-1", b"1" * 130)

    def some_ids(self):
        """A few ids, most of them good."""
        return [self.id() for _ in range(self.random.randint(1, 8))]

    def pairs(self, most=3):
        """Fields with values; the same names again and again."""
        names = self.any([b"f"], [b"f"], [b"f", b"g"], [self.words.item() for _ in range(self.random.randint(1, most))])
        return sum(([name, self.any(self.words.item, self.words.item, self.words.value)()] for name in names), [])

    def trimming(self):
        """Options of XTRIM and XADD."""
        sign = self.any([], [b"="], [b"~"], [b"~"])
        if self.random.random() < 0.6:
            words = [self.any(b"MAXLEN", b"maxlen")] + sign + [self.any(b"0", b"1", b"10", b"50", b"100", b"150", b"200", b"-1", b"x", b"1000")]
        else:
            words = [b"MINID"] + sign + [self.id()]
        if self.random.random() < (0.3 if sign == [b"~"] else 0.03):
            words += [b"LIMIT", self.any(b"0", b"1", b"99", b"100", b"150", b"1000", b"-1", b"x")]
        return words + self.maybe(b"MAXLEN", b"5", chance=0.03)

    def add(self):
        """An entry is added."""
        words = [b"XADD", self.key()] + self.maybe(b"NOMKSTREAM", chance=0.1)
        if self.random.random() < 0.04:
            words += self.trimming()
        return words + [self.next_id()] + self.pairs()

    def many(self):
        """Enough entries to fill blocks."""
        key = self.key()
        size = self.any(1, 1, 30, 100, 1000)
        return [[b"XADD", key, self.tick(), b"f", b"v" * size] for _ in range(self.any(20, 60, 120))]

    def tick(self):
        self.clock += 1
        self.added.append(b"%d-0" % self.clock)
        return self.added[-1]

    def interval(self):
        """Two ids, mostly all that is there."""
        def end(word):
            return self.any(word, word, self.id(), b"(" + self.id())
        return [end(b"-"), end(b"+")]

    def count(self):
        return self.maybe(b"COUNT", self.any(b"0", b"1", b"2", b"10", b"-1", b"x", b"9223372036854775807"), chance=0.5)

    def range(self):
        """Entries between two ids."""
        start, end = self.interval()
        words = self.any([b"XRANGE", self.key(), start, end], [b"XREVRANGE", self.key(), end, start], [b"XRANGE", self.key(), b"-", b"+"],
                         [b"XLEN", self.key()])
        return words + (self.count() if len(words) > 2 else [])

    def listed(self, special):
        """Keys and as many ids."""
        number = self.any(1, 1, 1, 1, 1, 2, 3)
        words = [self.any(b"STREAMS", b"streams")] + [self.key() for _ in range(number)]
        return words + [self.any(special, special, b"0", self.id()) for _ in range(number)]

    def read(self):
        """Entries behind ids."""
        return [b"XREAD"] + self.count() + self.maybe(self.any(b"NOACK", b"BAD"), chance=0.02) + self.maybe(
            b"BLOCK", self.any(b"x", b"-1", b""), chance=0.02) + self.listed(self.any(b"0", b"$", b"0-0", b"0"))

    def delete(self):
        """Entries are deleted."""
        return [b"XDEL", self.key()] + self.some_ids()

    def trim(self):
        """Old entries are removed."""
        return [b"XTRIM", self.key()] + self.trimming()

    def set_id(self):
        """A stream's accounts are set."""
        options = self.maybe(b"ENTRIESADDED", self.any(b"0", b"100", b"1000000", b"-1", b"x")) + self.maybe(b"MAXDELETEDID", self.id())
        return [b"XSETID", self.key(), self.any(*[b"%d-5" % self.clock] * 20, b"x", b"", b"-", b"18446744073709551615-1")] + options

    def group_name(self):
        return self.any(*[b"g"] * 8, b"h", b"h", b"nobody")

    def consumer(self):
        return self.any(b"a", b"a", b"b", b"c", b"\xc3\xa4")

    def group(self):
        """Groups and consumers come and go."""
        key, name = self.key(), self.group_name()
        read = self.maybe(b"ENTRIESREAD", self.any(b"-1", b"0", b"5", b"1000", b"-2", b"x"), chance=0.3)
        start = self.any(b"0", b"$", self.id())
        return self.any(
            [b"XGROUP", b"CREATE", key, name, start] + self.maybe(b"MKSTREAM") + read, [b"XGROUP", b"CREATE", key, name, start],
            [b"XGROUP", b"CREATE", key, b"g", b"0", b"MKSTREAM"], [b"XGROUP", b"CREATE", key, b"g", b"0", b"MKSTREAM"],
            [b"XGROUP", b"SETID", key, name, start] + read, [b"XGROUP", b"CREATECONSUMER", key, name, self.consumer()],
            [b"XGROUP", self.any(b"DESTROY", b"DELCONSUMER", b"CREATE", b"BAD", b"HELP"), key, name] + self.any([], [b"c"], [b"0", b"BAD"]),
            [b"XGROUP", b"DELCONSUMER", key, name, self.consumer()],
        )

    def read_group(self):
        """Entries for a consumer: new ones, or again."""
        name, consumer = self.group_name(), self.consumer()
        options = [self.count(), self.maybe(b"NOACK", chance=0.15), [b"GROUP", name, consumer]]
        listed = self.listed(self.any(b">", b">", b">", b"0", self.id()))
        before = [self.create(key, name, consumer) for key in listed[1 : 1 + len(listed) // 2]]
        return [self.create(listed[1], name, consumer)] + before + [[b"XREADGROUP"] + self.words.shuffled(*options) + listed]

    def create(self, key, group, consumer):
        """A consumer comes to be. It is asked twice, since an argument of the first of several commands may be lost."""
        return [b"XGROUP", b"CREATECONSUMER", key, group, consumer]

    def acknowledge(self):
        """Entries are acknowledged."""
        return [b"XACK", self.key(), self.group_name()] + self.some_ids()

    def pending(self):
        """What is pending."""
        words = [b"XPENDING", self.key(), self.group_name()]
        if self.random.random() < 0.4:
            return words
        idle = self.maybe(b"IDLE", self.any(b"0", b"500000000", b"-1", b"x"))
        return words + idle + self.interval() + [self.any(b"0", b"2", b"100", b"-1", b"x")] + self.maybe(self.consumer())

    def idle(self):
        """Least idle times: anything, or what was delivered long ago only."""
        return self.any(b"0", b"0", b"-1", b"5000000", b"x")

    def after_consumer(self, words):
        """The consumer is there before; a command with too few arguments has none."""
        return [self.create(*words[1:4]), self.create(*words[1:4]), words]

    def claim(self):
        """Entries change hands."""
        options = [self.maybe(b"FORCE"), self.maybe(b"JUSTID"), self.maybe(b"RETRYCOUNT", self.any(b"0", b"7", b"-1", b"x")),
                   self.maybe(self.any(b"IDLE", b"TIME"), self.any(b"20000000", b"-5", b"x"), chance=0.2), self.maybe(b"BAD", chance=0.02),
                   self.maybe(b"LASTID", self.id(), chance=0.1)]
        words = [b"XCLAIM", self.key(), self.group_name(), self.consumer(), self.idle()] + self.some_ids()
        return self.after_consumer(words + self.words.shuffled(*options))

    def auto_claim(self):
        """Entries change hands, as they come."""
        start = self.any(b"0", b"-", self.id(), b"(" + self.id())
        options = [self.maybe(b"COUNT", self.any(b"1", b"3", b"100", b"0", b"x", b"-1"), chance=0.5), self.maybe(b"JUSTID"), self.maybe(b"BAD", chance=0.02)]
        words = [b"XAUTOCLAIM", self.key(), self.group_name(), self.consumer(), self.idle(), start]
        return self.after_consumer(words + self.words.shuffled(*options))

    def info(self):
        """What is told of a stream."""
        key = self.key()
        full = self.any([], [b"FULL"], [b"FULL", b"COUNT", self.any(b"0", b"1", b"3", b"-1", b"x")], [b"BAD"])
        return self.any([b"XINFO", b"STREAM", key] + full, [b"XINFO", b"GROUPS", key], [b"XINFO", b"GROUPS", key],
                        [b"XINFO", b"CONSUMERS", key, self.group_name()], [b"XINFO", self.any(b"HELP", b"BAD")])

    def drop(self):
        """A stream is gone."""
        return [b"DEL", self.key()]

    def is_allowed(self, command):
        """Nothing that waits, and no ids by the clock."""
        words = [word.upper() for word in command]
        if words[0] == b"XADD" and b"*" in words[2:6]:
            return False
        return words[0] not in (b"XREAD", b"XREADGROUP") or b"BLOCK" not in words or words[words.index(b"BLOCK") + 1 :][:1] in ([b"X"], [b"-1"], [b""])
