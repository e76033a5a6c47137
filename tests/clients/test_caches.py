"""Libraries on redis-py that many services are made of: caches, locks and a queue of jobs. What
needs scripts or other types than byte strings is refused with the reason."""

import asyncio
import time
import unittest
import uuid

import aiocache
import django.conf
import django.core.cache
import redis
import redis_lock
import rq

from endpoint import HOST, IS_QUORATE, PORT, key

TIMEOUT = 30
# A keyspace with transactions; plain Redis has one of that number too.
DATABASE = 2
URL = f"redis://{HOST}:{PORT}/{DATABASE}"


def client():
    return redis.Redis(host=HOST, port=PORT, db=DATABASE, socket_timeout=TIMEOUT)


class Django(unittest.TestCase):
    """The cache that Django has for Redis."""

    @classmethod
    def setUpClass(cls):
        name = "django.core.cache.backends.redis.RedisCache"
        caches = {"default": {"BACKEND": name, "LOCATION": URL}}
        django.conf.settings.configure(CACHES=caches)
        cls.cache = django.core.cache.cache

    def test_values_and_their_time_outs(self):
        name = key("django")
        self.assertIsNone(self.cache.get(name))
        self.cache.set(name, {"cart": [1, 2]}, timeout=60)
        self.assertEqual(self.cache.get(name), {"cart": [1, 2]})
        self.assertFalse(self.cache.add(name, "other"))
        self.assertTrue(self.cache.touch(name, 1000))
        self.assertTrue(990 < client().ttl(self.cache.make_key(name)) <= 1000)
        self.assertTrue(self.cache.touch(name, None))
        self.assertEqual(client().ttl(self.cache.make_key(name)), -1)
        self.assertTrue(self.cache.delete(name))
        self.assertFalse(self.cache.has_key(name))
        self.cache.set(name, "soon", timeout=1)
        deadline = time.monotonic() + TIMEOUT
        while self.cache.get(name) is not None:
            self.assertLess(time.monotonic(), deadline, "it does not end")
            time.sleep(0.05)

    def test_counters_and_many_keys(self):
        one, two = key("one"), key("two")
        with self.assertRaises(ValueError):
            self.cache.incr(one)
        self.assertEqual(self.cache.set_many({one: 1, two: 2}, timeout=60), [])
        self.assertEqual(self.cache.incr(one, 41), 42)
        self.assertEqual(self.cache.decr(two), 1)
        self.assertEqual(self.cache.get_many([one, two]), {one: 42, two: 1})
        self.cache.delete_many([one, two])
        self.assertEqual(self.cache.get_many([one, two]), {})
        self.assertEqual(self.cache.get_or_set(one, lambda: "made"), "made")

    def test_clear(self):
        names = [key(f"clear{number}") for number in range(20)]
        self.cache.set_many({name: "x" for name in names})
        self.cache.clear()
        self.assertEqual(self.cache.get_many(names), {})


class Aiocache(unittest.IsolatedAsyncioTestCase):
    """A cache for asyncio."""

    async def test_values_and_their_time_outs(self):
        space = uuid.uuid4().hex
        cache = aiocache.Cache(
            aiocache.Cache.REDIS, endpoint=HOST, port=PORT, db=DATABASE, namespace=space
        )
        try:
            await cache.set("a", "1", ttl=60)
            self.assertEqual(await cache.get("a"), "1")
            with self.assertRaises(ValueError):
                await cache.add("a", "2")
            await cache.multi_set([("b", "2"), ("c", "3")], ttl=60)
            self.assertEqual(await cache.multi_get(["a", "b", "none"]), ["1", "2", None])
            self.assertEqual(await cache.increment("n", 5), 5)
            self.assertTrue(await cache.expire("n", 1))
            async with asyncio.timeout(TIMEOUT):
                while await cache.exists("n"):
                    await asyncio.sleep(0.05)
            self.assertEqual(await cache.delete("a"), 1)
            self.assertTrue(await cache.clear(namespace=space))
            self.assertFalse(await cache.exists("b"))
        finally:
            await cache.close()


@unittest.skipUnless(IS_QUORATE, "plain Redis can do these")
class Refused(unittest.TestCase):
    """What is not there says so, and leaves nothing behind."""

    def test_a_lock_whose_release_is_a_script(self):
        with self.assertRaisesRegex(redis.ResponseError, "needs scripts"):
            with redis_lock.Lock(client(), key("lock"), expire=5):
                pass

    def test_a_queue_of_jobs(self):
        queue = rq.Queue(key("jobs"), connection=client())
        with self.assertRaisesRegex(redis.ResponseError, "holds plain byte strings"):
            queue.enqueue("time.time")


if __name__ == "__main__":
    unittest.main()
