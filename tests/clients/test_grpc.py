"""The native API by grpcio, with code generated from the schema by Google's own compiler."""

import os
import unittest
import uuid

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from grpc_status import rpc_status

import native
from native import GRPC, GRPC_SECOND, key, until

native.generate()

from quorate.v1 import (  # noqa: E402  (generated just now)
    admin_pb2, admin_pb2_grpc, common_pb2, error_pb2, kv_pb2, kv_pb2_grpc,
)

TIMEOUT = 30


def error_of(caught):
    """The typed error in the details of a failed call."""
    status = rpc_status.from_call(caught.exception)
    error = error_pb2.Error()
    assert status.details[0].Unpack(error), status
    return error


class Grpc(unittest.TestCase):
    """What a client in another language sees."""

    def setUp(self):
        self.channel = grpc.insecure_channel(
            GRPC, options=[("grpc.max_receive_message_length", 64 << 20)]
        )
        self.addCleanup(self.channel.close)
        second = grpc.insecure_channel(GRPC_SECOND)
        self.addCleanup(second.close)
        self.kv = kv_pb2_grpc.KvStub(self.channel)
        self.second = kv_pb2_grpc.KvStub(second)
        self.admin = admin_pb2_grpc.AdminStub(self.channel)

    def put(self, name, value, stub=None, **more):
        request = kv_pb2.PutRequest(keyspace="default", key=name, value=value, **more)
        return (stub or self.kv).Put(request, timeout=TIMEOUT)

    def get(self, name, stub=None):
        request = kv_pb2.GetRequest(keyspace="default", key=name)
        return (stub or self.kv).Get(request, timeout=TIMEOUT).reading

    def test_transactions(self):
        name, other = key("stock").encode(), key("sold").encode()
        item, change = kv_pb2.Item, kv_pb2.Change

        def transact(stub, *items):
            request = kv_pb2.TransactRequest(keyspace="serializable", items=items)
            return stub.Transact(request, timeout=TIMEOUT).answers

        sold = item(key=other, change=change(add=1))
        told = transact(self.kv, item(key=name, put=b"7"), sold,
                        item(key=name, get=kv_pb2.Read()))
        self.assertEqual(told[1].changed.integer, 1)
        self.assertEqual(told[2].reading.value, b"7")
        wrong = item(key=name, check=kv_pb2.Condition(value=b"6"))
        with self.assertRaises(grpc.RpcError) as caught:
            transact(self.second, wrong, sold)
        self.assertEqual(error_of(caught).field, "items[0]")
        check = item(key=name, check=kv_pb2.Condition(value=b"7"))
        told = transact(self.second, check, item(key=name, delete=kv_pb2.Removal()), sold)
        self.assertTrue(told[1].existed)
        self.assertEqual(told[2].changed.integer, 2)

    def test_keys_expire(self):
        name = key("session").encode()
        soon, late = kv_pb2.Expiry(after_ms=200), kv_pb2.Expiry(after_ms=600_000)
        item = kv_pb2.Item

        def put(keyspace="serializable", **more):
            request = kv_pb2.PutRequest(keyspace=keyspace, key=name, value=b"v", **more)
            return self.kv.Put(request, timeout=TIMEOUT)

        def exists():
            request = kv_pb2.GetRequest(keyspace="serializable", key=name)
            reading = self.second.Get(request, timeout=TIMEOUT).reading
            return reading.WhichOneof("state") == "value"

        def transact(*items):
            request = kv_pb2.TransactRequest(keyspace="serializable", items=items)
            return self.kv.Transact(request, timeout=TIMEOUT).answers

        lifetime = item(key=name, lifetime=kv_pb2.Read())
        put(expiry=soon)
        until(lambda: not exists(), "the key is gone")
        self.assertEqual(transact(lifetime)[0].lifetime.WhichOneof("state"), "absent")
        # A time that counts from now on is the same request when it is sent again later.
        options = common_pb2.WriteOptions(request_id=uuid.uuid4().bytes)
        first = put(expiry=late, options=options)
        options.repeat.coordinator.CopyFrom(first.coordinator)
        options.repeat.age_ms = 10
        self.assertTrue(put(expiry=late, options=options).is_repeated)
        self.assertTrue(0 < transact(lifetime)[0].lifetime.remaining_ms <= 600_000)
        put(expiry=kv_pb2.Expiry(keep=kv_pb2.Keep()))
        self.assertTrue(transact(lifetime)[0].lifetime.remaining_ms)
        put()
        if_some = kv_pb2.Expire(after_ms=1, when=kv_pb2.EXPIRE_WHEN_IF_SOME)
        told = transact(lifetime, item(key=name, expire=if_some),
                        item(key=name, expire=kv_pb2.Expire(at_ms=1 << 60)),
                        item(key=name, persist=kv_pb2.Removal()), lifetime)
        self.assertEqual([told[at].lifetime.WhichOneof("state") for at in (0, 4)], ["endless"] * 2)
        self.assertEqual([told[at].expiry_changed for at in (1, 2, 3)], [False, True, True])
        transact(item(key=name, put=b"w", expiry=soon), item(key=name, expire=if_some))
        until(lambda: not exists(), "the key is gone again")
        put_if = kv_pb2.Change(put_if=kv_pb2.PutIf(exists=False, value=b"lock"))
        told = transact(item(key=name, change=put_if, expiry=soon))
        self.assertTrue(told[0].changed.put)
        until(lambda: not exists(), "the lock is free")

        for keyspace in ("default", "causal"):
            with self.assertRaises(grpc.RpcError) as caught:
                put(keyspace, expiry=late)
            error = error_of(caught)
            self.assertEqual(error.kind, error_pb2.KIND_UNSUPPORTED)
            self.assertIn("expiry", error.what)
            self.assertIn("serializable", error.right)
        wrongs = [({"after_ms": 0}, "0 ms from now"), ({"at_ms": 1 << 63}, "1970"), ({}, "when")]
        for wrong, what in wrongs:
            with self.assertRaises(grpc.RpcError) as caught:
                put(expiry=kv_pb2.Expiry(**wrong))
            error = error_of(caught)
            self.assertEqual((error.kind, error.field), (error_pb2.KIND_INVALID, "expiry"))
            self.assertIn(what, error.what)
        with self.assertRaises(grpc.RpcError) as caught:
            transact(lifetime, item(key=name, get=kv_pb2.Read(), expiry=soon))
        self.assertEqual(error_of(caught).field, "items[1]")

    def test_values(self):
        name = key("value").encode()
        self.assertEqual(self.get(name).WhichOneof("state"), "absent")
        for value in (b"", b"\x00\xff", "grüß".encode(), os.urandom(1 << 20)):
            self.put(name, value)
            reading = self.get(name, self.second)
            self.assertEqual(reading.WhichOneof("state"), "value")
            self.assertEqual(reading.value, value)
        request = kv_pb2.DeleteRequest(keyspace="default", key=name)
        self.assertTrue(self.second.Delete(request, timeout=TIMEOUT).existed)
        self.assertFalse(self.kv.Delete(request, timeout=TIMEOUT).existed)

    def test_batch(self):
        names = [key(f"batch{index}").encode() for index in range(100)]
        for name in names[::2]:
            self.put(name, name)
        request = kv_pb2.BatchGetRequest(keyspace="default", keys=names)
        readings = self.kv.BatchGet(request, timeout=TIMEOUT).readings
        states = [reading.WhichOneof("state") for reading in readings]
        self.assertEqual(states, ["value", "absent"] * 50)
        self.assertEqual([reading.value for reading in readings[::2]], names[::2])

    def test_scan(self):
        base = key("scan")
        names = {f"{base}:{index}".encode() for index in range(600)}
        for name in names:
            self.put(name, b"v")
        request = kv_pb2.ScanRequest(keyspace="default", with_values=True)
        messages = list(self.kv.Scan(request, timeout=TIMEOUT))
        self.assertEqual(messages[0].promise.engine, "linearizable")
        entries = [entry for message in messages[1:] for entry in message.page.entries]
        found = [entry.key for entry in entries if entry.key.startswith(base.encode())]
        self.assertEqual(len(found), len(set(found)))
        self.assertEqual(set(found), names)
        self.assertEqual(messages[-1].page.cursor, b"")

    def test_a_stream_may_be_left_in_the_middle(self):
        for _ in range(20):
            request = kv_pb2.ScanRequest(keyspace="default", page_keys=1)
            stream = self.kv.Scan(request, timeout=TIMEOUT)
            next(stream)
            stream.cancel()
        self.put(key("after").encode(), b"v")

    def test_a_write_sent_again(self):
        name, request_id = key("again").encode(), uuid.uuid4().bytes
        options = common_pb2.WriteOptions(request_id=request_id)
        first = self.put(name, b"old", options=options)
        self.put(name, b"new", self.second)
        options.repeat.coordinator.CopyFrom(first.coordinator)
        options.repeat.age_ms = 10
        self.assertTrue(self.put(name, b"old", options=options).is_repeated)
        self.assertEqual(self.get(name).value, b"new")
        with self.assertRaises(grpc.RpcError) as caught:
            self.put(name, b"old", self.second, options=options)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNKNOWN)
        error = error_of(caught)
        self.assertEqual(error.kind, error_pb2.KIND_OUTCOME_UNKNOWN)
        self.assertTrue(error.may_have_applied)

    def test_errors_say_what_would_be_right(self):
        cases = [
            (kv_pb2.GetRequest(keyspace="nope", key=b"k"), error_pb2.KIND_NO_KEYSPACE, "default"),
            (kv_pb2.GetRequest(key=b"k"), error_pb2.KIND_INVALID, "name one of"),
            (
                kv_pb2.GetRequest(keyspace="default", key=b"k" * 70_000),
                error_pb2.KIND_TOO_LARGE,
                "shorter",
            ),
            (
                kv_pb2.GetRequest(keyspace="default", key=b"k", replicas=1),
                error_pb2.KIND_UNSUPPORTED,
                "leave",
            ),
        ]
        for request, kind, right in cases:
            with self.assertRaises(grpc.RpcError) as caught:
                self.kv.Get(request, timeout=TIMEOUT)
            error = error_of(caught)
            self.assertEqual(error.kind, kind)
            self.assertIn(right, error.right)
            self.assertTrue(error.coordinator.node)
        with self.assertRaises(grpc.RpcError) as caught:
            self.put(b"k", b"v", context=b"c")
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_siblings_and_contexts(self):
        name = key("siblings").encode()

        def get():
            request = kv_pb2.GetRequest(keyspace="causal", key=name)
            return self.kv.Get(request, timeout=TIMEOUT).reading.siblings

        def put(value, context=b""):
            request = kv_pb2.PutRequest(keyspace="causal", key=name, value=value, context=context)
            return self.kv.Put(request, timeout=TIMEOUT).context

        self.assertEqual(list(get().values), [])
        first = put(b"ale")
        put(b"bread")
        both = get()
        self.assertEqual(sorted(both.values), [b"ale", b"bread"])
        put(b"stout", first)
        self.assertEqual(sorted(get().values), [b"bread", b"stout"])
        put(b"all", get().context)
        self.assertEqual(list(get().values), [b"all"])
        put(b"late", both.context)
        self.assertEqual(sorted(get().values), [b"all", b"late"], "an old context replaces less")
        # The same request twice is one value.
        options = common_pb2.WriteOptions(request_id=uuid.uuid4().bytes)
        request = kv_pb2.PutRequest(
            keyspace="causal", key=name, value=b"once", context=get().context, options=options
        )
        self.kv.Put(request, timeout=TIMEOUT)
        self.second.Put(request, timeout=TIMEOUT)
        self.assertEqual(list(get().values), [b"once"])
        with self.assertRaises(grpc.RpcError) as caught:
            put(b"x", first[:-1] + bytes([first[-1] ^ 1]))
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
        self.assertEqual(error_of(caught).kind, error_pb2.KIND_BAD_CONTEXT)
        listed = self.kv.Scan(
            kv_pb2.ScanRequest(keyspace="causal", with_values=True), timeout=TIMEOUT
        )
        entries = [entry for part in listed for entry in part.page.entries]
        mine = [entry for entry in entries if entry.key == name]
        self.assertEqual([list(e.reading.siblings.values) for e in mine], [[b"once"]])
        request = kv_pb2.DeleteRequest(keyspace="causal", key=name, context=get().context)
        self.kv.Delete(request, timeout=TIMEOUT)
        self.assertEqual(list(get().values), [])

    def test_admin(self):
        status = self.admin.Status(admin_pb2.StatusRequest(), timeout=TIMEOUT)
        self.assertTrue(status.is_ready)
        self.assertEqual(len(status.peers), 2)
        keyspaces = self.admin.Keyspaces(admin_pb2.KeyspacesRequest(), timeout=TIMEOUT).keyspaces
        self.assertEqual(keyspaces[0].name, "default")
        ring = self.admin.Ring(admin_pb2.RingRequest(), timeout=TIMEOUT)
        self.assertEqual(len(ring.hosts), 3)
        self.assertTrue(all(len(group.members) == 3 for group in ring.groups))

    def test_what_happens_is_followed(self):
        told = []
        events = self.admin.Watch(admin_pb2.WatchRequest(), timeout=TIMEOUT)
        for event in events:
            told.append(event)
            if event.event == "current":
                break
        events.cancel()
        names = [event.keyspace for event in told if event.event == "keyspace-present"]
        self.assertIn("default", names)
        hosts = [event for event in told if event.event == "host-present"]
        self.assertTrue(hosts and all(host.node and host.address for host in hosts))

    def test_a_keyspace_is_made_and_dropped(self):
        name = f"made-{uuid.uuid4().hex}"
        order = admin_pb2.CreateKeyspaceRequest(name=name, settings={"value": "1KiB"})
        self.assertTrue(self.admin.CreateKeyspace(order, timeout=TIMEOUT).HasField("coordinator"))
        with self.assertRaises(grpc.RpcError) as caught:
            self.admin.CreateKeyspace(order, timeout=TIMEOUT)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.ALREADY_EXISTS)
        error = error_of(caught)
        self.assertEqual((error.kind, error.field), (error_pb2.KIND_EXISTS, "name"))
        show = admin_pb2.ShowKeyspaceRequest(name=name)
        shown = self.admin.ShowKeyspace(show, timeout=TIMEOUT).keyspace
        values = {setting.name: setting.value for setting in shown.settings}
        self.assertEqual((shown.engine, values["value"]), ("linearizable", "1024"))
        self.admin.DropKeyspace(admin_pb2.DropKeyspaceRequest(name=name), timeout=TIMEOUT)
        with self.assertRaises(grpc.RpcError) as caught:
            self.admin.ShowKeyspace(show, timeout=TIMEOUT)
        self.assertEqual(error_of(caught).kind, error_pb2.KIND_NO_KEYSPACE)

    def test_health_and_reflection(self):
        health = health_pb2_grpc.HealthStub(self.channel)
        for service in ("", "quorate.v1.Kv", "keyspace/default"):
            request = health_pb2.HealthCheckRequest(service=service)
            status = health.Check(request, timeout=TIMEOUT).status
            self.assertEqual(status, health_pb2.HealthCheckResponse.SERVING)
        database = ProtoReflectionDescriptorDatabase(self.channel)
        services = set(database.get_services())
        self.assertLessEqual({"quorate.v1.Kv", "quorate.v1.Admin"}, services)
        file = database.FindFileContainingSymbol("quorate.v1.Kv")
        self.assertEqual(file.package, "quorate.v1")
        file = database.FindFileContainingSymbol("quorate.v1.Admin")
        methods = {method.name for method in file.service[0].method}
        orders = {"CreateKeyspace", "AlterKeyspace", "DropKeyspace", "ReplacePartition"}
        self.assertLessEqual({"ShowKeyspace", *orders}, methods)


if __name__ == "__main__":
    unittest.main()
