"""redis-cli, as people and scripts use it."""

import os
import socket
import subprocess
import time
import unittest

from endpoint import HOST, IS_QUORATE, PORT, REASON, REFUSED, key

TIMEOUT = 60


def cli(*arguments, stdin=b"", is_raw=True):
    """Runs redis-cli with `arguments` and returns what it prints."""
    output = "--raw" if is_raw else "--no-raw"
    command = ["redis-cli", "-h", HOST, "-p", str(PORT), output, *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=TIMEOUT)
    text = done.stdout if is_raw else done.stdout.decode()
    if done.returncode != 0:
        raise AssertionError(f"{command}: exit code {done.returncode}: {text} {done.stderr}")
    return text


def encode(*words):
    """One command as RESP."""
    parts = [word if isinstance(word, bytes) else word.encode() for word in words]
    bulks = b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
    return b"*%d\r\n%s" % (len(parts), bulks)


class RedisCli(unittest.TestCase):
    """One command a call."""

    def test_set_get_del(self):
        name = key("plain")
        self.assertEqual(cli("GET", name, is_raw=False), "(nil)\n")
        self.assertEqual(cli("SET", name, "hello"), b"OK\n")
        self.assertEqual(cli("GET", name), b"hello\n")
        self.assertEqual(cli("EXISTS", name, is_raw=False), "(integer) 1\n")
        self.assertEqual(cli("STRLEN", name, is_raw=False), "(integer) 5\n")
        self.assertEqual(cli("GETRANGE", name, "1", "-2"), b"ell\n")
        self.assertEqual(cli("TYPE", name), b"string\n")
        self.assertEqual(cli("TTL", name, is_raw=False), "(integer) -1\n")
        self.assertEqual(cli("DEL", name, is_raw=False), "(integer) 1\n")
        self.assertEqual(cli("DEL", name, is_raw=False), "(integer) 0\n")
        self.assertEqual(cli("TYPE", name), b"none\n")
        self.assertEqual(cli("TTL", name, is_raw=False), "(integer) -2\n")

    def test_many_keys(self):
        names = [key(f"many{index}") for index in range(3)]
        self.assertEqual(cli("MSET", names[0], "a", names[2], "c"), b"OK\n")
        expected = '1) "a"\n2) (nil)\n3) "c"\n'
        self.assertEqual(cli("MGET", *names, is_raw=False), expected)
        self.assertEqual(cli("EXISTS", *names, is_raw=False), "(integer) 2\n")
        self.assertEqual(cli("TOUCH", *names, is_raw=False), "(integer) 2\n")
        self.assertEqual(cli("UNLINK", *names, is_raw=False), "(integer) 2\n")

    def test_resp3(self):
        name = key("resp3")
        self.assertEqual(cli("-3", "SET", name, "x"), b"OK\n")
        self.assertEqual(cli("-3", "GET", name), b"x\n")
        self.assertEqual(cli("-3", "GET", key("absent"), is_raw=False), "(nil)\n")
        hello = cli("-3", "HELLO", is_raw=False)
        self.assertIn('"proto" => (integer) 3', hello)
        for field in ("server", "version", "id", "mode", "role", "modules"):
            self.assertIn(f'"{field}" =>', hello)

    def test_large_binary_value_from_standard_input(self):
        name, value = key("large"), os.urandom(1 << 20)
        self.assertEqual(cli("-x", "SET", name, stdin=value), b"OK\n")
        self.assertEqual(cli("GET", name), value + b"\n")

    def test_script_on_standard_input(self):
        name = key("script")
        script = f'SET {name} "two words"\nGET {name}\nPING\n'.encode()
        self.assertEqual(cli(stdin=script), b"OK\ntwo words\nPONG\n")

    def test_pipe(self):
        base, count = key("pipe"), 2000
        stream = b"".join(encode("SET", f"{base}:{i}", f"v{i}") for i in range(count))
        report = cli("--pipe", stdin=stream)
        self.assertIn(b"errors: 0, replies: %d" % count, report)
        self.assertEqual(cli("GET", f"{base}:{count - 1}"), b"v%d\n" % (count - 1))

    def test_scan_finds_every_key_once(self):
        base, count = key("scan"), 500
        pairs = [word for i in range(count) for word in (f"{base}:{i}", "v")]
        self.assertEqual(cli("MSET", *pairs), b"OK\n")
        found = cli("--scan", "--pattern", f"{base}:*").decode().split()
        self.assertEqual(sorted(found), sorted(f"{base}:{i}" for i in range(count)))
        listed = cli("KEYS", f"{base}:*").decode().split()
        self.assertEqual(sorted(listed), sorted(found))

    def test_big_keys_report(self):
        name = key("big")
        cli("SET", name, "x" * 5000)
        report = cli("--bigkeys").decode()
        self.assertIn("-------- summary -------", report)
        self.assertIn("strings with", report)

    def test_looking_around(self):
        self.assertEqual(cli("SET", key("counted"), "1"), b"OK\n")
        info = cli("INFO").decode()
        for line in ("redis_version:", "redis_mode:standalone", "loading:", "role:master"):
            self.assertIn(line, info)
        self.assertGreater(int(info.split("total_commands_processed:")[1].split()[0]), 0)
        # A host that hears too little of the others, on a busy machine, says that it is not ready.
        deadline = time.monotonic() + TIMEOUT
        while "loading:0" not in cli("INFO", "persistence").decode():
            self.assertLess(time.monotonic(), deadline, "it is not ready")
        self.assertIn("redis_version:", cli("INFO", "server").decode())
        self.assertTrue(cli("COMMAND", "DOCS", "GET").startswith(b"get\n"))
        self.assertGreater(int(cli("COMMAND", "COUNT")), 30)
        self.assertTrue(cli("COMMAND", "INFO", "get").startswith(b"get\n2\n"))
        for parameter in (b"save", b"appendonly"):
            self.assertTrue(cli("CONFIG", "GET", parameter.decode()).startswith(parameter + b"\n"))
        self.assertEqual(len(cli("TIME").split()), 2)
        self.assertGreaterEqual(int(cli("DBSIZE")), 0)
        self.assertGreater(int(cli("CLIENT", "ID")), 0)
        self.assertEqual(cli("ECHO", "hello"), b"hello\n")

    def test_select(self):
        name = key("select")
        self.assertEqual(cli("-n", "0", "SET", name, "x"), b"OK\n")
        self.assertEqual(cli("-n", "0", "GET", name), b"x\n")
        self.assertEqual(cli("SELECT", "99999").strip(), b"ERR DB index is out of range")

    def test_error_texts(self):
        self.assertEqual(
            cli("NONSENSE", "a", "b").rstrip(b"\n"),
            b"ERR unknown command 'NONSENSE', with args beginning with: 'a' 'b' ",
        )
        self.assertEqual(
            cli("GET").strip(), b"ERR wrong number of arguments for 'get' command"
        )
        self.assertEqual(cli("HELLO", "9").strip(), b"NOPROTO unsupported protocol version")
        self.assertEqual(
            cli("GETRANGE", key("x"), "a", "b").strip(),
            b"ERR value is not an integer or out of range",
        )

    @unittest.skipUnless(IS_QUORATE, "plain Redis can do these")
    def test_refusals(self):
        for words, advice in REFUSED:
            with self.subTest(" ".join(words)):
                text = cli(*words).decode()
                self.assertTrue(text.startswith("ERR "), text)
                self.assertIn(REASON, text)
                self.assertIn(advice, text)


class Inline(unittest.TestCase):
    """Commands as plain lines, as typed into a bare connection."""

    def setUp(self):
        self.socket = socket.create_connection((HOST, PORT), TIMEOUT)
        self.replies = self.socket.makefile("rb")

    def tearDown(self):
        self.replies.close()
        self.socket.close()

    def ask(self, line, reply_lines):
        self.socket.sendall(line)
        return [self.replies.readline() for _ in range(reply_lines)]

    def test_lines(self):
        name = key("inline").encode()
        self.assertEqual(self.ask(b"PING\r\n", 1), [b"+PONG\r\n"])
        self.assertEqual(self.ask(b"\r\nPING\n", 1), [b"+PONG\r\n"])
        self.assertEqual(self.ask(b"SET %s 'two words'\r\n" % name, 1), [b"+OK\r\n"])
        self.assertEqual(self.ask(b"GET %s\r\n" % name, 2), [b"$9\r\n", b"two words\r\n"])
        self.assertEqual(self.ask(b'ECHO "\\x41\\n"\r\n', 3), [b"$2\r\n", b"A\n", b"\r\n"])
        self.assertEqual(self.ask(b"QUIT\r\n", 1), [b"+OK\r\n"])
        self.assertEqual(self.replies.read(), b"")

    def test_unbalanced_quotes_close_the_connection(self):
        self.assertEqual(
            self.ask(b'SET k "open\r\n', 1),
            [b"-ERR Protocol error: unbalanced quotes in request\r\n"],
        )
        self.assertEqual(self.replies.read(), b"")

    def test_a_huge_announcement_is_refused(self):
        [reply] = self.ask(b"*2\r\n$3\r\nGET\r\n$1073741824\r\n", 1)
        self.assertTrue(reply.startswith(b"-ERR Protocol error: invalid bulk length"), reply)
        self.assertEqual(self.replies.read(), b"")

    def test_pipelined_replies_keep_their_order(self):
        name, count = key("order").encode(), 200
        batch = b"".join(b"SET %s %d\r\nGET %s\r\n" % (name, i, name) for i in range(count))
        self.socket.sendall(batch)
        for index in range(count):
            self.assertEqual(self.replies.readline(), b"+OK\r\n")
            value = b"%d" % index
            self.assertEqual(self.replies.readline(), b"$%d\r\n" % len(value))
            self.assertEqual(self.replies.readline(), value + b"\r\n")


if __name__ == "__main__":
    unittest.main()
