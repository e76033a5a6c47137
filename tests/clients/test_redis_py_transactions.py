"""redis-py on a keyspace with transactions: counters, pipelines as they are by default, WATCH."""

import threading
import unittest

import redis

from endpoint import HOST, IS_QUORATE, NO_ENGINE, PORT, SECOND, key

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

    @unittest.skipUnless(IS_QUORATE, "plain Redis can do these")
    def test_what_is_not_there_is_refused(self):
        name = key("expiring")
        for words in (["SET", name, "x", "EX", "10"], ["SETEX", name, "10", "x"],
                      ["EXPIRE", name, "10"], ["PERSIST", name]):
            with self.subTest(words[0]), self.assertRaisesRegex(redis.ResponseError, NO_ENGINE):
                self.client.execute_command(*words)
        with self.assertRaises(redis.ResponseError):
            self.client.rename(name, key("other"))
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
