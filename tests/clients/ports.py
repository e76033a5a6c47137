"""Ports of this machine that nobody uses, so that two runs side by side never meet."""

import os
import socket

# Enough for nine hosts, ten ports apart.
BLOCK = 100
# The blocks of these suites: above those of the tests in Rust, below what the system gives out.
FIRST = 32_000
BLOCKS = 7


class Ports:
    """A free block; no host listens on its first port, which keeps it."""

    def __init__(self):
        for turn in range(BLOCKS):
            self.base = FIRST + (os.getpid() + turn) % BLOCKS * BLOCK
            self.guard = _listen(self.base)
            if self.guard is None:
                continue
            others = [_listen(self.base + offset) for offset in range(1, BLOCK)]
            for other in filter(None, others):
                other.close()
            if all(others):
                return
            self.guard.close()
        raise OSError(f"no block of {BLOCK} ports is free from {FIRST} on")

    def close(self):
        """Gives the block back."""
        self.guard.close()


def _listen(port):
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        return None
