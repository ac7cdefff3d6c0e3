"""Locks and limits in Lua, as applications write them: redis-py's `Lock`, a lock as Redlock takes it, rate limiters.

Their clients are spread over the client ports of three nodes, and meet at keys of all of them.
"""

import threading
import time
import unittest
import uuid

import support

try:
    import redis
    from redis.exceptions import LockError, LockNotOwnedError
except ImportError:
    redis = None

NO_LIBRARY = "redis-py is not installed (scripts/test installs it)"

RELEASE = """
if redis.call('get', KEYS[1]) == ARGV[1] then
    return redis.call('del', KEYS[1])
else
    return 0
end"""

EXTEND = """
if redis.call('get', KEYS[1]) == ARGV[1] then
    return redis.call('pexpire', KEYS[1], ARGV[2])
else
    return 0
end"""

# so many in a window that slides, with the server's clock
SLIDING = """
local now = redis.call('TIME')
local us = now[1] * 1000000 + now[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', us - ARGV[1] * 1000)
local used = redis.call('ZCARD', KEYS[1])
if used < tonumber(ARGV[2]) then
    local number = redis.call('INCR', KEYS[2])
    redis.call('ZADD', KEYS[1], us, us .. ':' .. number)
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
    redis.call('PEXPIRE', KEYS[2], ARGV[1])
    return {1, tonumber(ARGV[2]) - used - 1}
end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
return {0, math.ceil((first[2] + ARGV[1] * 1000 - us) / 1000)}"""

# tokens that come back with time, in a hash
BUCKET = """
local state = redis.call('HMGET', KEYS[1], 'tokens', 'at')
local now = redis.call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local size, per_second = tonumber(ARGV[1]), tonumber(ARGV[2])
local tokens = tonumber(state[1]) or size
tokens = math.min(size, tokens + math.max(0, ms - (tonumber(state[2]) or ms)) * per_second / 1000)
local taken = 0
if tokens >= 1 then
    tokens, taken = tokens - 1, 1
end
redis.call('HSET', KEYS[1], 'tokens', tostring(tokens), 'at', ms)
redis.call('PEXPIRE', KEYS[1], math.ceil(size / per_second * 1000))
return taken"""


class OnAllNodes(unittest.TestCase):
    """A client of each node."""

    def setUp(self):
        self.clients = [redis.Redis(host, port, decode_responses=True) for host, port in support.client_ports()]
        for client in self.clients:
            self.addCleanup(client.close)
        self.clients[0].flushall()

    def at_once(self, work, count=6):
        """Runs `work(client, number)` in so many threads, at all nodes; what they return."""
        results, errors = [], []

        def run(number):
            try:
                results.append(work(self.clients[number % len(self.clients)], number))
            except Exception as error:
                errors.append(error)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])
        return results


@unittest.skipIf(redis is None, NO_LIBRARY)
class Lock(OnAllNodes):
    """redis-py's own."""

    def test_only_one_holds_it(self):
        inside, most = [], []

        def work(client, _):
            for _ in range(5):
                with client.lock("lock:only", timeout=10, blocking_timeout=20, sleep=0.005):
                    inside.append(1)
                    most.append(len(inside))
                    value = int(client.get("lock:counter") or 0)
                    client.set("lock:counter", value + 1)
                    inside.pop()

        self.at_once(work)
        self.assertEqual(set(most), {1})
        self.assertEqual(self.clients[0].get("lock:counter"), "30")
        self.assertEqual(self.clients[1].exists("lock:only"), 0)

    def test_what_its_holder_can_do(self):
        for number, name in enumerate(f"lock:{number}" for number in range(6)):
            here, there = self.clients[number % 3], self.clients[(number + 1) % 3]
            lock, other = here.lock(name, timeout=10), there.lock(name, timeout=10)
            self.assertTrue(lock.acquire(blocking=False))
            self.assertFalse(other.acquire(blocking=False))
            self.assertFalse(other.acquire(blocking_timeout=0.05))
            self.assertTrue(lock.locked() and other.locked() and lock.owned() and not other.owned())
            self.assertTrue(lock.extend(10) and 10 < here.ttl(name) <= 20)
            self.assertTrue(lock.extend(5, replace_ttl=True) and there.ttl(name) <= 5)
            self.assertTrue(lock.reacquire() and 5 < here.ttl(name) <= 10)
            lock.release()
            with self.assertRaises(LockError):
                lock.release()
            self.assertTrue(other.acquire(blocking=False))
            other.release()

    def test_one_that_ran_out_is_not_its_holders_any_more(self):
        lock, other = self.clients[0].lock("lock:short", timeout=0.1), self.clients[1].lock("lock:short", timeout=10)
        self.assertTrue(lock.acquire())
        self.assertTrue(other.acquire(blocking_timeout=5))
        for call in (lock.release, lock.reacquire, lambda: lock.extend(1)):
            with self.assertRaises(LockNotOwnedError):
                call()
            lock.local.token = lock.local.token or b"mine"
        self.assertTrue(other.owned())
        other.release()


@unittest.skipIf(redis is None, NO_LIBRARY)
class Redlock(OnAllNodes):
    """SET NX PX with a token, released and prolonged by scripts. Redlock asks several servers that know nothing of
    each other; Korum's nodes are one, and so one is asked."""

    def take(self, client, name, ms):
        token = uuid.uuid4().hex
        return token if client.set(name, token, nx=True, px=ms) else None

    def test_one_at_a_time_and_only_its_holder_ends_it(self):
        def work(client, number):
            release = client.register_script(RELEASE)
            held = 0
            while held < 4:
                token = self.take(client, "redlock", 10_000)
                if token is None:
                    time.sleep(0.002)
                    continue
                value = int(client.get("redlock:count") or 0)
                self.assertEqual(release(keys=["redlock"], args=["another"], client=self.clients[(number + 1) % 3]), 0)
                client.set("redlock:count", value + 1)
                self.assertEqual(release(keys=["redlock"], args=[token]), 1)
                held += 1
            return held

        self.assertEqual(sum(self.at_once(work)), 24)
        self.assertEqual(self.clients[2].get("redlock:count"), "24")

    def test_it_is_prolonged(self):
        extend = self.clients[1].register_script(EXTEND)
        token = self.take(self.clients[0], "redlock:long", 500)
        self.assertEqual(extend(keys=["redlock:long"], args=["another", 9000]), 0)
        self.assertEqual(extend(keys=["redlock:long"], args=[token, 9000]), 1)
        self.assertTrue(5000 < self.clients[2].pttl("redlock:long") <= 9000)
        self.assertIsNone(self.take(self.clients[2], "redlock:long", 500))


@unittest.skipIf(redis is None, NO_LIBRARY)
class Limits(OnAllNodes):
    """So many in a time, whoever asks at whichever node."""

    def test_a_sliding_window(self):
        def work(client, _):
            script = client.register_script(SLIDING)
            return sum(script(keys=["{limit}window", "{limit}number"], args=[60_000, 50])[0] for _ in range(20))

        self.assertEqual(sum(self.at_once(work)), 50)
        allowed, wait = self.clients[1].eval(SLIDING, 2, "{limit}window", "{limit}number", 60_000, 50)
        self.assertEqual(allowed, 0)
        self.assertTrue(0 < wait <= 60_000)

    def test_a_window_slides_on(self):
        script = self.clients[2].register_script(SLIDING)
        keys = ["{limit}short", "{limit}shorts"]
        self.assertEqual([script(keys=keys, args=[150, 2])[0] for _ in range(3)], [1, 1, 0])
        end = time.monotonic() + 5
        while script(keys=keys, args=[150, 2])[0] == 0:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def test_a_bucket_of_tokens(self):
        def work(client, _):
            script = client.register_script(BUCKET)
            return sum(script(keys=["limit:bucket"], args=[30, 0.01]) for _ in range(10))

        self.assertEqual(sum(self.at_once(work)), 30)

    def test_a_fixed_window(self):
        def work(client, _):
            allowed = 0
            for _ in range(10):
                with client.pipeline() as pipe:
                    count, _ = pipe.incr("limit:fixed").expire("limit:fixed", 60, nx=True).execute()
                allowed += count <= 25
            return allowed

        self.assertEqual(sum(self.at_once(work)), 25)
        self.assertTrue(0 < self.clients[0].ttl("limit:fixed") <= 60)


if __name__ == "__main__":
    unittest.main()
