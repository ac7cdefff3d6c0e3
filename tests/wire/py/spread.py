"""Three nodes that become four and three again, while commands are compared with Redis (`differential.py --cluster`).

For: keys in many slots, a node that joins, one that is drained, and in the end every copy of every key at every holder.
Not here: commands and how replies are compared (`families`), the single node (`differential.py`).
"""

import os
import shutil
import tempfile
import threading
import time

import build
from local import Cluster

TAGS = 16  # hash tags, so slots, among which the keys of each command are put as one
READY_SECONDS = 60
# What a copy that was brought up by its content need not share with one that came to it step by step.
LAID_OUT_ANEW = ("OBJECT ENCODING", "OBJECT FREQ")


def placed(commands, random):
    """Commands that belong together, with their keys in one slot of many."""
    tag = b"{d%d}" % random.randrange(TAGS)
    return [[word.replace(b"{d}", tag) for word in command] for command in commands]


class Moving:
    """The cluster, and what an operator does to it meanwhile."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="korum-spread-")
        self.cluster = Cluster(self.directory)
        self.cluster.binary = build.node_binary(release=os.environ.get("KORUM_TEST_PROFILE") == "release")
        self.operator = None
        self.trouble = None
        self.joined_at = self.drained_at = None

    def start(self):
        """Three nodes; the address of the one that is asked, which stays."""
        self.cluster.start(3)
        self.cluster.wait_ready(READY_SECONDS, expected=3)
        self.first, self.asked = self.cluster.nodes[:2]
        return "127.0.0.1", self.asked.port

    def step(self, share):
        """Something moves when its time has come: `share` of all commands is done."""
        if self.joined_at is None and share >= 0.2:
            self.cluster.launch(self.cluster.new_node(), [self.first])
            self.joined_at = share
        elif self.drained_at is None and share >= 0.5 and self.cluster.unready(expected=4) is None:
            self.drained_at = share
            self.operator = threading.Thread(target=self._drain)
            self.operator.start()

    def _drain(self):
        try:
            self.cluster.drain(self.first)
        except Exception as error:  # told by `finish`
            self.trouble = error

    def finish(self):
        """Waits until both have happened and nothing moves any more; how long that took."""
        begin = time.monotonic()
        self.step(1.0)
        if self.drained_at is None:
            self.cluster.wait_ready(READY_SECONDS, expected=4)
            self.step(1.0)
        self.operator.join()
        if self.trouble:
            raise self.trouble
        self.cluster.wait_ready(READY_SECONDS, expected=3)
        return time.monotonic() - begin

    def copies(self):
        """How many copies a key has, and the address of each node's cluster port."""
        nodes = self.cluster.running()
        wanted = min(self.asked.status()["replication"], len(nodes))
        return wanted, {node.number: ("127.0.0.1", node.cluster_port) for node in nodes}

    def stop(self):
        """Ends all nodes; their files go too, unless KORUM_TEST_KEEP is set."""
        if self.operator:
            self.operator.join()
        self.cluster.stop()
        if os.environ.get("KORUM_TEST_KEEP"):
            print(f"kept: {self.directory}")
        else:
            shutil.rmtree(self.directory, ignore_errors=True)


def compare_copies(comparison, connect, moving):
    """Every key of Redis at every holder: type, value, deadline; returns {node: keys}. Clients are silent."""
    wanted, addresses = moving.copies()
    holders = {number: connect(address) for number, address in addresses.items()}
    for holder in holders.values():
        if comparison.hello:
            holder.batch([[b"HELLO", comparison.hello]])
        holder.batch([[b"READONLY"]])
    counts = dict.fromkeys(holders, 0)
    for key in comparison.all_keys():
        name = comparison.servers[0].batch([[b"TYPE", key]])[0][1:-2]
        reading = [[b"TYPE", key], [b"PEXPIRETIME", key]] + comparison.rules.reading(name, key)
        expected = comparison.servers[0].batch(reading)
        copies = 0
        for number, holder in holders.items():
            found = holder.batch(reading)
            if found[0].startswith(b"-MOVED"):
                continue
            copies += 1
            counts[number] += 1
            for command, left, right in zip(reading, expected, found):
                if not comparison.rules.same(command, left, right):
                    comparison.difference(command + [b"(at node %d)" % number], left, right)
        if copies != wanted:
            comparison.difference([b"(copies of)", key], b":%d\r\n" % wanted, b":%d\r\n" % copies)
    return counts
