"""Writers that remember every acknowledged write, to be checked afterwards.

For: the demo and the Python tests. Not here: what happens to the nodes meanwhile.

What may be read of a key afterwards: the last acknowledged value, or one whose outcome is unknown (it may take effect
at any time after it was sent). Anything else is a lost write.
"""

import threading
import time

from resp import Connection, Disconnected, ReplyError


class Writer(threading.Thread):
    """Sets keys of its own, one write at a time, through whichever of the ports answers."""

    def __init__(self, name, ports, keys=2_000):
        super().__init__(daemon=True, name=f"writer {name}")
        self.prefix = f"writer:{name}:"
        self.ports = ports
        self.keys = keys
        self.acknowledged = {}  # key -> number of the last acknowledged write
        self.unknown = {}  # key -> numbers whose outcome is unknown
        self.times = []  # when each acknowledgement came, monotonic seconds
        self.errors = []  # error replies
        self.lost_connections = 0
        self.stopping = threading.Event()

    def run(self):
        connection = None
        turn = number = 0
        while not self.stopping.is_set():
            number += 1
            key = f"{self.prefix}{number % self.keys}"
            try:
                if connection is None:
                    connection = Connection(self.ports[turn % len(self.ports)], timeout=5.0)
                self.unknown.setdefault(key, []).append(number)
                connection.call("SET", key, number)
                self.acknowledged[key] = number
                self.unknown[key].remove(number)  # others of this key may still take effect
                self.times.append(time.monotonic())
            except ReplyError as error:
                self.errors.append(str(error))
                time.sleep(0.005)
            except Disconnected:
                self.lost_connections += 1
                if connection:
                    connection.close()
                connection = None
                turn += 1
                time.sleep(0.005)
        if connection:
            connection.close()

    def stop(self):
        """End after the write at hand."""
        self.stopping.set()
        self.join(timeout=15)

    def gap(self, after, until=None):
        """The longest time in seconds without an acknowledgement, looking from the last one before `after`."""
        times = [moment for moment in self.times if until is None or moment <= until]
        later = [moment for moment in times if moment > after]
        before = [moment for moment in times if moment <= after][-1:] or [after]
        points = before + later + ([until] if until else [])
        return max((second - first for first, second in zip(points, points[1:])), default=float("inf"))

    def lost(self, port):
        """Keys whose acknowledged write cannot be read at this port, with what is there instead."""
        losses = []
        with Connection(port, timeout=20.0) as connection:
            items = list(self.acknowledged.items())
            for start in range(0, len(items), 500):
                part = items[start : start + 500]
                for (key, number), found in zip(part, connection.pipeline([("GET", key) for key, _ in part])):
                    allowed = {b"%d" % n for n in [number, *self.unknown.get(key, [])]}
                    if found not in allowed:
                        losses.append((key, number, found))
        return losses


def run_writers(count, ports, keys=2_000, name=""):
    """Start `count` writers; each begins at another port. Several groups on one cluster need several names."""
    writers = [Writer(f"{name}{i}", ports[i % len(ports) :] + ports[: i % len(ports)], keys) for i in range(count)]
    for writer in writers:
        writer.start()
    return writers
