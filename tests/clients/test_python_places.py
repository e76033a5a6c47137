"""What the Python package has seen of keyspaces whose answers come with receipts.

QUORATE_BINARY   the server
QUORATE_PACKAGE  where the package was installed
"""

import os
import sys
import tempfile
import unittest
import uuid

from native import until
from server import Cluster

sys.path.insert(0, os.environ["QUORATE_PACKAGE"])

from quorate import Client, Refused  # noqa: E402  (installed just now)

# Long enough for a busy machine; nothing here waits for it to pass.
TIMEOUT = 60


class Places(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        data = tempfile.TemporaryDirectory(prefix="quorate-python-")
        cls.addClassCleanup(data.cleanup)
        cluster = Cluster(os.environ["QUORATE_BINARY"], os.path.join(data.name, "data"))
        cls.addClassCleanup(cluster.kill)
        cluster.start()
        cls.hosts = [cluster.endpoint(number, "grpc") for number in (1, 2, 3)]
        cls.client = Client(cls.hosts, timeout=TIMEOUT)
        cls.addClassCleanup(cls.client.close)

    def test_what_was_written_is_seen_at_another_host(self):
        admin, name = self.client.admin, f"fleet-{uuid.uuid4().hex}"
        settings = {"round_ms": "10"}
        admin.create(name, engine="epidemic", settings=settings)
        keyspace = self.client.keyspace(name)
        for turn in range(6):
            value = str(turn).encode()
            keyspace.put("k", value)
            # The next host is asked: only the token tells it what it must have.
            self.client._hosts.prefer(self.client._hosts.preferred + 1)
            reading = keyspace.get("k")
            self.assertEqual((reading.value, reading.context), (value, None))
            self.assertGreaterEqual(reading.acks, 1)
            self.client._hosts.prefer(self.client._hosts.preferred + 1)
            both = keyspace.batch_get(["none", "k"])
            self.assertEqual([one.value for one in both], [None, value])
        self.assertTrue(keyspace.delete("k"))
        self.assertIsNone(keyspace.get("k").value)
        with self.assertRaises(Refused) as caught:
            keyspace.get("k", version=1)
        self.assertIn("version", caught.exception.what)
        # What was seen of a keyspace that was made anew is forgotten.
        admin.drop(name)
        for host in self.hosts:
            with Client([host], timeout=TIMEOUT) as one:
                until(lambda: name not in [it.name for it in one.admin.list()], "it is gone")
        admin.create(name, engine="epidemic", settings=settings)
        self.addCleanup(admin.drop, name)
        keyspace.put("k", "anew")
        self.assertEqual(keyspace.get("k").value, b"anew")

    def test_versions_of_clients_have_no_order(self):
        admin, name = self.client.admin, f"loose-{uuid.uuid4().hex}"
        admin.create(name, engine="epidemic", settings={"level": "none", "round_ms": "10"})
        self.addCleanup(admin.drop, name)
        keyspace = self.client.keyspace(name)
        keyspace.put("k", "b", version=2)
        keyspace.put("k", "a", version=1)
        until(lambda: keyspace.get("k", version=1).value == b"a", "it is there")
        until(lambda: keyspace.get("k", version=2).value == b"b", "it is there")
        keyspace.put("k", "a", version=1)
        self.assertIsNone(keyspace.get("k", version=3).value)


if __name__ == "__main__":
    unittest.main()
