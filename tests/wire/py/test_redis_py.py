"""redis-py against a cluster: `Redis` on the client port, `RedisCluster` on the cluster port."""

import os
import time
import unittest

import support

try:
    import redis
except ImportError:
    redis = None

NO_LIBRARY = "redis-py is not installed (scripts/test installs it)"


def text(reply):
    """str of a reply that the library decodes in one protocol and not in the other."""
    return reply.decode() if isinstance(reply, bytes) else reply


class Common:
    """What both clients must do; `self.client` is either."""

    everywhere = {}  # for commands about all keys: a cluster client asks one node unless told otherwise

    def setUp(self):
        self.client.flushall()

    def test_values_come_back(self):
        self.assertTrue(self.client.set("name", "value"))
        self.assertEqual(self.client.get("name"), b"value")
        self.assertIsNone(self.client.get("nothing"))
        every_byte = bytes(range(256))
        self.client.set(every_byte, every_byte)
        self.assertEqual(self.client.get(every_byte), every_byte)

    def test_set_options(self):
        self.assertTrue(self.client.set("key", 1, ex=100, nx=True))
        self.assertIsNone(self.client.set("key", 2, nx=True))
        self.assertEqual(self.client.set("key", 3, xx=True, get=True), b"1")
        self.assertEqual(self.client.ttl("key"), -1)
        self.client.set("key", 4, px=50_000)
        self.client.set("key", 5, keepttl=True)
        self.assertTrue(0 < self.client.pttl("key") <= 50_000)
        self.assertEqual(self.client.getdel("key"), b"5")
        self.assertEqual(self.client.exists("key"), 0)

    def test_transactions(self):
        with self.client.pipeline(transaction=True) as pipe:
            pipe.set("{t}a", 1).incr("{t}a").get("{t}a")
            replies = pipe.execute()
        self.assertIn(replies[0], (True, b"OK"))  # a cluster client leaves it as it came
        self.assertEqual(replies[1:], [2, b"2"])
        with self.client.pipeline(transaction=True) as pipe:
            pipe.set("{t}a", "x").incr("{t}a").set("{t}b", 1)
            replies = pipe.execute(raise_on_error=False)
        self.assertIsInstance(replies[1], redis.ResponseError)
        self.assertEqual(self.client.get("{t}b"), b"1")

    def test_watched_transactions(self):
        def increase(pipe):
            value = int(pipe.get("{t}n") or 0)
            pipe.multi()
            pipe.set("{t}n", value + 1)

        for _ in range(5):
            self.client.transaction(increase, "{t}n")
        self.assertEqual(self.client.get("{t}n"), b"5")
        with self.client.pipeline(transaction=True) as pipe:
            pipe.watch("{t}n")
            self.client.set("{t}n", 9)
            pipe.multi()
            pipe.set("{t}n", 0)
            with self.assertRaises(redis.WatchError):
                pipe.execute()
        self.assertEqual(self.client.get("{t}n"), b"9")

    def test_scripts(self):
        script = self.client.register_script("return redis.call('incrby', KEYS[1], ARGV[1])")
        self.assertEqual(script(keys=["{s}n"], args=[5]), 5)
        self.assertEqual(script(keys=["{s}n"], args=[5]), 10)
        self.assertEqual(self.client.eval("return {KEYS[1], ARGV[1]}", 1, "{s}n", "x"), [b"{s}n", b"x"])
        with self.assertRaises(redis.ResponseError):
            self.client.eval("return redis.call('incr', KEYS[1], 'x')", 1, "{s}n")

    def test_locks(self):
        lock = self.client.lock("{l}lock", timeout=10)
        self.assertTrue(lock.acquire(blocking=False))
        self.assertFalse(self.client.lock("{l}lock").acquire(blocking=False))
        self.assertTrue(lock.extend(10))
        lock.release()
        with self.assertRaises(redis.exceptions.LockError):
            lock.release()

    def test_expiry(self):
        self.client.set("short", "x", px=60)
        end = time.monotonic() + 3
        while self.client.get("short") is not None:
            self.assertLess(time.monotonic(), end, "the key does not expire")
            time.sleep(0.02)
        self.client.set("long", "x")
        self.assertTrue(self.client.expire("long", 100))
        self.assertFalse(self.client.expire("long", 50, gt=True))
        self.assertTrue(self.client.persist("long"))
        self.assertEqual(self.client.ttl("long"), -1)

    def test_counters(self):
        self.assertEqual(self.client.incr("n"), 1)
        self.assertEqual(self.client.incrby("n", 41), 42)
        self.assertEqual(self.client.decr("n"), 41)
        self.assertEqual(self.client.incrbyfloat("n", 0.5), 41.5)
        with self.assertRaises(redis.ResponseError):
            self.client.incr("n")

    def test_many_keys_over_all_nodes(self):
        mapping = {f"many:{i}": str(i).encode() for i in range(500)}
        for key, value in mapping.items():
            self.client.set(key, value)
        for key, value in mapping.items():
            self.assertEqual(self.client.get(key), value)
        self.assertEqual({key.decode() for key in self.client.scan_iter(match="many:*", count=50)}, set(mapping))
        self.assertEqual(self.client.dbsize(**self.everywhere), 500)
        self.assertEqual(len(self.client.keys("many:*", **self.everywhere)), 500)

    def test_several_keys_in_one_slot(self):
        self.client.mset({"{t}a": 1, "{t}b": 2})
        self.assertEqual(self.client.mget("{t}a", "{t}none", "{t}b"), [b"1", None, b"2"])
        self.assertEqual(self.client.exists("{t}a", "{t}b"), 2)
        self.client.rename("{t}a", "{t}c")
        self.assertTrue(self.client.copy("{t}c", "{t}d"))
        self.assertEqual(self.client.delete("{t}b", "{t}c", "{t}d"), 3)

    def test_pipeline(self):
        pipeline = self.client.pipeline(transaction=False)
        for i in range(300):
            pipeline.set(f"pipe:{i}", i)
        for i in range(300):
            pipeline.get(f"pipe:{i}")
        replies = pipeline.execute()
        self.assertEqual(replies[:300], [True] * 300)
        self.assertEqual(replies[300:], [str(i).encode() for i in range(300)])

    def test_large_value(self):
        value = bytes(i * 7 % 251 for i in range(3_000_000))
        self.client.set("large", value)
        self.assertEqual(self.client.get("large"), value)
        self.assertEqual(self.client.strlen("large"), len(value))


@unittest.skipUnless(redis, NO_LIBRARY)
class RedisResp2(Common, unittest.TestCase):
    """redis.Redis, RESP2."""

    protocol = 2

    @classmethod
    def setUpClass(cls):
        host, port = support.client_port()
        cls.client = redis.Redis(host, port, protocol=cls.protocol, socket_timeout=10)

    def test_split_commands(self):
        """The client port takes keys of any slots together."""
        mapping = {f"split:{i}": str(i) for i in range(100)}
        self.assertTrue(self.client.mset(mapping))
        self.assertEqual(self.client.mget(list(mapping)), [value.encode() for value in mapping.values()])
        self.assertEqual(self.client.exists(*mapping), 100)
        self.assertEqual(self.client.unlink(*list(mapping)[:50]), 50)
        self.assertEqual(self.client.delete(*mapping), 50)

    def test_server_commands(self):
        self.assertTrue(self.client.ping())
        self.assertEqual(self.client.echo("hello"), b"hello")
        self.assertIn("redis_version", self.client.info())
        self.assertIn("maxmemory", self.client.config_get("maxmemory"))
        self.assertGreater(self.client.command_count(), 50)
        self.assertIn("get", self.client.command())
        self.assertEqual([text(key) for key in self.client.command_getkeys("MSET", "a", 1, "b", 2)], ["a", "b"])
        self.client.client_setname("tester")
        self.assertEqual(text(self.client.client_getname()), "tester")
        self.assertGreater(self.client.client_id(), 0)
        self.assertTrue(any(one["name"] == "tester" for one in self.client.client_list()))
        self.assertEqual(len(self.client.time()), 2)


@unittest.skipUnless(redis, NO_LIBRARY)
class RedisResp3(RedisResp2):
    """redis.Redis, RESP3."""

    protocol = 3


@unittest.skipUnless(redis, NO_LIBRARY)
class ClusterResp2(Common, unittest.TestCase):
    """redis.RedisCluster, RESP2: it finds the cluster ports by CLUSTER SLOTS."""

    protocol = 2
    everywhere = {"target_nodes": redis.RedisCluster.PRIMARIES} if redis else {}

    @classmethod
    def setUpClass(cls):
        host, port = support.cluster_port()
        cls.client = redis.RedisCluster(host=host, port=port, protocol=cls.protocol, socket_timeout=10)

    def test_topology(self):
        self.assertEqual(len(self.client.get_primaries()), 3)
        self.assertEqual(self.client.cluster_info()["cluster_state"], "ok")
        slots = sum(last - first + 1 for first, last in self.client.cluster_slots())
        self.assertEqual(slots, 16384)
        self.assertEqual(len(self.client.cluster_nodes()), 3)
        self.assertEqual(self.client.keyslot("foo"), 12182)
        self.assertEqual(self.client.cluster_keyslot("foo"), 12182)

    @unittest.skipIf("KORUM_TEST_ADDR" in os.environ, "the given server may be a plain Redis")
    def test_from_a_client_port(self):
        """A seed that is a client port leads to the cluster ports."""
        host, port = support.client_port()
        client = redis.RedisCluster(host=host, port=port, protocol=self.protocol, socket_timeout=10)
        for i in range(50):
            client.set(f"seed:{i}", i)
            self.assertEqual(client.get(f"seed:{i}"), str(i).encode())
        client.close()

    def test_non_atomic_commands_over_slots(self):
        mapping = {f"na:{i}": str(i) for i in range(100)}
        self.client.mset_nonatomic(mapping)
        self.assertEqual(self.client.mget_nonatomic(list(mapping)), [value.encode() for value in mapping.values()])
        self.assertEqual(self.client.delete(*mapping), 100)


@unittest.skipUnless(redis, NO_LIBRARY)
class ClusterResp3(ClusterResp2):
    """redis.RedisCluster, RESP3."""

    protocol = 3


if __name__ == "__main__":
    unittest.main()
