"""redis-benchmark ends well and complains about nothing."""

import subprocess
import unittest

from endpoint import HOST, PORT

TIMEOUT = 300
# A write that a busy disk keeps waiting for longer than its deadline ends the tool.
TRIES = 3
TESTS = "ping,set,get,mset"
TITLES = ("PING_INLINE", "PING_MBULK", "SET", "GET", "MSET")
# What a keyspace with transactions can do beside these; plain Redis has one of that number too.
TRANSACTIONAL = ("--dbnum", "2", "-t", "set,get,incr,mset")
TRANSACTIONAL_TITLES = ("SET", "GET", "INCR", "MSET")


class RedisBenchmark(unittest.TestCase):
    """Each way that people start it."""

    def run_benchmark(self, *arguments, titles=TITLES):
        command = ["redis-benchmark", "-h", HOST, "-p", str(PORT), "-t", TESTS]
        command += ["-n", "2000", "-c", "50", "-r", "1000", "-q", *arguments]
        for _ in range(TRIES):
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
            output = done.stdout + done.stderr
            if "UNKNOWNOUTCOME" not in output:
                break
        self.assertEqual(done.returncode, 0, output)
        for complaint in ("error", "warning", "could not"):
            self.assertNotIn(complaint, output.lower())
        for title in titles:
            self.assertRegex(output, rf"{title}\b.*requests per second")

    def test_one_command_at_a_time(self):
        self.run_benchmark()

    def test_pipelined(self):
        self.run_benchmark("-P", "16")

    def test_resp3(self):
        self.run_benchmark("-3")

    def test_resp3_pipelined(self):
        self.run_benchmark("-3", "-P", "16")

    def test_kilobyte_values(self):
        self.run_benchmark("-d", "1024")

    def test_transactional(self):
        self.run_benchmark(*TRANSACTIONAL, titles=TRANSACTIONAL_TITLES)

    def test_transactional_pipelined(self):
        self.run_benchmark(*TRANSACTIONAL, "-P", "16", titles=TRANSACTIONAL_TITLES)


if __name__ == "__main__":
    unittest.main()
