"""redis-benchmark ends well and complains about nothing."""

import subprocess
import unittest

from endpoint import HOST, PORT

TIMEOUT = 120
TESTS = "ping,set,get,mset"
TITLES = ("PING_INLINE", "PING_MBULK", "SET", "GET", "MSET")


class RedisBenchmark(unittest.TestCase):
    """Each way that people start it."""

    def run_benchmark(self, *arguments):
        command = ["redis-benchmark", "-h", HOST, "-p", str(PORT), "-t", TESTS]
        command += ["-n", "2000", "-c", "50", "-r", "1000", "-q", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
        output = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, output)
        for complaint in ("error", "warning", "could not"):
            self.assertNotIn(complaint, output.lower())
        for title in TITLES:
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


if __name__ == "__main__":
    unittest.main()
