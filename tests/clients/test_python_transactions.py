"""What only engines with transactions can do by the Python package.

QUORATE_BINARY   the server; the one with the example engine is beside it (`make example`)
QUORATE_PACKAGE  where the package was installed
"""

import os
import sys
import tempfile
import unittest

from native import until
from server import Cluster

sys.path.insert(0, os.environ["QUORATE_PACKAGE"])

from quorate import (  # noqa: E402  (installed just now)
    Add, After, Append, At, Check, Client, Delete, Expire, ExpireWhen, Get, GetLifetime, Keep, Kind,
    Lifetime, Persist, Put, PutIf, Refused, SetRange, Unmet,
)

EXAMPLE = os.path.join(os.path.dirname(os.environ["QUORATE_BINARY"]), "quorate-counter")
# Long enough for a busy machine; nothing here waits for it to pass.
TIMEOUT = 60


def connect(suite, binary, keyspace):
    """A client of a new cluster with this keyspace beside the usual one."""
    data = tempfile.TemporaryDirectory(prefix="quorate-python-")
    suite.addClassCleanup(data.cleanup)
    keyspaces = ["--keyspace", "default=linearizable", "--keyspace", keyspace]
    cluster = Cluster(binary, os.path.join(data.name, "data"), *keyspaces)
    suite.addClassCleanup(cluster.kill)
    cluster.start()
    client = Client([cluster.endpoint(1, "grpc")], timeout=TIMEOUT)
    suite.addClassCleanup(client.close)
    return client


class Example(unittest.TestCase):
    """The engine of `make example`."""

    @classmethod
    def setUpClass(cls):
        client = connect(cls, EXAMPLE, "hits=counter")
        cls.hits, cls.default = client.keyspace("hits"), client.keyspace("default")

    def test_items_are_done_in_their_order_or_not_at_all(self):
        items = [Check("a", exists=False), Put("a", "5"), Put("b", b"7"), Get("a"), Get("none"),
                 Check("a", exists=True), Delete("b"), Delete("none")]
        told = self.hits.transact(items)
        self.assertEqual(told, [None, None, None, b"5", None, None, True, False])
        self.assertEqual(self.hits.get("a").value, b"5")
        with self.assertRaises(Unmet) as caught:
            self.hits.transact([Put("a", "1"), Get("b"), Check("a", "5")])
        error = caught.exception
        self.assertEqual((error.item, error.kind), (2, Kind.CONFLICT))
        self.assertFalse(error.may_have_applied)
        told = self.hits.transact(iter([Check("a", "5"), Get("b"), Put("a", "1"), Get("a")]))
        self.assertEqual(told, [None, None, None, b"6"])

    def test_what_cannot_be_is_refused(self):
        for wrong in (lambda: Check("a"), lambda: Check("a", "5", exists=True)):
            self.assertRaises(ValueError, wrong)
        for items, field in (([], "items"), ([Put("a", "no number")], "value")):
            with self.assertRaises(Refused) as caught:
                self.hits.transact(items)
            self.assertEqual((caught.exception.kind, caught.exception.field), (Kind.INVALID, field))
            self.assertNotIsInstance(caught.exception, Unmet)
        for change in (Add("a", 1), Add("a", 0.5), Append("a", "x"), SetRange("a", 0, "x"),
                       PutIf("a", "x", exists=True)):
            with self.assertRaises(Refused) as caught:
                self.hits.transact([change])
            self.assertEqual(caught.exception.kind, Kind.UNSUPPORTED)
        with self.assertRaises(Refused) as caught:
            self.default.transact([Get("a")])
        self.assertEqual(caught.exception.kind, Kind.UNSUPPORTED)
        self.assertIn("counter", caught.exception.right)


class Serializable(unittest.TestCase):
    """The product's engine with transactions."""

    @classmethod
    def setUpClass(cls):
        client = connect(cls, os.environ["QUORATE_BINARY"], "bank=serializable")
        cls.bank, cls.default = client.keyspace("bank"), client.keyspace("default")

    def test_items_are_done_in_their_order_or_not_at_all(self):
        items = [Check("a", exists=False), Put("a", "5"), Put("b", b"text"), Get("a"), Get("none"),
                 Check("a", exists=True), Delete("b"), Delete("none")]
        told = self.bank.transact(items)
        self.assertEqual(told, [None, None, None, b"5", None, None, True, False])
        with self.assertRaises(Unmet) as caught:
            self.bank.transact([Put("a", "1"), Get("b"), Check("a", "6")])
        error = caught.exception
        self.assertEqual((error.item, error.kind), (2, Kind.CONFLICT))
        self.assertEqual(self.bank.get("a").value, b"5")

    def test_changes_are_done_where_values_stand(self):
        told = self.bank.transact([Add("n", 41), Add("n", 1), Append("t", "abc"), Get("n"),
                                   SetRange("t", 1, "_"), Get("t"), Add("f", 0.5)])
        self.assertEqual([told[at] for at in (0, 1, 2, 3, 5)], [41, 42, 3, b"42", b"a_c"])
        self.assertEqual(self.bank.get("f").value, b"0.5")
        self.bank.transact([PutIf("n", "7", exists=True)])
        self.assertEqual(self.bank.get("n").value, b"7")

    def test_keys_expire(self):
        def lifetime(name):
            return self.bank.transact([GetLifetime(name)])[0]

        for write in (
            lambda: self.bank.put("e", "v", expiry=After(200)),
            lambda: self.bank.transact([Put("e", "v", After(200))]),
            lambda: self.bank.transact([PutIf("e", "lock", exists=False, expiry=After(200))]),
        ):
            write()
            until(lambda: not self.bank.get("e").values, "the key is gone")
        self.assertEqual(lifetime("e"), Lifetime(False))
        self.bank.put("e", "v", expiry=After(600_000))
        self.bank.put("e", "w", expiry=Keep())
        self.assertTrue(0 < lifetime("e").remaining_ms <= 600_000)
        self.bank.put("e", "v")
        told = self.bank.transact([
            GetLifetime("e"), Expire("e", After(1), ExpireWhen.IF_SOME),
            Expire("e", At(1 << 60), ExpireWhen.IF_NONE), Persist("e"), Persist("e"),
            GetLifetime("e"),
        ])
        self.assertEqual(told, [Lifetime(True), False, True, True, False, Lifetime(True)])
        self.bank.transact([Expire("e", At(1))])
        self.assertEqual(self.bank.get("e").values, ())

    def test_how_one_ended_is_asked_with_a_token_of_the_keyspace(self):
        with self.assertRaises(Refused) as caught:
            self.bank.how_ended(bytes(43))
        self.assertEqual(caught.exception.kind, Kind.BAD_CONTEXT)
        self.assertEqual(caught.exception.field, "token")
        with self.assertRaises(Refused) as caught:
            self.default.how_ended(bytes(43))
        self.assertEqual(caught.exception.kind, Kind.UNSUPPORTED)

    def test_an_expiry_that_cannot_be_is_refused(self):
        for wrong in (0, -1, 1 << 62):
            self.assertRaises(ValueError, After, wrong)
            self.assertRaises(ValueError, At, wrong)
        with self.assertRaises(Refused) as caught:
            self.default.put("e", "v", expiry=After(200))
        self.assertEqual(caught.exception.kind, Kind.UNSUPPORTED)
        self.assertIn("serializable", caught.exception.right)


if __name__ == "__main__":
    unittest.main()
