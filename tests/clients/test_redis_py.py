"""redis-py, with RESP3 (its default) and RESP2."""

import json
import threading
import unittest

import redis

from endpoint import HOST, IS_QUORATE, PORT, REASON, REFUSED, SECOND, key

TIMEOUT = 30


class Suite:
    """What holds for either protocol."""

    protocol = None

    def connect(self, address=(HOST, PORT), **settings):
        if self.protocol is not None:
            settings["protocol"] = self.protocol
        host, port = address
        client = redis.Redis(host=host, port=port, socket_timeout=TIMEOUT, **settings)
        self.addCleanup(client.close)
        return client

    def setUp(self):
        self.client = self.connect()

    def test_values(self):
        name = key("value")
        self.assertTrue(self.client.ping())
        self.assertIsNone(self.client.get(name))
        self.assertTrue(self.client.set(name, b"\x00\xff\r\n"))
        self.assertEqual(self.client.get(name), b"\x00\xff\r\n")
        self.assertEqual(self.client.strlen(name), 4)
        self.assertEqual(self.client.getrange(name, 1, 1), b"\xff")
        self.assertEqual(self.client.type(name), b"string")
        self.assertEqual(self.client.ttl(name), -1)
        self.assertEqual(self.client.pttl(name), -1)
        self.assertEqual(self.client.exists(name, name), 2)
        self.assertEqual(self.client.delete(name), 1)
        self.assertEqual(self.client.ttl(name), -2)

    def test_empty_value_is_a_value(self):
        name = key("empty")
        self.client.set(name, b"")
        self.assertEqual(self.client.get(name), b"")
        self.assertEqual(self.client.exists(name), 1)

    def test_many_keys(self):
        names = [key(f"many{index}") for index in range(20)]
        self.assertTrue(self.client.mset({name: name for name in names[1:]}))
        expected = [None] + [name.encode() for name in names[1:]]
        self.assertEqual(self.client.mget(names), expected)
        self.assertEqual(self.client.unlink(*names), 19)
        self.assertEqual(self.client.mget(names), [None] * 20)

    def test_decoded_responses(self):
        client = self.connect(decode_responses=True)
        name = key("naïve ☂")
        client.set(name, "ünïcode")
        self.assertEqual(client.get(name), "ünïcode")
        self.assertEqual(client.keys(name), [name])

    def test_pipeline(self):
        base = key("pipeline")
        pipeline = self.client.pipeline(transaction=False)
        for index in range(500):
            pipeline.set(f"{base}:{index}", index)
            pipeline.get(f"{base}:{index}")
        replies = pipeline.execute()
        self.assertEqual(replies[0::2], [True] * 500)
        self.assertEqual(replies[1::2], [b"%d" % index for index in range(500)])

    @unittest.skipUnless(IS_QUORATE, "plain Redis keeps no siblings")
    def test_siblings_and_contexts(self):
        name = key("siblings")
        client = self.connect(single_connection_client=True)
        client.execute_command("SELECT", "causal")
        context, values = client.execute_command("CGET", name)
        self.assertEqual(values, [])
        first = client.execute_command("CSET", name, context, b"\x00ale")
        self.assertEqual(client.get(name), b"\x00ale")
        self.assertEqual(client.execute_command("CSET", name, b"", b"bread"), b"")
        context, values = client.execute_command("CGET", name)
        self.assertEqual(sorted(values), [b"\x00ale", b"bread"])
        with self.assertRaisesRegex(redis.ResponseError, "SIBLINGS the key has 2 siblings"):
            client.get(name)
        client.execute_command("CSET", name, first, b"stout")
        _, values = client.execute_command("CGET", name)
        self.assertEqual(sorted(values), [b"bread", b"stout"])
        client.execute_command("CSET", name, context, b"late")
        _, values = client.execute_command("CGET", name)
        self.assertEqual(sorted(values), [b"late", b"stout"], "what it had not seen stays")
        with self.assertRaisesRegex(redis.ResponseError, "context is damaged"):
            client.execute_command("CSET", name, b"made up", b"x")
        with self.assertRaisesRegex(redis.ResponseError, "another key or keyspace"):
            client.execute_command("CSET", name + "x", context, b"x")
        self.assertIn(name.encode(), set(client.scan_iter(match=name, count=1000)))
        context, _ = client.execute_command("CGET", name)
        client.execute_command("CDEL", name, context)
        self.assertIsNone(client.get(name))
        client.execute_command("SELECT", "default")
        with self.assertRaisesRegex(redis.ResponseError, "this keyspace is linearizable: use GET"):
            client.execute_command("CGET", name)

    def test_an_error_in_a_pipeline_stays_in_its_place(self):
        name = key("error")
        pipeline = self.client.pipeline(transaction=False)
        pipeline.set(name, "x").execute_command("NONSENSE").get(name)
        replies = pipeline.execute(raise_on_error=False)
        self.assertIsInstance(replies[1], redis.ResponseError)
        self.assertEqual([replies[0], replies[2]], [True, b"x"])

    def test_scan(self):
        base = key("scan")
        expected = {f"{base}:{index}".encode() for index in range(300)}
        self.client.mset({name: "v" for name in expected})
        found = list(self.client.scan_iter(match=f"{base}:*", count=50))
        self.assertEqual(set(found), expected)
        self.assertIsNotNone(self.client.randomkey())
        self.assertGreater(self.client.dbsize(), 0)

    def test_looking_around(self):
        info = self.client.info()
        self.assertEqual(info["redis_mode"], "standalone")
        self.assertEqual(info["loading"], 0)
        self.assertIn("save", self.client.config_get("save"))
        self.assertEqual(len(self.client.time()), 2)
        self.assertTrue(self.client.client_setname("suite"))
        self.assertEqual(self.client.echo("hello"), b"hello")
        self.assertGreater(self.client.command_count(), 30)

    def test_pool_shared_by_threads(self):
        pool = redis.BlockingConnectionPool(
            host=HOST, port=PORT, protocol=self.protocol or 3, max_connections=8, timeout=TIMEOUT
        )
        self.addCleanup(pool.disconnect)
        base, wrong = key("pool"), []

        def work(number):
            client = redis.Redis(connection_pool=pool)
            for index in range(50):
                client.set(f"{base}:{number}", index)
                if client.get(f"{base}:{number}") != b"%d" % index:
                    wrong.append((number, index))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TIMEOUT)
        self.assertFalse(any(thread.is_alive() for thread in threads))
        self.assertEqual(wrong, [])

    def test_error_replies(self):
        with self.assertRaisesRegex(redis.ResponseError, "unknown command 'NONSENSE'"):
            self.client.execute_command("NONSENSE", "a")
        with self.assertRaisesRegex(redis.ResponseError, "wrong number of arguments for 'get'"):
            self.client.execute_command("GET")
        with self.assertRaisesRegex(redis.RedisError, "without any password configured"):
            self.client.execute_command("AUTH", "secret")

    @unittest.skipUnless(IS_QUORATE, "plain Redis tells nothing of keyspaces and hosts")
    def test_what_happens_is_followed(self):
        listener = self.client.pubsub()
        self.addCleanup(listener.close)
        listener.subscribe("events")
        told = []
        while "current" not in told:
            message = listener.get_message(timeout=TIMEOUT)
            self.assertIsNotNone(message)
            if message["type"] == "message":
                self.assertEqual(message["channel"], b"events")
                told.append(json.loads(message["data"])["event"])
        self.assertIn("keyspace-present", told)
        self.assertIn("host-present", told)
        listener.ping()
        self.assertEqual(listener.get_message(timeout=TIMEOUT)["type"], "pong")
        listener.unsubscribe()
        self.assertEqual(listener.get_message(timeout=TIMEOUT)["type"], "unsubscribe")

    @unittest.skipUnless(SECOND, "one host only")
    def test_a_write_is_read_at_another_host(self):
        other = self.connect(SECOND)
        name = key("replicated")
        for index in range(100):
            self.client.set(name, index)
            self.assertEqual(other.get(name), b"%d" % index)
        self.assertEqual(other.delete(name), 1)
        self.assertIsNone(self.client.get(name))

    @unittest.skipUnless(IS_QUORATE, "plain Redis can do these")
    def test_refusals(self):
        for words, advice in REFUSED:
            with self.subTest(" ".join(words)):
                with self.assertRaisesRegex(redis.ResponseError, REASON) as caught:
                    self.client.execute_command(*words)
                self.assertIn(advice, str(caught.exception))
            if words == ["MULTI"]:
                self.client.execute_command("DISCARD")
        self.assertTrue(self.client.ping())

    @unittest.skipUnless(IS_QUORATE, "plain Redis can do these")
    def test_nothing_of_a_refused_transaction_is_executed(self):
        name = key("multi")
        with self.assertRaises(redis.RedisError):
            self.client.pipeline(transaction=True).set(name, "x").execute()
        self.assertIsNone(self.client.get(name))


class DefaultProtocol(Suite, unittest.TestCase):
    """Without settings redis-py speaks RESP3 and has no fallback."""

    def test_hello_agreed_on_resp3(self):
        self.assertEqual(self.client.execute_command("HELLO")[b"proto"], 3)


class Resp2(Suite, unittest.TestCase):
    """The older protocol on request."""

    protocol = 2

    def test_no_hello_was_needed(self):
        reply = self.client.execute_command("HELLO")
        fields = dict(zip(reply[0::2], reply[1::2])) if isinstance(reply, list) else reply
        self.assertEqual(fields[b"proto"], 2)


if __name__ == "__main__":
    unittest.main()
