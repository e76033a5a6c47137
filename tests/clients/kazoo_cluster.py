"""Has kazoo's own tests run against a cluster that is there, in place of one that they start.

pytest loads it with `-p kazoo_cluster`. The hosts' addresses are in ZOOKEEPER_ENDPOINTS, separated
by commas. Tests that stop a server of theirs, or want something that no client of this cluster
has, are left out, each for a reason.
"""

import os

import pytest
from kazoo.testing import harness

STOPS = "stops a server of the test's own cluster"
LEFT_OUT = {
    "TestReconfig": "the list of servers is that of the cluster, not of a client",
    "TestSSLClient": "the door has no TLS",
    "test_request_queuing_session": STOPS,
    "test_update_host_list": STOPS,
    "TestReadOnlyMode": STOPS,
}


class Node:
    """One host."""

    running = True

    def __init__(self, address):
        self.address = address
        self.secure_address = address

    def stop(self):
        raise AssertionError("this host is not the test's to stop")

    run = stop


class Cluster(list):
    """All hosts."""

    def start(self):
        pass

    def terminate(self):
        pass

    def get_logs(self):
        return []


def pytest_configure(config):
    hosts = Cluster(Node(address) for address in os.environ["ZOOKEEPER_ENDPOINTS"].split(","))
    harness.get_global_cluster = lambda: hosts
    # What it says of itself is 3.9; kazoo looks there to know what it may test.
    os.environ.setdefault("ZOOKEEPER_VERSION", "3.9.4")


def pytest_collection_modifyitems(config, items):
    for item in items:
        for name, why in LEFT_OUT.items():
            if name in item.nodeid:
                item.add_marker(pytest.mark.skip(reason=why))
