"""Three servers of ZooKeeper, to see what of the suites passes there."""

import os
import socket
import subprocess
import time

from ports import Ports
from server import Failure

HERE = os.path.dirname(os.path.abspath(__file__))
POM = os.path.join(os.path.dirname(os.path.dirname(HERE)), "crates", "bench", "zookeeper.xml")
MEMBERS = (1, 2, 3)
READY_SECONDS = 60
STOP_SECONDS = 30
# Containers and nodes with a time to live want the first of them, the suites' words the second.
PROPERTIES = [
    "-Dzookeeper.extendedTypesEnabled=true",
    # Its clients would wait a minute else.
    "-Dznode.container.checkIntervalMs=500",
    # Hard limits do nothing else.
    "-Dzookeeper.enforceQuota=true",
    "-Dzookeeper.4lw.commands.whitelist=*",
    "-Dzookeeper.admin.enableServer=false",
    "-Dfile.encoding=UTF-8",
    "-Dreadonlymode.enabled=true",
]


class ZooKeeper:
    """An ensemble of three on this machine, by ZooKeeper's own defaults."""

    def __init__(self, jars, data):
        self.ports = Ports()
        self.jars, self.data = jars, data
        self.processes = []

    def start(self):
        """Starts it and waits until all three serve."""
        fetch = ["mvn", "-q", "-B", "-ntp", "-f", POM, "dependency:copy-dependencies"]
        subprocess.run([*fetch, f"-DoutputDirectory={os.path.abspath(self.jars)}"], check=True)
        for number in MEMBERS:
            self._start(number)
        until = time.monotonic() + READY_SECONDS
        while not all(self._serves(number) for number in MEMBERS):
            if time.monotonic() > until:
                raise Failure(f"ZooKeeper did not serve within {READY_SECONDS} s")
            time.sleep(0.1)

    def _start(self, number):
        place = os.path.join(self.data, str(number))
        os.makedirs(os.path.join(place, "data"), exist_ok=True)
        base = self.ports.base
        lines = ["tickTime=2000", "initLimit=10", "syncLimit=5", "maxClientCnxns=0"]
        lines += [f"clientPort={self._port(number)}", f"dataDir={place}/data"]
        lines += ["clientPortAddress=127.0.0.1"]
        lines += [f"server.{n}=127.0.0.1:{base + 10 + n}:{base + 20 + n}" for n in MEMBERS]
        with open(os.path.join(place, "zoo.cfg"), "w", encoding="ascii") as settings:
            settings.write("\n".join(lines) + "\n")
        with open(os.path.join(place, "data", "myid"), "w", encoding="ascii") as name:
            name.write(str(number))
        command = ["java", "-cp", f"{self.jars}/*", *PROPERTIES]
        command += ["org.apache.zookeeper.server.quorum.QuorumPeerMain", f"{place}/zoo.cfg"]
        with open(os.path.join(place, "log"), "ab") as log:
            self.processes.append(subprocess.Popen(command, stdout=log, stderr=log))

    def _port(self, number):
        return self.ports.base + number

    def _serves(self, number):
        try:
            with socket.create_connection(("127.0.0.1", self._port(number)), 1) as connection:
                connection.sendall(b"srvr")
                said = connection.makefile("rb").read()
        except OSError:
            return False
        return b"Mode: leader" in said or b"Mode: follower" in said

    def endpoint(self, number):
        """Where server `number` (from one) is."""
        return f"127.0.0.1:{self._port(number)}"

    def stop(self):
        """Asks all to end."""
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(STOP_SECONDS)

    def kill(self):
        """Ends whatever is left of it."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        self.ports.close()

    def log(self):
        """The end of what its first server said."""
        with open(os.path.join(self.data, "1", "log"), "rb") as log:
            return log.read()[-5_000:].decode(errors="replace")
