"""redis-py's publish and subscribe against a cluster of three nodes."""

import time
import unittest

import support

try:
    import redis
except ImportError:
    redis = None


def gather(listener, count):
    """So many messages that are not confirmations, at most for five seconds."""
    messages, end = [], time.monotonic() + 5
    while len(messages) < count and time.monotonic() < end:
        message = listener.get_message(ignore_subscribe_messages=True, timeout=0.2)
        if message:
            messages.append(message)
    return messages


@unittest.skipUnless(redis, "redis-py is not installed (scripts/test installs it)")
class Resp2(unittest.TestCase):
    """redis.Redis on the client port."""

    protocol = 2

    def connect(self):
        host, port = support.client_port()
        client = redis.Redis(host=host, port=port, protocol=self.protocol)
        self.addCleanup(client.close)
        return client

    def listen(self, client):
        listener = client.pubsub()
        self.addCleanup(listener.close)
        return listener

    def test_channels_and_patterns(self):
        client = self.connect()
        listener = self.listen(client)
        listener.subscribe("news")
        listener.psubscribe("ne*")
        while client.pubsub_numpat() < 1:
            time.sleep(0.01)
        self.assertEqual(client.publish("news", "hello"), 2)
        first, second = gather(listener, 2)
        self.assertEqual((first["type"], first["channel"], first["data"]), ("message", b"news", b"hello"))
        self.assertEqual((second["type"], second["pattern"], second["data"]), ("pmessage", b"ne*", b"hello"))
        self.assertIn(b"news", client.pubsub_channels())
        self.assertEqual(client.pubsub_numsub("news", "none"), [(b"news", 1), (b"none", 0)])
        self.assertTrue(listener.ping() is None)
        listener.unsubscribe()
        listener.punsubscribe()
        end = time.monotonic() + 5
        while listener.subscribed and time.monotonic() < end:
            listener.get_message(timeout=0.1)
        self.assertFalse(listener.subscribed)
        self.assertEqual(client.publish("news", "nobody"), 0)

    def test_a_thread_that_listens(self):
        client = self.connect()
        listener, heard = self.listen(client), []
        listener.subscribe(work=lambda message: heard.append(message["data"]))
        thread = listener.run_in_thread(sleep_time=0.05)
        try:
            while dict(client.pubsub_numsub("work"))[b"work"] < 1:
                time.sleep(0.01)
            with client.pipeline(transaction=False) as pipeline:
                for number in range(500):
                    pipeline.publish("work", number)
                self.assertEqual(pipeline.execute(), [1] * 500)
            end = time.monotonic() + 5
            while len(heard) < 500 and time.monotonic() < end:
                time.sleep(0.02)
            self.assertEqual(heard, [str(number).encode() for number in range(500)])
        finally:
            thread.stop()
            thread.join()


@unittest.skipUnless(redis, "redis-py is not installed (scripts/test installs it)")
class Resp3(Resp2):
    """The same with pushes."""

    protocol = 3


@unittest.skipUnless(redis, "redis-py is not installed (scripts/test installs it)")
class InACluster(unittest.TestCase):
    """redis.RedisCluster."""

    def test_channels(self):
        host, port = support.cluster_port()
        client = redis.RedisCluster(host=host, port=port)
        self.addCleanup(client.close)
        listener = client.pubsub()
        self.addCleanup(listener.close)
        listener.subscribe("everywhere")
        while listener.get_message(timeout=0.2) is None:
            pass
        client.publish("everywhere", "hello")
        (message,) = gather(listener, 1)
        self.assertEqual(message["data"], b"hello")

    def test_shard_channels(self):
        host, port = support.cluster_port()
        client = redis.RedisCluster(host=host, port=port)
        self.addCleanup(client.close)
        listener = client.pubsub()
        self.addCleanup(listener.close)
        names = [f"shard:{number}" for number in range(8)]
        for name in names:
            listener.ssubscribe(name)
        time.sleep(0.3)
        for name in names:
            self.assertEqual(client.execute_command("SPUBLISH", name, "hello"), 1, name)
        heard, end = set(), time.monotonic() + 5
        while len(heard) < len(names) and time.monotonic() < end:
            message = listener.get_sharded_message(timeout=0.1)
            if message and message["type"] == "smessage":
                heard.add(message["channel"].decode())
        self.assertEqual(heard, set(names))


if __name__ == "__main__":
    unittest.main()
