"""Starts and stops the servers that the suites run against."""

import json
import os
import queue
import signal
import socket
import subprocess
import threading

from ports import Ports

READY_SECONDS = 120
STOP_SECONDS = 60


class Failure(Exception):
    """The server did not do what it must; the text says what."""


class Cluster:
    """A three-host cluster of this machine, started with `quorate dev`."""

    def __init__(self, binary, data, *more):
        self.ports = Ports()
        self.command = [binary, "dev", "--format", "json", "--data", data]
        self.command += ["--port-base", str(self.ports.base), *more]
        self.log_path = os.path.join(os.path.dirname(data), "dev.log")
        self.process = None
        self.hosts = []

    def start(self):
        """Starts it and waits for the line that says it is ready."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log
            )
        lines = queue.Queue()
        threading.Thread(target=_drain, args=(self.process.stdout, lines), daemon=True).start()
        try:
            line = lines.get(timeout=READY_SECONDS)
        except queue.Empty:
            raise Failure(f"the cluster was not ready after {READY_SECONDS} s") from None
        try:
            self.hosts = json.loads(line)["hosts"]
        except (ValueError, KeyError):
            raise Failure(f"the first line is not the JSON promised: {line!r}") from None
        if len(self.hosts) != 3:
            raise Failure(f"three hosts were promised: {line!r}")

    def endpoint(self, number, door="resp"):
        """Where a door of host `number` (from one) is."""
        return self.hosts[number - 1][door]

    def stop(self):
        """Interrupts it as Ctrl-C does; it must end well and leave no process behind."""
        self.process.send_signal(signal.SIGINT)
        try:
            code = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure(f"the cluster still ran {STOP_SECONDS} s after SIGINT") from None
        if code != 0:
            raise Failure(f"the cluster ended with exit code {code} after SIGINT")
        left = [host["pid"] for host in self.hosts if _is_running(host["pid"])]
        if left:
            raise Failure(f"the cluster ended but left the processes {left}")

    def kill(self):
        """Ends whatever is left of it."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for host in self.hosts:
            if _is_running(host["pid"]):
                os.kill(host["pid"], signal.SIGKILL)
        self.ports.close()

    def log(self):
        """The end of what it logged."""
        with open(self.log_path, "rb") as log:
            return log.read()[-20_000:].decode(errors="replace")


class PlainRedis:
    """One redis-server, to see that the suites ask for nothing that Redis does not do."""

    def __init__(self, data):
        os.makedirs(data, exist_ok=True)
        self.ports = Ports()
        self.port = self.ports.base + 3
        self.command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port)]
        self.command += ["--save", "", "--appendonly", "no", "--dir", data]
        self.process = None

    def start(self):
        """Starts it and waits for the line that says it is ready."""
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        for line in self.process.stdout:
            if b"Ready to accept connections" in line:
                return
        raise Failure("redis-server did not start")

    def endpoint(self, _number):
        """Where it speaks RESP."""
        return f"127.0.0.1:{self.port}"

    def stop(self):
        """Asks it to end."""
        self.process.terminate()
        self.process.wait(STOP_SECONDS)

    def kill(self):
        """Ends it."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.ports.close()

    def log(self):
        """It says nothing that would help."""
        return ""


def ask(endpoint, line):
    """Sends one inline command and returns the reply's lines, without their ends."""
    host, _, port = endpoint.rpartition(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(line.encode() + b"\r\nQUIT\r\n")
        reply = connection.makefile("rb").read().decode()
    lines = reply.split("\r\n")
    if lines[-2:] != ["+OK", ""]:
        raise Failure(f"{line} at {endpoint} was answered {reply!r}")
    return lines[:-2]


def _drain(stream, lines):
    for line in stream:
        lines.put(line)
    lines.put(b"")


def _is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
