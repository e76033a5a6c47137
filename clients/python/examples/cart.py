#!/usr/bin/env python3
"""A shopping cart that loses no item, whatever happens to the network.

    quorate dev                                            in one terminal
    python cart.py --cut 'quorate dev ctl'                 in another

Ann shops through host 1, Bob through host 2, and both fill the same cart, a key of a causal
keyspace. The network between them is cut, and both go on. When it is healed, the cart has two
values, one of each side, and the next who touches it merges them: what either has put in is there.

The cart only grows here. Who takes something out says so in the value, for instance with a list of
what was taken: from a union alone an item that is missing on one side comes back.
"""

import argparse
import json
import shlex
import subprocess
import sys
import time

from quorate import Client

HOSTS = ["127.0.0.1:7414", "127.0.0.1:7424"]
CART = "cart/ann-and-bob"
HEALED_WITHIN_SECONDS = 60


def union(values):
    """One cart that has all that any of the values has."""
    return {item for value in values for item in json.loads(value)}


class Shopper:
    """Somebody with a cart, who knows one host only."""

    def __init__(self, name, host, keyspace):
        self.name = name
        self.keyspace = Client([host]).keyspace(keyspace)

    def add(self, item):
        """Puts an item into the cart, and merges what others have put in beside it."""
        self.keyspace.update(CART, lambda values: json.dumps(sorted(union(values) | {item})))
        print(f"{self.name} adds {item}: {', '.join(sorted(self.look()))}")

    def look(self):
        """What is in the cart, as far as this shopper's host knows."""
        return union(self.keyspace.get(CART).values)


def main():
    options = parse()
    ann = Shopper("Ann", options.ann, options.keyspace)
    bob = Shopper("Bob", options.bob, options.keyspace)
    ann.add("ale")
    wait_until(lambda: bob.look() == {"ale"})
    bob.add("bread")
    network(options.cut, "partition 1 2,3")
    ann.add("cheese")
    bob.add("dates")
    bob.add("eggs")
    network(options.cut, "heal")
    everything = {"ale", "bread", "cheese", "dates", "eggs"}
    wait_until(lambda: ann.look() == everything and bob.look() == everything)
    values = ann.keyspace.get(CART).values
    print(f"the cart has {len(values)} values, one of each side of the cut")
    ann.add("figs")
    wait_until(lambda: bob.look() == everything | {"figs"})
    values = bob.keyspace.get(CART).values
    print(f"the cart has {len(values)} value, and nothing was lost")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ann", default=HOSTS[0], help="the gRPC door of host 1")
    parser.add_argument("--bob", default=HOSTS[1], help="the gRPC door of host 2")
    parser.add_argument("--keyspace", default="causal", help="a causal keyspace")
    parser.add_argument("--cut", help="the command that cuts and heals; by default nothing is cut")
    return parser.parse_args()


def network(command, order):
    """Has the network between the hosts cut or healed."""
    if command:
        subprocess.run(shlex.split(command) + order.split(), check=True, stdout=subprocess.DEVNULL)
        print(f"== {order}")


def wait_until(is_so):
    """Waits until what one side has written has come to the other."""
    deadline = time.monotonic() + HEALED_WITHIN_SECONDS
    while not is_so():
        if time.monotonic() > deadline:
            sys.exit("the sides have not become equal in time")
        time.sleep(0.05)


if __name__ == "__main__":
    main()
