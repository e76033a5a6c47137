"""Stands between a client and a host, passes bytes on, and loses an answer when told to."""

import socket
import threading


class Proxy:
    """Where a client connects instead of at the host."""

    def __init__(self, host):
        self._host = host
        self._lock = threading.Lock()
        self._is_losing = False
        self._then = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:{}".format(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self, then=None):
        """Has the next answer of the host lost and its connection cut; later connections go to
        the host `then`, if one is given."""
        with self._lock:
            self._is_losing, self._then = True, then

    def is_losing(self):
        """Whether nothing was lost yet."""
        with self._lock:
            return self._is_losing

    def close(self):
        """Takes no more connections."""
        self._listener.close()

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                name, _, port = self._host.rpartition(":")
            threading.Thread(target=self._join, args=(near, name, int(port)), daemon=True).start()

    def _join(self, near, name, port):
        """Passes bytes on both ways until both sides are closed."""
        with near:
            try:
                far = socket.create_connection((name, port))
            except OSError:
                return
            with far:
                asks = threading.Thread(target=self._pass, args=(near, far, False), daemon=True)
                asks.start()
                self._pass(far, near, True)
                asks.join()

    def _pass(self, source, sink, is_answer):
        try:
            while piece := source.recv(16 * 1024):
                if is_answer and _answers(piece) and self._loses():
                    break
                sink.sendall(piece)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _loses(self):
        with self._lock:
            is_lost, self._is_losing = self._is_losing, False
            if is_lost and self._then:
                self._host, self._then = self._then, None
            return is_lost


def _answers(piece):
    """Whether there is a frame of an answer among these HTTP/2 frames: a host also acknowledges
    what concerns the connection alone, maybe before it has read the request."""
    data, headers, at = 0, 1, 0
    while at + 9 <= len(piece):
        if piece[at + 3] in (data, headers):
            return True
        at += 9 + int.from_bytes(piece[at:at + 3], "big")
    return False
