"""redis-py and streams: a work queue with a group, and readers that wait, through nodes of a cluster of three."""

import threading
import time
import unittest

import support

try:
    import redis
except ImportError:
    redis = None

NO_LIBRARY = "redis-py is not installed (scripts/test installs it)"


@unittest.skipIf(redis is None, NO_LIBRARY)
class Streams(unittest.TestCase):
    """On the client port; `self.reader` and `self.client` may be on any node."""

    def setUp(self):
        host, port = support.client_port()
        self.client = redis.Redis(host=host, port=port)
        self.client.flushall()
        self.addCleanup(self.client.close)

    def waiting(self, *words, count=1):
        """So many threads, each waiting in a command on a connection of its own; their answers come into a list, in order."""
        answers, lock = [], threading.Lock()

        def wait(number):
            try:
                answer = self.client.execute_command(*[str(word).replace("NUMBER", str(number)) for word in words])
            except redis.ResponseError as error:
                answer = str(error)
            with lock:
                answers.append(answer)

        threads = [threading.Thread(target=wait, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
            time.sleep(0.1)  # they come one after the other
        time.sleep(0.2)
        return answers, threads

    def test_a_group_shares_work_and_takes_over_what_was_left(self):
        for number in range(10):
            self.client.xadd("jobs", {"number": number})
        self.client.xgroup_create("jobs", "workers", id="0")
        first = self.client.xreadgroup("workers", "one", {"jobs": ">"}, count=4)
        ids = [id for id, _ in (first[b"jobs"][0] if isinstance(first, dict) else first[0][1])]
        self.assertEqual(len(ids), 4)
        self.assertEqual(self.client.xack("jobs", "workers", ids[0]), 1)
        self.assertEqual(self.client.xpending("jobs", "workers")["pending"], 3)
        claimed = self.client.xautoclaim("jobs", "workers", "two", 0, count=2)
        self.assertEqual([id for id, _ in claimed[1]], ids[1:3])
        self.assertEqual(claimed[0], ids[3])
        group = self.client.xinfo_groups("jobs")[0]
        self.assertEqual((group["consumers"], group["pending"], group["entries-read"], group["lag"]), (2, 3, 4, 6))
        consumers = {consumer["name"]: consumer["pending"] for consumer in self.client.xinfo_consumers("jobs", "workers")}
        self.assertEqual(consumers, {b"one": 1, b"two": 2})
        self.assertEqual(self.client.xtrim("jobs", maxlen=2, approximate=False), 8)
        self.assertEqual(self.client.xinfo_stream("jobs")["length"], 2)

    def test_all_readers_get_an_entry_that_comes(self):
        self.client.xadd("news", {"old": 1}, id="1-0")
        answers, threads = self.waiting("XREAD", "BLOCK", 5000, "STREAMS", "news", "other{news}", "$", "$", count=3)
        self.assertEqual(answers, [])
        self.client.xadd("news", {"new": 1}, id="2-0")
        for thread in threads:
            thread.join(5)
        self.assertEqual(len(answers), 3)
        for answer in answers:
            self.assertIn("2-0", str(answer))
            self.assertNotIn("1-0", str(answer))

    def test_consumers_that_wait_get_an_entry_each(self):
        self.client.xgroup_create("jobs", "workers", mkstream=True)
        answers, threads = self.waiting("XREADGROUP", "GROUP", "workers", "NUMBER", "COUNT", 1, "BLOCK", 5000, "STREAMS", "jobs", ">", count=3)
        for number in range(1, 4):
            self.client.xadd("jobs", {"f": "v"}, id=f"{number}-0")
        for thread in threads:
            thread.join(5)
        self.assertEqual(len(answers), 3)
        owners = {entry["message_id"]: entry["consumer"] for entry in self.client.xpending_range("jobs", "workers", "-", "+", 10)}
        self.assertEqual(owners, {b"1-0": b"0", b"2-0": b"1", b"3-0": b"2"})

    def test_who_waits_for_a_group_that_ends_is_told(self):
        for end in (lambda: self.client.xgroup_destroy("jobs", "workers"), lambda: self.client.delete("jobs")):
            self.client.xgroup_create("jobs", "workers", mkstream=True)
            answers, threads = self.waiting("XREADGROUP", "GROUP", "workers", "me", "BLOCK", 5000, "STREAMS", "jobs", ">")
            end()
            threads[0].join(5)
            self.assertEqual(len(answers), 1)
            self.assertRegex(answers[0], "NOGROUP|UNBLOCKED")  # Redis 7.0 says the second of a deleted key

    def test_time_runs_out(self):
        begun = time.monotonic()
        self.assertFalse(self.client.xread({"nothing": "$"}, block=300))
        self.assertTrue(0.3 <= time.monotonic() - begun < 2)


if __name__ == "__main__":
    unittest.main()
