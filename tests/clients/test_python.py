"""The Python package as users have it, against a cluster of its own that is cut, killed and healed.

QUORATE_BINARY   the server
QUORATE_PACKAGE  where the package was installed
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request
import uuid

from python_proxy import Proxy
from server import Cluster

PACKAGE = os.environ["QUORATE_PACKAGE"]
sys.path.insert(0, PACKAGE)

from quorate import (  # noqa: E402  (installed just now)
    Client, Entry, KeyspaceInfo, Kind, OutcomeUnknown, Reading, Refused, SiblingsError, Unreachable,
)
from quorate.v1 import error_pb2  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.path.join(HERE, "..", "..", "clients", "python")
BINARY = os.environ["QUORATE_BINARY"]
# Long enough for a busy machine; nothing here waits for it to pass.
TIMEOUT = 60


def setUpModule():
    global place, cluster, hosts
    place = tempfile.TemporaryDirectory(prefix="quorate-python-")
    unittest.addModuleCleanup(place.cleanup)
    cluster = Cluster(BINARY, os.path.join(place.name, "data"))
    unittest.addModuleCleanup(cluster.kill)
    cluster.start()
    hosts = [cluster.endpoint(number, "grpc") for number in (1, 2, 3)]


def tearDownModule():
    cluster.stop()


def ctl(*order):
    """Steers the cluster."""
    command = [BINARY, "dev", "ctl", "--data", os.path.join(place.name, "data"), *order]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def puts():
    """How many writes of the keyspace `default` host 1 has done."""
    name = 'quorate_requests_total{keyspace="default",engine="linearizable",op="put",outcome="ok"}'
    with urllib.request.urlopen(f"http://{cluster.endpoint(1, 'http')}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return sum(int(line.removeprefix(name)) for line in lines if line.startswith(name))


def wait_until(is_so):
    """Waits for what must happen soon."""
    deadline = time.monotonic() + TIMEOUT
    while not is_so():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.01)


def key(name):
    """A key that no other test has used."""
    return f"{name}:{uuid.uuid4().hex}"


class Package(unittest.TestCase):
    def client(self, *addresses, timeout=TIMEOUT):
        client = Client(list(addresses) or hosts, timeout=timeout)
        self.addCleanup(client.close)
        return client

    def keyspace(self, name, *addresses):
        return self.client(*addresses).keyspace(name)

    def test_what_was_generated_is_what_the_schema_says(self):
        command = [sys.executable, os.path.join(PYTHON, "generate.py"), "--check"]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual({kind.value for kind in Kind}, set(error_pb2.Kind.values()))
        for name in ("py.typed", os.path.join("v1", "kv_pb2.pyi")):
            self.assertTrue(os.path.exists(os.path.join(PACKAGE, "quorate", name)), name)

    def test_addresses_are_checked_before_anything_is_sent(self):
        for bad in ("", "nowhere", "a b:1", "http://x:1", "x:99999"):
            with self.assertRaisesRegex(ValueError, "NAME:PORT"):
                Client([bad])
        for none in ([], "x:1"):
            with self.assertRaises(ValueError):
                Client(none)
        self.client("[::1]:7414", "kv.example:7414")

    def test_where_nobody_listens_nothing_was_changed(self):
        keyspace = self.client("127.0.0.1:1", timeout=0.5).keyspace("default")
        for call in (lambda: keyspace.get("k"), lambda: keyspace.put("k", "v")):
            with self.assertRaises(Unreachable) as caught:
                call()
            self.assertFalse(caught.exception.may_have_applied)

    def test_values(self):
        first, second = self.keyspace("default", hosts[0]), self.keyspace("default", hosts[1])
        name = key("value")
        self.assertEqual(first.get(name), Reading(()))
        self.assertIsNone(first.get(name).value)
        for value in (b"", b"\x00\xff", "grüß", os.urandom(1 << 20)):
            self.assertEqual(first.put(name, value), b"")
            expected = value.encode() if isinstance(value, str) else value
            self.assertEqual(second.get(name), Reading((expected,)))
        self.assertRaisesRegex(TypeError, "str or bytes", first.put, name, 5)
        self.assertIs(second.delete(name), True)
        self.assertIs(second.delete(name), False)

    def test_batches_and_listings(self):
        keyspace, base = self.keyspace("default"), key("list")
        names = {f"{base}:{index}".encode() for index in range(40)}
        for name in names:
            keyspace.put(name, name)
        readings = keyspace.batch_get([*sorted(names), base])
        self.assertEqual([reading.value for reading in readings], [*sorted(names), None])
        listed = keyspace.scan(values=True, page_keys=7)
        listed = [entry for entry in listed if entry.key.startswith(base.encode())]
        self.assertEqual(len(listed), len(names))
        self.assertEqual({entry.key for entry in listed}, names)
        self.assertTrue(all(entry.reading == Reading((entry.key,)) for entry in listed))
        bare = [entry for entry in keyspace.scan() if entry.key in names]
        self.assertEqual(bare, [Entry(entry.key) for entry in listed])

    def test_errors_say_what_was_wrong_and_what_is_right(self):
        default, causal = self.keyspace("default"), self.keyspace("causal")
        none = self.keyspace("none")
        name = key("error")
        cases = [
            (lambda: none.get(name), Kind.NO_KEYSPACE, "keyspace", "causal"),
            (lambda: none.put(name, "v"), Kind.NO_KEYSPACE, "keyspace", "causal"),
            (lambda: default.get("k" * 70_000), Kind.TOO_LARGE, "key", "shorter"),
            (lambda: default.put(name, "v", context=b"c"), Kind.UNSUPPORTED, "", "causal"),
            (lambda: default.get(name, replicas=1), Kind.UNSUPPORTED, "", "leave"),
            (lambda: causal.put(name, "v", context=b"c"), Kind.BAD_CONTEXT, "context", "as it was"),
            (lambda: default.update(name, max), Kind.UNSUPPORTED, "", "causal"),
            (lambda: next(default.scan(start="a")), Kind.UNSUPPORTED, "", "order=key"),
        ]
        for call, kind, field, right in cases:
            with self.assertRaises(Refused) as caught:
                call()
            error = caught.exception
            self.assertIn(right, error.right)
            self.assertEqual((error.kind, error.field), (kind, field), error)
            self.assertFalse(error.may_have_applied)
            self.assertEqual(str(error), f"{error.what}; {error.right}")

    def test_keyspaces_come_change_and_go(self):
        admin, name = self.client().admin, f"made-{uuid.uuid4().hex}"
        admin.create(name, settings={"value": "1KiB", "durability": "memory"})
        info = KeyspaceInfo(name=name, engine="linearizable", durability="memory", replicas=3,
                            value_bytes_max=1024, is_ordered=False, is_ready=True, mode="atomic")
        for host in hosts:
            listed = self.client(host).admin.list
            wait_until(lambda: info in listed())
        shown = admin.show(name)
        value, fixed = shown.settings["value"], shown.settings["durability"]
        self.assertEqual((value.value, value.is_alterable), ("1024", True))
        self.assertEqual((fixed.value, fixed.default), ("memory", "sync"))
        self.assertFalse(fixed.is_alterable)
        self.assertTrue(value.altering and fixed.altering)
        keyspace = self.keyspace(name)
        with self.assertRaises(Refused) as caught:
            keyspace.put("k", "v" * 2_000)
        self.assertEqual(caught.exception.kind, Kind.TOO_LARGE)
        admin.alter(name, {"value": "4KiB"})
        self.assertEqual(admin.show(name).settings["value"].value, "4096")
        self.assertGreater(admin.show(name).changed, shown.changed)
        for host in hosts:
            wait_until(lambda: self.client(host).admin.show(name).changed > shown.changed)
        keyspace.put("k", "v" * 2_000)
        admin.drop(name)
        for host in hosts:
            wait_until(lambda: name not in [one.name for one in self.client(host).admin.list()])
        with self.assertRaises(Refused) as caught:
            keyspace.get("k")
        self.assertEqual(caught.exception.kind, Kind.NO_KEYSPACE)
        admin.create(name, engine="causal", settings={"partitions": "9", "replicas": "1"})
        self.addCleanup(admin.drop, name)
        again = admin.show(name)
        self.assertGreater(again.created, shown.created)
        self.assertEqual([place.partition for place in again.partitions], list(range(9)))
        # One partition goes to a host that holds another one.
        first = again.partitions[0]
        other = next(place.node for place in again.partitions if place.node != first.node)
        admin.replace(name, 0, f"{other:016x}")
        wait_until(lambda: admin.show(name).partitions[0].node == other)

    def test_an_order_that_cannot_be_is_told_what_is_wrong(self):
        admin = self.client().admin
        cases = [
            (lambda: admin.show("none"), Kind.NO_KEYSPACE, "keyspace", "causal"),
            (lambda: admin.create("default"), Kind.EXISTS, "name", "another name"),
            (lambda: admin.create("9"), Kind.INVALID, "name", "form"),
            (lambda: admin.create("x", engine="magic"), Kind.INVALID, "engine", "linearizable"),
            (lambda: admin.create("x", settings={"order": "size"}),
             Kind.INVALID, "settings.order", "hash or key"),
            (lambda: admin.alter("default", {"order": "key"}),
             Kind.CONFLICT, "settings.order", "altered"),
            (lambda: admin.alter("none", {"value": "1KiB"}), Kind.NO_KEYSPACE, "name", "lists"),
            (lambda: admin.drop("none"), Kind.NO_KEYSPACE, "name", "lists"),
            (lambda: admin.replace("causal", 0, "nobody"), Kind.INVALID, "host", "ring"),
        ]
        for call, kind, field, right in cases:
            with self.assertRaises(Refused) as caught:
                call()
            error = caught.exception
            self.assertEqual((error.kind, error.field), (kind, field), error)
            self.assertIn(right, error.right)
            self.assertFalse(error.may_have_applied)

    def test_an_order_whose_answer_is_lost_is_unknown_and_not_given_again(self):
        proxy, name = Proxy(hosts[0]), f"lost-{uuid.uuid4().hex}"
        self.addCleanup(proxy.close)
        admin = self.client(proxy.address, hosts[1]).admin
        admin.list()
        proxy.lose()
        with self.assertRaises(OutcomeUnknown) as caught:
            admin.create(name)
        self.assertIn("show", caught.exception.right)
        self.assertFalse(proxy.is_losing(), "an answer was lost")
        # It was taken all the same, once.
        second = self.client(hosts[1]).admin
        wait_until(lambda: name in [one.name for one in second.list()])
        with self.assertRaises(Refused) as caught:
            second.create(name)
        self.assertEqual(caught.exception.kind, Kind.EXISTS)
        second.drop(name)

    def test_siblings_stay_until_somebody_has_seen_them(self):
        keyspace, name = self.keyspace("causal", hosts[0]), key("siblings")
        absent = keyspace.get(name)
        self.assertEqual(absent.values, ())
        self.assertIsNotNone(absent.context)
        keyspace.put(name, "ale")
        keyspace.put(name, "bread")
        seen = keyspace.get(name)
        self.assertEqual(set(seen.values), {b"ale", b"bread"})
        with self.assertRaises(SiblingsError) as caught:
            seen.value
        self.assertEqual(set(caught.exception.values), {b"ale", b"bread"})
        next_context = keyspace.put(name, "both", context=seen.context)
        self.assertEqual(keyspace.get(name).value, b"both")
        # What was seen long ago replaces nothing that came since.
        keyspace.put(name, "late", context=seen.context)
        self.assertEqual(set(keyspace.get(name).values), {b"both", b"late"})
        keyspace.put(name, "more", context=next_context)
        self.assertEqual(set(keyspace.get(name).values), {b"more", b"late"})
        with self.assertRaises(Refused) as caught:
            keyspace.put(key("other"), "v", context=seen.context)
        self.assertEqual(caught.exception.kind, Kind.BAD_CONTEXT)
        self.assertIsNone(keyspace.delete(name, context=keyspace.get(name).context))
        self.assertEqual(keyspace.get(name).values, ())

    def test_updates_at_the_same_time_lose_nothing(self):
        name, count, rounds = key("update"), 4, 10

        def union(values):
            return b",".join(sorted({part for value in values for part in value.split(b",")}))

        def add(number):
            keyspace = self.keyspace("causal", hosts[number % 3])
            for turn in range(rounds):
                item = f"{number}-{turn}".encode()
                keyspace.update(name, lambda values: union([*values, item]))

        threads = [threading.Thread(target=add, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # Read at all replicas, so nothing can be on its way still.
        everything = self.keyspace("causal").get(name, replicas=3).values
        wanted = {f"{number}-{turn}" for number in range(count) for turn in range(rounds)}
        self.assertEqual(set(union(everything).decode().split(",")), wanted)

    def test_an_update_may_remove_all(self):
        keyspace, name = self.keyspace("causal", hosts[0]), key("remove")
        self.assertIsNone(keyspace.update(name, lambda values: None))
        self.assertEqual(keyspace.update(name, lambda values: "v"), b"v")
        before = keyspace.get(name)
        self.assertEqual(keyspace.update(name, lambda values: values[0]), b"v")
        self.assertEqual(keyspace.get(name), before, "it was there already")
        self.assertIsNone(keyspace.update(name, lambda values: None))
        self.assertEqual(keyspace.get(name).values, ())

    def test_a_write_whose_answer_is_lost_is_done_once(self):
        proxy = Proxy(hosts[0])
        self.addCleanup(proxy.close)
        keyspace, name = self.keyspace("default", proxy.address), key("once")
        keyspace.put(name, "first")
        for turn in range(3):
            before = puts()
            proxy.lose()
            keyspace.put(name, f"turn {turn}")
            self.assertFalse(proxy.is_losing(), "an answer was lost")
            self.assertEqual(puts() - before, 1)
            self.assertEqual(keyspace.get(name).value, f"turn {turn}".encode())

    def test_a_write_that_another_host_is_asked_about_is_unknown(self):
        proxy = Proxy(hosts[0])
        self.addCleanup(proxy.close)
        keyspace, name = self.keyspace("default", proxy.address), key("unknown")
        keyspace.put(name, "first")
        proxy.lose(then=hosts[1])
        with self.assertRaises(OutcomeUnknown) as caught:
            keyspace.put(name, "second")
        self.assertTrue(caught.exception.may_have_applied)
        self.assertEqual(caught.exception.kind, Kind.OUTCOME_UNKNOWN)
        self.assertFalse(proxy.is_losing(), "an answer was lost")

    def test_a_causal_write_whose_answer_is_lost_is_one_value_wherever_it_is_done_again(self):
        proxy = Proxy(hosts[0])
        self.addCleanup(proxy.close)
        name = key("folded")
        for turn in range(1, 4):
            # A client begins at its first host.
            keyspace = self.keyspace("causal", proxy.address, hosts[1])
            keyspace.put(key("before"), "v")
            proxy.lose()
            keyspace.put(name, f"turn {turn}")
            self.assertFalse(proxy.is_losing(), "an answer was lost")
            self.assertEqual(len(keyspace.get(name, replicas=3).values), turn)

    def test_calls_go_on_at_another_host_when_one_dies(self):
        name = key("killed")
        spaces = [self.keyspace(space) for space in ("default", "causal")]
        for keyspace in spaces:
            keyspace.put(name, "before")
        # One host is enough for a causal write: the others must have heard of it.
        for host in hosts[1:]:
            wait_until(lambda: self.keyspace("causal", host).get(name).value == b"before")
        ctl("kill", "1")
        try:
            for keyspace in spaces:
                reading = keyspace.get(name)
                self.assertEqual(reading.value, b"before")
                keyspace.put(name, "after", context=reading.context)
                self.assertEqual(keyspace.get(name).value, b"after")
        finally:
            ctl("start", "1")

    def test_a_host_that_hangs_does_not_use_up_the_time(self):
        # A part of it is for the host that hangs; the rest is long enough for a busy disk.
        name, timeout = key("frozen"), 30
        clients = [self.client(timeout=timeout) for _ in range(2)]
        for client in clients:
            client.keyspace("causal").get(name)
        ctl("freeze", "1")
        try:
            clients[0].keyspace("causal").put(name, "v")
            self.assertEqual(clients[1].keyspace("causal").get(name, replicas=2).value, b"v")
        finally:
            ctl("thaw", "1")

    def test_the_examples_of_the_readme_do_what_they_say(self):
        with open(os.path.join(PYTHON, "README.md"), encoding="utf-8") as file:
            blocks = file.read().split("```python\n")[1:]
        code = "".join(block.partition("```")[0] for block in blocks)
        for number, port in enumerate(("7414", "7424", "7434"), 1):
            code = code.replace(f"127.0.0.1:{port}", cluster.endpoint(number, "grpc"))
        names = {"print": lambda *words: None}
        exec(compile(code, "README.md", "exec"), names)
        carts = self.keyspace("causal").get("cart", replicas=3)
        self.assertEqual(set(carts.value.split(b",")), {b"ale", b" bread", b"figs"})

    def test_the_cart_of_the_example_loses_nothing(self):
        data = os.path.join(place.name, "data")
        command = [sys.executable, os.path.join(PYTHON, "examples", "cart.py")]
        command += ["--ann", hosts[0], "--bob", hosts[1]]
        command += ["--cut", f"{BINARY} dev ctl --data {data}"]
        environment = dict(os.environ, PYTHONPATH=PACKAGE)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for line in (
            "== partition 1 2,3",
            "Ann adds cheese: ale, bread, cheese",
            "Bob adds eggs: ale, bread, dates, eggs",
            "== heal",
            "the cart has 2 values, one of each side of the cut",
            "Ann adds figs: ale, bread, cheese, dates, eggs, figs",
            "the cart has 1 value, and nothing was lost",
        ):
            self.assertIn(line, done.stdout.splitlines())


if __name__ == "__main__":
    unittest.main()
