"""Places on earth: positions, distances, areas.

Left out are distances of more than half the way round, and middles of searches at the northern and southern edges of the
map: the boxes in which Redis looks are wrong beyond a pole, and which places it misses there is not Korum's.
"""

from . import Family, rules


class Geo(Family):
    NAME = "geo"
    WEIGHT = 30
    PREFIX = b"g"
    SHARES = ((16, "add"), (6, "distance"), (5, "tell"), (12, "radius"), (10, "by_member"), (16, "search"), (6, "store"),
              (3, "remove"), (3, "raw"))
    READS = {}

    def place(self):
        """A name."""
        return b"p%d" % self.random.randrange(60) if self.random.random() < 0.97 else self.words.item()

    def longitude(self):
        """Degrees to the east: most near two places, some anywhere, few nowhere."""
        kind = self.random.random()
        if kind < 0.6:
            return b"%.6f" % (self.any(13.4, -122.3) + self.random.uniform(-2, 2))
        if kind < 0.95:
            return b"%.5f" % self.random.uniform(-180, 180)
        return self.any(b"0", b"180", b"-180", b"180.1", b"x", b"inf", b"nan", b"")

    def latitude(self, edges=(b"85.05112878", b"-85.05112878")):
        """Degrees to the north."""
        kind = self.random.random()
        if kind < 0.6:
            return b"%.6f" % (self.any(52.5, 37.7) + self.random.uniform(-2, 2))
        if kind < 0.95:
            return b"%.5f" % self.random.uniform(-70, 70)
        return self.any(b"0", *edges, b"85.06", b"x", b"-inf", b"")

    def unit(self):
        """A unit."""
        return self.any(b"m", b"km", b"KM", b"mi", b"ft") if self.random.random() < 0.95 else self.any(b"yd", b"")

    def size(self):
        """How far."""
        return self.any(b"0", b"1", b"10", b"100.5", b"300", b"1000", b"5000", b"-1", b"x", b"9e3", b"%d" % self.random.randint(1, 3000))

    def add(self):
        """Places come, or move."""
        options = self.words.shuffled(self.maybe(self.any(b"NX", b"XX"), chance=0.2), self.maybe(b"CH"), self.maybe(b"BAD", chance=0.02))
        places = sum(([self.longitude(), self.latitude(), self.place()] for _ in range(self.any(1, 2, 5))), [])
        return [b"GEOADD", self.key()] + options + places

    def raw(self):
        """Scores that were not made of places; none that is negative or beyond 2^63: what a cast makes of them in Redis is
        the compiler's choice."""
        return [b"ZADD", self.key(), self.any(b"0", b"1.5", b"1e15", b"4503599627370495", b"9e18"), self.place()]

    def remove(self):
        """Places go."""
        return [b"ZREM", self.key()] + [self.place() for _ in range(3)]

    def distance(self):
        """Between two places."""
        return [b"GEODIST", self.key(), self.place(), self.place()] + self.maybe(self.unit())

    def tell(self):
        """Where places are."""
        return [self.any(b"GEOPOS", b"GEOHASH"), self.key()] + [self.place() for _ in range(self.random.randint(1, 4))]

    def options(self):
        """What is told, and in which order. A number without an order sorts; places of equal distance are left out."""
        return self.words.shuffled(
            self.maybe(b"WITHDIST"), self.maybe(b"WITHCOORD"), self.maybe(b"WITHHASH"), self.maybe(self.any(b"ASC", b"DESC")),
            self.any([], [], [b"COUNT", self.any(b"1", b"3", b"100", b"0", b"-1", b"x")], [b"COUNT", self.any(b"1", b"5"), b"ANY"], [b"ANY"]),
            self.maybe(b"BAD", chance=0.02))

    def target(self):
        """Where GEORADIUS stores."""
        return self.maybe(self.any(b"STORE", b"STOREDIST"), self.key(), chance=0.15)

    def radius(self):
        """Around a position."""
        word = self.any(b"GEORADIUS", b"GEORADIUS_RO")
        return [word, self.key(), self.longitude(), self.latitude(edges=()), self.size(), self.unit()] + self.options() + (
            self.target() if word == b"GEORADIUS" else self.maybe(b"STORE", self.key(), chance=0.03))

    def by_member(self):
        """Around a place."""
        word = self.any(b"GEORADIUSBYMEMBER", b"GEORADIUSBYMEMBER_RO")
        return [word, self.key(), self.place(), self.size(), self.unit()] + self.options() + (
            self.target() if word == b"GEORADIUSBYMEMBER" else [])

    def area(self):
        """The options that say where, mostly one of each kind."""
        center = self.any([b"FROMMEMBER", self.place()], [b"FROMLONLAT", self.longitude(), self.latitude(edges=())])
        shape = self.any([b"BYRADIUS", self.size(), self.unit()], [b"BYBOX", self.size(), self.size(), self.unit()])
        more = self.maybe(*self.any([b"FROMLONLAT", b"1", b"1"], [b"BYBOX", b"1", b"1", b"m"], [b"FROMMEMBER", self.place()]), chance=0.05)
        return self.words.shuffled(center if self.random.random() < 0.97 else [], shape if self.random.random() < 0.97 else [], more)

    def search(self):
        """In an area."""
        return [b"GEOSEARCH", self.key()] + self.words.shuffled(self.area(), self.options())

    def store(self):
        """What is in an area is stored."""
        return [b"GEOSEARCHSTORE", self.key(), self.key()] + self.words.shuffled(self.area(), self.options(), self.maybe(b"STOREDIST"))
