"""The demonstration: real keys, a killed primary, a node added, and the proof that nothing was lost.

For: `scripts/cluster demo`. Every step says what it does and what came out; the end is a summary.
Not here: how nodes are started (local.py), how writes are remembered (writer.py).
"""

import signal
import sys
import time

import process
import words
import writer
from resp import Connection, ReplyError, slot_of

KEYS = 100_000
WRITERS = 4


class Paper:
    """Prints; in colour only on a terminal."""

    def __init__(self):
        self.colour = sys.stdout.isatty()
        self.begin = time.monotonic()

    def _paint(self, code, text):
        return f"\033[{code}m{text}\033[0m" if self.colour else text

    def title(self, text):
        """A step begins."""
        print(f"\n{self._paint('1;36', f'[{time.monotonic() - self.begin:5.1f} s] {text}')}", flush=True)

    def line(self, text=""):
        """What came out."""
        for part in str(text).splitlines() or [""]:
            print("   ", part, flush=True)

    def verdict(self, good, text):
        """Something that must hold."""
        print("   ", self._paint("32", "ok  ") if good else self._paint("1;31", "FAIL"), text, flush=True)
        return good


def run(cluster, paper):
    """The whole demonstration on an empty cluster directory; True when everything held."""
    good = True
    keys = words.keys(KEYS)

    paper.title("Start three nodes, two copies of everything")
    cluster.start(3)
    took = cluster.wait_ready(30, expected=3)
    paper.line(f"ready {took:.1f} s after the last process was started; ports: "
               + ", ".join(f"node {node.number} {node.port}" for node in cluster.nodes))

    paper.title(f"Load {len(keys):,} keys through one connection to node 1 (any node takes any key)")
    begin = time.monotonic()
    good &= paper.verdict(load(cluster.nodes[0].port, keys) == len(keys), "every write was acknowledged")
    seconds = time.monotonic() - begin
    paper.line(f"{seconds:.1f} s, {len(keys) / seconds:,.0f} writes per second, each on two nodes when acknowledged")
    for node in cluster.nodes:
        paper.line(f"node {node.number}: primary of {node.call_cluster_port('DBSIZE'):,} keys; "
                   f"asked as one Redis it says {node.call('DBSIZE'):,}")

    paper.title("Where some of them live, and why (KORUM EXPLAIN key)")
    for key in keys[:: len(keys) // 3][:3]:
        paper.line(text_of(cluster.nodes[1].call("KORUM", "EXPLAIN", key)))
        paper.line()

    victim = primary_of(cluster, keys[0])
    others = [node for node in cluster.nodes if node is not victim]
    paper.title(f"{WRITERS} writers at full speed; then kill -9 node {victim.number}, the primary of {keys[0].decode()}")
    writers = writer.run_writers(WRITERS, [node.port for node in others], name="kill")
    time.sleep(1.0)
    killed = time.monotonic()
    process.send(victim.pid, victim.started, signal.SIGKILL)
    time.sleep(3.0)
    for one in writers:
        one.stop()
    gap = max(one.gap(killed) for one in writers) * 1000
    total = sum(len(one.times) for one in writers)
    errors = [error for one in writers for error in one.errors]
    paper.line(f"{total:,} acknowledged writes; the longest time that a writer waited: {gap:.0f} ms")
    paper.line(f"{len(errors)} writes were answered with an error, which promises nothing"
               + (f": {errors[0]}" if errors else ""))
    good &= paper.verdict(gap < 2000, "writes went on by themselves, in less than two seconds")
    good &= verify(paper, others[0], writers, keys)

    paper.title(f"Restart node {victim.number}; it catches up by itself")
    cluster.launch(victim, cluster.seeds_for(victim))
    took = cluster.wait_ready(60, expected=3)
    paper.line(f"in sync again after {took:.1f} s")

    paper.title("Add a fourth node while the writers write")
    before = holders(cluster, keys)
    ports = [node.port for node in cluster.nodes]
    writers += writer.run_writers(WRITERS, ports, name="join")
    time.sleep(0.5)
    joiner = cluster.new_node()
    cluster.launch(joiner, [cluster.nodes[0]])
    cluster.wait_answering(joiner, 20)
    took = cluster.wait_ready(120, expected=4)
    time.sleep(0.5)
    for one in writers[WRITERS:]:
        one.stop()
    paper.line(f"in balance {took:.1f} s after it answered; {sum(len(one.times) for one in writers[WRITERS:]):,} writes meanwhile")
    errors = [error for one in writers[WRITERS:] for error in one.errors]
    good &= paper.verdict(not errors, "no client saw an error" + (f": {errors[0]}" if errors else ""))
    good &= moved(paper, before, holders(cluster, keys), joiner.number, nodes=4)
    good &= verify(paper, joiner, writers, keys)

    paper.title("Summary")
    paper.line(f"{len(keys):,} keys and {sum(len(one.acknowledged) for one in writers):,} keys of the writers "
               f"({sum(len(one.times) for one in writers):,} acknowledged writes) through one kill and one join; "
               f"writes paused for {gap:.0f} ms.")
    return paper.verdict(good, "nothing that was acknowledged was lost" if good else "something did not hold, see above")


def load(port, keys):
    """Set every key to itself; returns how many were acknowledged."""
    done = 0
    with Connection(port, timeout=30.0) as connection:
        for start in range(0, len(keys), 1000):
            part = keys[start : start + 1000]
            done += sum(reply == "OK" for reply in connection.pipeline([("SET", key, key) for key in part]))
    return done


def verify(paper, node, writers, keys):
    """Read everything back at one node."""
    losses = [loss for one in writers for loss in one.lost(node.port)]
    total = sum(len(one.acknowledged) for one in writers)
    good = paper.verdict(not losses, f"all {total:,} keys of the writers have their last acknowledged value"
                         if not losses else f"{len(losses)} of {total} acknowledged writes are lost: {losses[:3]}")
    missing = 0
    with Connection(node.port, timeout=30.0) as connection:
        for start in range(0, len(keys), 1000):
            part = keys[start : start + 1000]
            missing += sum(found != key for key, found in zip(part, connection.pipeline([("GET", k) for k in part])))
    return good & paper.verdict(missing == 0, f"all {len(keys):,} loaded keys are readable"
                                if not missing else f"{missing:,} of {len(keys):,} loaded keys are lost")


def primary_of(cluster, key):
    """The node that serves a key, from CLUSTER SLOTS."""
    slot = slot_of(key)
    for first, last, primary, *_ in cluster.running()[0].call("CLUSTER", "SLOTS"):
        if first <= slot <= last:
            for node in cluster.nodes:
                if node.cluster_port == primary[1]:
                    return node
    raise ReplyError(f"CLUSTER SLOTS names no node for slot {slot}")


def holders(cluster, keys):
    """Which nodes hold each key: a list of sets of node numbers, and how it was found.

    Every node is asked for every key on its cluster port: after READONLY a holder answers, another node redirects.
    Where replicas do not answer, the cluster is asked who they are (KORUM EXPLAIN, one key of each partition)."""
    found = [set() for _ in keys]
    for node in cluster.running():
        with Connection(node.cluster_port, timeout=30.0) as connection:
            connection.call("READONLY")
            for start in range(0, len(keys), 1000):
                part = keys[start : start + 1000]
                for offset, reply in enumerate(connection.pipeline([("EXISTS", key) for key in part])):
                    if reply == 1:
                        found[start + offset].add(node.number)
    if sum(map(len, found)) > len(keys):
        return found, "every node was asked for every key"
    return told_holders(cluster, keys), "as KORUM EXPLAIN says"


def told_holders(cluster, keys):
    """Who holds each key, as the cluster says."""
    one_of = {}  # partition -> a key of it
    partitions = cluster.running()[0].status()["partitions"]
    places = [slot_of(key) * partitions // 16384 for key in keys]
    for place, key in zip(places, keys):
        one_of.setdefault(place, key)
    numbers = {f"127.0.0.1:{node.port}": node.number for node in cluster.nodes}
    told = {}
    with Connection(cluster.running()[0].port, timeout=30.0) as connection:
        items = list(one_of.items())
        for start in range(0, len(items), 200):
            part = items[start : start + 200]
            replies = connection.pipeline([("KORUM", "EXPLAIN", key) for _, key in part])
            for (place, _), reply in zip(part, replies):
                rows = [line.split() for line in text_of(reply).splitlines() if " primary: " in line or " replica: " in line]
                told[place] = {numbers[row[2]] for row in rows}
    return [told[place] for place in places]


def moved(paper, before, after, joiner, nodes):
    """How many copies moved, against what had to: the new node's share."""
    (before, _), (after, how) = before, after
    count = sum(len(now - then) for then, now in zip(before, after))
    copies = sum(map(len, after))
    least = copies / nodes
    paper.line(f"copies that moved: {count:,} of {copies:,} ({how}); the new node's equal share, which is the least "
               f"that can move: {least:,.0f}; {count / least:.3f} of it")
    strange = sum(len(now - then - {joiner}) for then, now in zip(before, after))
    good = paper.verdict(not strange, "every copy that moved went to the new node" if not strange
                         else f"{strange:,} copies moved between nodes that were there before")
    return good & paper.verdict(0.85 * least < count < 1.15 * least, "only its share moved (hashing spreads a few percent)")


def text_of(reply):
    """A reply as lines for people."""
    if isinstance(reply, bytes):
        return reply.decode("utf-8", "replace")
    if isinstance(reply, dict):
        return "\n".join(f"{text_of(key)}: {text_of(value)}" for key, value in reply.items())
    if isinstance(reply, list):
        return "\n".join(text_of(part) for part in reply)
    return str(reply)
