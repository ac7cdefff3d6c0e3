"""Django's cache and its sessions over redis-py, unchanged, on the client ports of three nodes.

`cross-slot-transactions` is on, since `set_many` sends MSET and EXPIREs as one MULTI; without it, a prefix with a hash
tag does (`OneSlot`).
"""

import threading
import time
import unittest

import support

try:
    import django
    import django.conf  # its `settings` cannot be looked at before they are configured
    import redis
    from django.core.cache.backends.redis import RedisCache
except ImportError:
    django = None

NO_LIBRARY = "Django is not installed (scripts/test installs it)"


def location():
    """The first node is written to, the others are read from: with Redis they would be replicas."""
    return [f"redis://{host}:{port}/0" for host, port in support.client_ports()]


@unittest.skipIf(django is None, NO_LIBRARY)
class Cache(unittest.TestCase):
    """Keys of many slots."""

    prefix = "site"
    answer = "yes"

    @classmethod
    def setUpClass(cls):
        support.cross_slot_transactions(cls.answer)
        cls.addClassCleanup(support.cross_slot_transactions, "no")
        options = {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": location()}
        if not django.conf.settings.configured:
            django.conf.settings.configure(
                CACHES={"default": options}, SECRET_KEY="x", SESSION_ENGINE="django.contrib.sessions.backends.cache")
            django.setup()

    def setUp(self):
        self.cache = RedisCache(location(), {"KEY_PREFIX": self.prefix, "TIMEOUT": 300})
        self.cache.clear()

    def test_values_come_back(self):
        for value in ("text", 7, -1, 2.5, None, True, [1, {"a": (2, 3)}], b"\x00\xff", "ü" * 1000):
            self.cache.set("value", value)
            self.assertEqual(self.cache.get("value", "nothing"), value)
        self.assertEqual(self.cache.get("nothing", "else"), "else")
        self.assertTrue(self.cache.add("added", 1))
        self.assertFalse(self.cache.add("added", 2))
        self.assertEqual(self.cache.get_or_set("made", lambda: 3), 3)
        self.assertEqual(self.cache.get_or_set("made", lambda: 4), 3)
        self.assertIn("made", self.cache)
        self.assertTrue(self.cache.delete("made"))
        self.assertFalse(self.cache.delete("made"))

    def test_many_at_once(self):
        pairs = {f"many{number}": {"number": number} for number in range(100)}
        self.assertEqual(self.cache.set_many(pairs, timeout=60), [])
        self.assertEqual(self.cache.get_many([*pairs, "nothing"]), pairs)
        client = self.cache._cache.get_client(write=True)
        for key in pairs:
            self.assertTrue(50 < client.ttl(self.cache.make_key(key)) <= 60)
        self.cache.delete_many(list(pairs)[:40])
        self.assertEqual(self.cache.get_many(pairs), {f"many{n}": {"number": n} for n in range(40, 100)})
        self.cache.set_many({"lasts": 1, "always": 2}, timeout=None)
        self.assertEqual(client.ttl(self.cache.make_key("lasts")), -1)
        self.cache.clear()
        self.assertEqual(self.cache.get_many(pairs), {})

    def test_time(self):
        self.cache.set("short", 1, timeout=1)
        self.cache.set("gone", 1, timeout=0)
        self.assertNotIn("gone", self.cache)
        self.assertTrue(self.cache.touch("short", timeout=100))
        self.assertFalse(self.cache.touch("nothing"))
        self.cache.set("brief", 1, timeout=1)
        end = time.monotonic() + 5
        while "brief" in self.cache and time.monotonic() < end:
            time.sleep(0.05)
        self.assertNotIn("brief", self.cache)
        self.assertIn("short", self.cache)

    def test_counters(self):
        with self.assertRaises(ValueError):
            self.cache.incr("count")
        self.cache.set("count", 1)
        threads = [threading.Thread(target=lambda: [self.cache.incr("count") for _ in range(25)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.cache.get("count"), 101)
        self.assertEqual(self.cache.decr("count", 11), 90)
        self.assertEqual(self.cache.incr_version("count"), 2)
        self.assertEqual((self.cache.get("count"), self.cache.get("count", version=2)), (None, 90))

    def test_sessions(self):
        from django.contrib.sessions.backends.cache import SessionStore
        session = SessionStore()
        session["user"] = 7
        session.save(must_create=True)
        again = SessionStore(session.session_key)
        self.assertEqual(again["user"], 7)
        again.cycle_key()
        self.assertNotEqual(again.session_key, session.session_key)
        self.assertEqual(SessionStore(again.session_key)["user"], 7)
        self.assertNotIn("user", SessionStore(session.session_key))
        again.flush()
        self.assertNotIn("user", SessionStore(again.session_key))


@unittest.skipIf(django is None, NO_LIBRARY)
class OneSlot(Cache):
    """A prefix that keeps all keys in one slot needs no setting."""

    prefix = "{site}"
    answer = "no"

    def test_keys_of_several_slots_are_refused_without_the_setting(self):
        cache = RedisCache(location(), {"KEY_PREFIX": "site"})
        with self.assertRaises(redis.exceptions.ClusterCrossSlotError):
            cache.set_many({"a": 1, "b": 2})
        self.assertEqual(cache.get_many(["a", "b"]), {})


if __name__ == "__main__":
    unittest.main()
