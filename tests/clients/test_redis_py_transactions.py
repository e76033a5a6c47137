"""redis-py on a keyspace with transactions: counters, pipelines as they are by default, WATCH, and
keys that expire."""

import threading
import time
import unittest

import redis

from endpoint import HOST, IS_QUORATE, PORT, SECOND, key

TIMEOUT = 30
# The keyspace by its number; plain Redis has one of that number too.
DATABASE = 2
ADDERS, ADDITIONS = 8, 50


class Suite:
    """What holds for either protocol."""

    protocol = None

    def connect(self, address=(HOST, PORT), **settings):
        host, port = address
        settings = {"protocol": self.protocol, "db": DATABASE, **settings}
        client = redis.Redis(host=host, port=port, socket_timeout=TIMEOUT, **settings)
        self.addCleanup(client.close)
        return client

    def setUp(self):
        self.client = self.connect()

    def test_counters(self):
        name, real = key("counter"), key("real")
        self.assertEqual(self.client.incr(name), 1)
        self.assertEqual(self.client.incr(name, 41), 42)
        self.assertEqual(self.client.decr(name, 2), 40)
        self.assertEqual(self.client.get(name), b"40")
        self.assertEqual(self.client.incrbyfloat(real, 0.5), 0.5)
        self.assertEqual(self.client.incrbyfloat(real, 1), 1.5)
        with self.assertRaisesRegex(redis.ResponseError, "not an integer or out of range"):
            self.client.incr(real)
        with self.assertRaisesRegex(redis.ResponseError, "would overflow"):
            self.client.incr(name, 2**63 - 1)

    def test_changes_where_values_stand(self):
        name = key("text")
        self.assertEqual(self.client.append(name, "hello"), 5)
        self.assertEqual(self.client.append(name, " you"), 9)
        self.assertEqual(self.client.setrange(name, 6, "all"), 9)
        self.assertEqual(self.client.getset(name, "new"), b"hello all")
        self.assertEqual(self.client.set(name, "newer", get=True), b"new")
        self.assertEqual(self.client.getdel(name), b"newer")
        self.assertIsNone(self.client.getdel(name))

    def test_a_scan_shows_keys_that_begin_alike(self):
        prefix = key("session")
        names = {f"{prefix}:{number}".encode() for number in range(300)}
        self.client.mset({name: b"1" for name in names})
        self.assertEqual(set(self.client.scan_iter(f"{prefix}:*", count=50)), names)

    def test_conditions(self):
        name, other = key("first"), key("second")
        self.assertTrue(self.client.setnx(name, "1"))
        self.assertFalse(self.client.setnx(name, "2"))
        self.assertIsNone(self.client.set(name, "3", nx=True))
        self.assertIsNone(self.client.set(other, "3", xx=True))
        self.assertTrue(self.client.set(name, "4", xx=True))
        self.assertFalse(self.client.msetnx({name: "5", other: "5"}))
        self.assertEqual(self.client.mget(name, other), [b"4", None])
        self.assertEqual(self.client.exists(name, name, other), 2)
        self.assertEqual(self.client.delete(name, other), 1)

    def test_pipeline_is_a_transaction(self):
        name = key("pipeline")
        pipeline = self.client.pipeline()
        pipeline.set(name, 1).incr(name).get(name).delete(name).exists(name)
        self.assertEqual(pipeline.execute(), [True, 2, b"2", 1, 0])
        # As in Redis, what fails leaves the others be.
        pipeline.set(name, "text").incr(name).append(name, "!")
        told = pipeline.execute(raise_on_error=False)
        self.assertEqual([told[0], told[2]], [True, 5])
        self.assertIsInstance(told[1], redis.ResponseError)
        self.assertEqual(self.client.get(name), b"text!")
        pipeline.set(name, 7).execute_command("INCRBY", name, "x")
        pipeline.execute_command("SET", name, 8, "EX", 0).incr(name)
        told = pipeline.execute(raise_on_error=False)
        self.assertEqual([told[0], told[3]], [True, 8])
        for error in told[1:3]:
            self.assertIsInstance(error, redis.ResponseError)

    def test_watch(self):
        name = key("watched")
        self.client.set(name, 5)
        with self.client.pipeline() as pipeline:
            pipeline.watch(name)
            value = int(pipeline.get(name))
            self.client.incr(name)
            pipeline.multi()
            pipeline.set(name, value * 10)
            with self.assertRaises(redis.WatchError):
                pipeline.execute()
        self.assertEqual(self.client.get(name), b"6")

        def times_ten(pipeline):
            value = int(pipeline.get(name))
            pipeline.multi()
            pipeline.set(name, value * 10)

        self.assertEqual(self.client.transaction(times_ten, name), [True])
        self.assertEqual(self.client.get(name), b"60")

    def test_nothing_is_lost_of_what_many_add(self):
        name, watched = key("adders"), key("watchers")

        def one_more(pipeline):
            value = int(pipeline.get(watched) or 0)
            pipeline.multi()
            pipeline.set(watched, value + 1)

        def add(number):
            client = self.connect(SECOND if SECOND and number % 2 else (HOST, PORT))
            for turn in range(ADDITIONS):
                client.incr(name)
                if turn % 10 == 0:
                    client.transaction(one_more, watched)

        threads = [threading.Thread(target=add, args=(number,)) for number in range(ADDERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.client.get(name), b"%d" % (ADDERS * ADDITIONS))
        self.assertEqual(self.client.get(watched), b"%d" % (ADDERS * ADDITIONS // 10))

    def test_a_discarded_or_wrong_transaction_changes_nothing(self):
        name = key("discarded")
        with self.client.pipeline() as pipeline:
            pipeline.set(name, 1)
            pipeline.reset()
        pipeline = self.client.pipeline()
        pipeline.set(name, 1).execute_command("NONSENSE")
        with self.assertRaises(redis.ResponseError):
            pipeline.execute()
        self.assertIsNone(self.client.get(name))

    def gone(self, name, client=None):
        """Waits until a key has expired."""
        deadline = time.monotonic() + TIMEOUT
        while (client or self.client).get(name) is not None:
            self.assertLess(time.monotonic(), deadline, f"{name} stays")

    def test_ends_are_set_told_and_dropped(self):
        name = key("ends")
        self.assertEqual([self.client.ttl(name), self.client.pttl(name)], [-2, -2])
        self.assertFalse(self.client.expire(name, 100))
        self.assertTrue(self.client.setex(name, 100, "1"))
        self.assertEqual(self.client.ttl(name), 100)
        self.assertTrue(80_000 < self.client.pttl(name) <= 100_000)
        self.assertEqual(self.client.incr(name), 2)
        self.assertEqual(self.client.ttl(name), 100)
        self.assertFalse(self.client.expire(name, 50, nx=True))
        self.assertFalse(self.client.expire(name, 50, gt=True))
        self.assertTrue(self.client.expire(name, 50, lt=True))
        self.assertEqual(self.client.ttl(name), 50)
        self.assertTrue(self.client.pexpire(name, 200_000, xx=True))
        self.assertEqual(self.client.ttl(name), 200)
        at = int(time.time()) + 1000
        self.assertTrue(self.client.expireat(name, at))
        self.assertEqual(self.client.expiretime(name), at)
        self.assertEqual(self.client.pexpiretime(name), at * 1000)
        self.assertTrue(self.client.set(name, "3", keepttl=True))
        self.assertEqual(self.client.expiretime(name), at)
        self.assertTrue(self.client.persist(name))
        self.assertFalse(self.client.persist(name))
        self.assertEqual(self.client.ttl(name), -1)
        self.assertEqual(self.client.getex(name, ex=30), b"3")
        self.assertEqual(self.client.ttl(name), 30)
        self.assertEqual(self.client.getex(name, persist=True), b"3")
        self.assertEqual(self.client.ttl(name), -1)
        self.assertTrue(self.client.expire(name, -1))
        self.assertFalse(self.client.exists(name))
        for wrong in (["SET", name, "x", "EX", "0"], ["SETEX", name, "-1", "x"]):
            with self.assertRaisesRegex(redis.ResponseError, "invalid expire time in"):
                self.client.execute_command(*wrong)

    def test_keys_expire_at_all_hosts(self):
        name = key("short")
        other = self.connect(SECOND or (HOST, PORT))
        self.assertTrue(self.client.set(name, "x", px=300))
        self.gone(name, other)
        self.assertIsNone(self.client.get(name))
        self.assertEqual([self.client.ttl(name), other.exists(name)], [-2, 0])

    def test_pipelines_with_ends(self):
        name = key("pipelined")
        pipeline = self.client.pipeline()
        pipeline.set(name, "1", ex=60).ttl(name).incr(name).persist(name).ttl(name)
        pipeline.expire(name, -1).get(name).set(name, "2", px=60_000, nx=True).ttl(name)
        told = [True, 60, 2, True, -1, True, None, True, 60]
        self.assertEqual(pipeline.execute(), told)

    def test_a_watched_key_that_expires_is_a_change(self):
        name, other = key("watched"), key("written")
        self.client.set(name, "x", px=200)
        with self.client.pipeline() as pipeline:
            pipeline.watch(name)
            self.gone(name)
            pipeline.multi()
            pipeline.set(other, 1)
            with self.assertRaises(redis.WatchError):
                pipeline.execute()
        self.assertIsNone(self.client.get(other))

    def release(self, name, token):
        """Frees a lock if it is still held under this token, without a script."""
        def compare_and_delete(pipeline):
            is_held = pipeline.get(name) == token
            pipeline.multi()
            if is_held:
                pipeline.delete(name)

        return self.client.transaction(compare_and_delete, name) == [1]

    def test_locks_have_timeouts(self):
        name = key("lock")
        one = self.client.lock(name, timeout=60, blocking=False)
        other = self.connect(SECOND or (HOST, PORT)).lock(name, timeout=60, blocking=False)
        self.assertTrue(one.acquire())
        self.assertFalse(other.acquire())
        self.assertTrue(one.owned() and not other.owned())
        self.assertEqual(self.client.ttl(name), 60)
        if IS_QUORATE:
            # They are scripts.
            for script in (one.release, one.reacquire, lambda: one.extend(5)):
                with self.assertRaises(redis.ResponseError):
                    script()
                one.local.token = self.client.get(name)
        self.assertFalse(self.release(name, b"another token"))
        self.assertTrue(self.release(name, one.local.token))
        self.assertTrue(other.acquire())
        # Whoever does not free it loses it in time.
        self.client.pexpire(name, 200)
        self.gone(name)
        self.assertTrue(one.acquire())

    def test_keys_are_renamed_and_copied_with_their_ends(self):
        one, two, three = key("one"), key("two"), key("three")
        with self.assertRaisesRegex(redis.ResponseError, "no such key"):
            self.client.rename(one, two)
        self.assertFalse(self.client.copy(one, two))
        self.client.set(one, "1", ex=1000)
        self.client.set(two, "2")
        self.assertFalse(self.client.renamenx(one, two))
        self.assertFalse(self.client.copy(one, two))
        self.assertTrue(self.client.copy(one, two, replace=True))
        self.assertTrue(self.client.rename(one, three))
        self.assertEqual(self.client.mget(one, two, three), [None, b"1", b"1"])
        for name in (two, three):
            self.assertTrue(990 < self.client.ttl(name) <= 1000)
        told = self.client.pipeline().set(one, "5").renamenx(one, two).rename(one, two).execute()
        self.assertEqual([bool(it) for it in told], [True, False, True])
        self.assertEqual((self.client.get(two), self.client.ttl(two)), (b"5", -1))

    @unittest.skipUnless(IS_QUORATE, "plain Redis can do these")
    def test_what_is_not_there_is_refused(self):
        name = key("refused")
        with self.assertRaises(redis.ResponseError):
            self.client.restore(name, 0, b"")
        with self.assertRaises(redis.ResponseError):
            self.client.eval("return 1", 0)
        self.assertIsNone(self.client.get(name))


class DefaultProtocol(Suite, unittest.TestCase):
    """RESP3."""

    protocol = 3


class Resp2(Suite, unittest.TestCase):
    """The older protocol on request."""

    protocol = 2


if __name__ == "__main__":
    unittest.main()
