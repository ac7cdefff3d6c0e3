"""redis-py and commands that wait: `Redis` on the client port, `RedisCluster` on the cluster port."""

import threading
import time
import unittest

import support

try:
    import redis
except ImportError:
    redis = None

NO_LIBRARY = "redis-py is not installed (scripts/test installs it)"


class Common:
    """What both clients must do; `self.client` is either."""

    def setUp(self):
        self.client.flushall()

    def later(self, work, *arguments):
        """Runs something in a moment, while the test waits."""
        timer = threading.Timer(0.2, work, arguments)
        timer.start()
        self.addCleanup(timer.join)

    def test_an_item_that_is_there_is_taken_at_once(self):
        self.client.rpush("{q}list", "a", "b", "c")
        self.assertEqual(tuple(self.client.blpop(["{q}none", "{q}list"], timeout=1)), (b"{q}list", b"a"))
        self.assertEqual(tuple(self.client.brpop("{q}list", timeout=0.1)), (b"{q}list", b"c"))
        self.assertEqual(self.client.blmove("{q}list", "{q}other", 1, "LEFT", "RIGHT"), b"b")
        self.assertEqual(self.client.brpoplpush("{q}other", "{q}list", timeout=1), b"b")
        self.assertEqual(self.client.blmpop(1, 2, "{q}none", "{q}list", direction="LEFT", count=5), [b"{q}list", [b"b"]])

    def test_time_runs_out(self):
        begun = time.monotonic()
        self.assertIsNone(self.client.blpop("nothing", timeout=0.3))
        self.assertTrue(0.3 <= time.monotonic() - begun < 0.8)
        self.assertIsNone(self.client.blmove("{q}a", "{q}b", 0.1))
        self.assertIsNone(self.client.bzpopmin("nothing", timeout=0.1))

    def test_an_item_that_comes_later_is_waited_for(self):
        self.later(self.client.rpush, "queue", "late")
        self.assertEqual(tuple(self.client.blpop("queue", timeout=5)), (b"queue", b"late"))
        self.assertEqual(self.client.llen("queue"), 0)

    def test_a_member_is_waited_for(self):
        self.later(self.client.zadd, "scores", {"one": 1, "two": 2})
        key, member, score = self.client.bzpopmax("scores", timeout=5)
        self.assertEqual((key, member, float(score)), (b"scores", b"two", 2.0))

    def test_an_entry_is_waited_for(self):
        self.client.xadd("stream", {"number": 1})
        self.client.xgroup_create("stream", "group", id="$")
        self.later(self.client.xadd, "stream", {"number": 2})
        replies = self.client.xread({"stream": "$"}, block=5000)
        entries = replies[b"stream"][0] if isinstance(replies, dict) else replies[0][1]
        self.assertEqual(entries[0][1], {b"number": b"2"})
        self.later(self.client.xadd, "stream", {"number": 3})
        self.client.xreadgroup("group", "me", {"stream": ">"}, block=5000)
        replies = self.client.xreadgroup("group", "me", {"stream": ">"}, block=5000)
        entries = replies[b"stream"][0] if isinstance(replies, dict) else replies[0][1]
        self.assertEqual(entries[0][1], {b"number": b"3"})

    def test_a_group_gives_each_entry_to_one_consumer(self):
        self.client.xgroup_create("events", "group", mkstream=True)
        taken, lock = [], threading.Lock()

        def consume(name):
            while True:
                replies = self.client.xreadgroup("group", name, {"events": ">"}, count=1, block=2000)
                if not replies:
                    return
                entries = replies[b"events"][0] if isinstance(replies, dict) else replies[0][1]
                with lock:
                    taken.extend(int(fields[b"number"]) for _, fields in entries)

        consumers = [threading.Thread(target=consume, args=(f"consumer{number}",)) for number in range(4)]
        for consumer in consumers:
            consumer.start()
        for number in range(100):
            self.client.xadd("events", {"number": number})
        for consumer in consumers:
            consumer.join()
        self.assertEqual(sorted(taken), list(range(100)))

    def test_many_workers_share_a_queue(self):
        taken, lock = [], threading.Lock()

        def work():
            while True:
                found = self.client.blpop("jobs", timeout=2)
                if found is None or found[1] == b"end":
                    return
                with lock:
                    taken.append(int(found[1]))

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for number in range(200):
            self.client.rpush("jobs", number)
        for _ in workers:
            self.client.rpush("jobs", "end")
        for worker in workers:
            worker.join()
        self.assertEqual(sorted(taken), list(range(200)))


@unittest.skipIf(redis is None, NO_LIBRARY)
class Waiting(Common, unittest.TestCase):
    protocol = 2

    def setUp(self):
        host, port = support.client_port()
        self.client = redis.Redis(host, port, protocol=self.protocol)
        self.addCleanup(self.client.close)
        super().setUp()


@unittest.skipIf(redis is None, NO_LIBRARY)
class WaitingResp3(Waiting):
    protocol = 3


@unittest.skipIf(redis is None, NO_LIBRARY)
class WaitingAtTheClusterPort(Common, unittest.TestCase):
    def setUp(self):
        host, port = support.cluster_port()
        self.client = redis.RedisCluster(host=host, port=port)
        self.addCleanup(self.client.close)
        super().setUp()


if __name__ == "__main__":
    unittest.main()
