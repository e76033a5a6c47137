"""HTTP/JSON: by hand, and by Schemathesis, which makes requests from the served description and
checks every answer against it."""

import base64
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

from native import HTTP, HTTP_SECOND, key, until

TIMEOUT = 30
# How many requests Schemathesis makes of each operation, of the good and of the bad.
EXAMPLES = os.environ.get("EXAMPLES", "60")
# A refusal for want of a quorum, 503, is as described; a defect, 500, is not in the description.
CHECKS = ",".join([
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
])


def ask(method, path, body=None, endpoint=HTTP, **headers):
    """One request; the status, the headers and the body of its answer."""
    connection = http.client.HTTPConnection(endpoint, timeout=TIMEOUT)
    try:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, names)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


class Http(unittest.TestCase):
    """What a client without any library of ours does."""

    def path(self, name):
        return "/v1/kv/default/" + urllib.parse.quote(name, safe="")

    def test_transactions(self):
        name, other = key("stock"), key("sold")

        def transact(*items):
            body = json.dumps({"items": list(items)})
            status, _, told = ask("POST", "/v1/transactions/serializable", body,
                                  content_type="application/json")
            return status, json.loads(told)

        add = {"op": "add", "number": 1}
        status, told = transact({"op": "put", "key": name, "value": "7"},
                                {**add, "key": other}, {"op": "get", "key": name})
        self.assertEqual(status, 200)
        self.assertEqual(told["answers"][2]["value"], "7")
        status, told = transact({"op": "check", "key": name, "value": "6"}, {**add, "key": other})
        self.assertEqual((status, told["error"]["field"]), (409, "items[0]"))
        status, told = transact({"op": "check", "key": name, "value": "7"},
                                {"op": "delete", "key": name}, {**add, "key": other})
        self.assertEqual((status, told["answers"][1]["existed"]), (200, True))
        self.assertEqual(told["answers"][2]["integer"], 2)
        path = "/v1/kv/serializable/" + urllib.parse.quote(other, safe="")
        status, _, value = ask("GET", path, endpoint=HTTP_SECOND,
                               accept="application/octet-stream")
        self.assertEqual((status, value), (200, b"2"))

    def test_keys_expire(self):
        name = key("session")
        path = "/v1/kv/serializable/" + urllib.parse.quote(name, safe="")

        def put(query="", path=path):
            status, _, body = ask("PUT", path + query, b"v", content_type="text/plain")
            return status, json.loads(body)

        def exists():
            return ask("GET", path, endpoint=HTTP_SECOND)[0] == 200

        def transact(*items):
            body = json.dumps({"items": [{"key": name, **item} for item in items]})
            status, _, told = ask("POST", "/v1/transactions/serializable", body,
                                  content_type="application/json")
            self.assertEqual(status, 200, told)
            return [{**one, "key": None} for one in json.loads(told)["answers"]]

        def lifetime():
            return transact({"op": "lifetime"})[0]

        absent = {"key": None, "exists": False, "remaining_ms": None}
        endless = {**absent, "exists": True}
        self.assertEqual(put("?expire_after_ms=200"), (200, {"is_repeated": False}))
        until(lambda: not exists(), "the key is gone")
        self.assertEqual(lifetime(), absent)
        put("?expire_after_ms=600000")
        put("?keep_expiry=true")
        self.assertTrue(0 < lifetime()["remaining_ms"] <= 600_000)
        put()
        told = transact({"op": "lifetime"},
                        {"op": "expire", "expire_after_ms": 1, "when": "if_some"},
                        {"op": "expire", "expire_at_ms": 1 << 60}, {"op": "persist"},
                        {"op": "lifetime"})
        self.assertEqual([told[0], told[4]], [endless, endless])
        self.assertEqual([one["expiry_changed"] for one in told[1:4]], [False, True, True])
        transact({"op": "put_if", "value": "w", "exists": True, "expire_after_ms": 200})
        until(lambda: not exists(), "the key is gone again")

        status, told = put("?expire_after_ms=200", self.path(name))
        self.assertEqual((status, told["error"]["kind"]), (501, "unsupported"))
        self.assertIn("serializable", told["error"]["right"])
        for wrong in ("expire_after_ms=0", "expire_at_ms=-1", f"expire_at_ms={1 << 63}",
                      "keep_expiry=true&expire_after_ms=1"):
            status, told = put("?" + wrong)
            self.assertEqual((status, told["error"]["kind"]), (400, "invalid"), wrong)

    def test_siblings_and_contexts(self):
        path = "/v1/kv/causal/" + urllib.parse.quote(key("siblings"), safe="")
        text = {"content_type": "text/plain"}
        raw = {"accept": "application/octet-stream"}
        status, headers, body = ask("PUT", path, b"ale", **text)
        first = headers["X-Quorate-Context"]
        self.assertEqual((status, json.loads(body)["context"]), (200, first))
        status, headers, body = ask("GET", path, **raw)
        self.assertEqual((status, body, headers["X-Quorate-Context"]), (200, b"ale", first))
        ask("PUT", path, b"bread", **text)
        status, headers, body = ask("GET", path, **raw)
        values = sorted(one["value"] for one in json.loads(body)["siblings"])
        self.assertEqual((status, values), (300, ["ale", "bread"]))
        context = headers["X-Quorate-Context"]
        ask("PUT", path, b"both", X_Quorate_Context=context, **text)
        status, _, body = ask("GET", path)
        self.assertEqual(json.loads(body)["siblings"], [{"value": "both"}])
        status, _, body = ask("PUT", path, b"x", X_Quorate_Context="AAAA", **text)
        self.assertEqual((status, json.loads(body)["error"]["kind"]), (400, "bad_context"))
        self.assertEqual(ask("DELETE", path)[0], 200)
        status, headers, body = ask("GET", path)
        self.assertEqual((status, json.loads(body)["siblings"]), (404, []))
        self.assertTrue(headers["X-Quorate-Context"], "absence has a context too")

    def test_text_base64_and_raw(self):
        path = self.path(key("naïve ☂/"))
        status, _, body = ask("GET", path)
        self.assertEqual((status, json.loads(body)["value"]), (404, None))
        sent = json.dumps({"value": "ünï ☂"})
        status, headers, body = ask("PUT", path, sent, content_type="application/json")
        self.assertEqual((status, json.loads(body)), (200, {"is_repeated": False}))
        self.assertRegex(headers["X-Quorate-Coordinator"], r"^[0-9a-f]{16}\.[0-9]+$")
        status, _, body = ask("GET", path, endpoint=HTTP_SECOND)
        self.assertEqual(json.loads(body)["value"], "ünï ☂")
        raw = bytes(range(256))
        ask("PUT", path, raw, content_type="application/octet-stream")
        _, _, body = ask("GET", path)
        self.assertEqual(base64.b64decode(json.loads(body)["value_base64"]), raw)
        _, headers, body = ask("GET", path, accept="application/octet-stream")
        self.assertEqual((headers["Content-Type"], body), ("application/octet-stream", raw))
        status, _, body = ask("DELETE", path)
        self.assertEqual((status, json.loads(body)["existed"]), (200, True))

    def test_batch(self):
        names = [key(f"batch{index}") for index in range(20)]
        for name in names[::2]:
            ask("PUT", self.path(name), name.encode(), content_type="text/plain")
        binary = base64.b64encode(b"\xff" + names[0].encode()).decode()
        keys = [{"key": name} for name in names] + [{"key_base64": binary}, {"key": "k" * 70_000}]
        status, headers, body = ask("POST", "/v1/kv/default", json.dumps({"keys": keys}),
                                    endpoint=HTTP_SECOND, content_type="application/json")
        self.assertEqual(status, 200)
        self.assertRegex(headers["X-Quorate-Coordinator"], r"^[0-9a-f]{16}\.[0-9]+$")
        *readings, absent, long = json.loads(body)["readings"]
        expected = [name if index % 2 == 0 else None for index, name in enumerate(names)]
        self.assertEqual([reading["value"] for reading in readings], expected)
        self.assertEqual([reading["key"] for reading in readings], names)
        self.assertEqual(absent, {"key_base64": binary, "value": None})
        self.assertEqual(long["error"]["kind"], "too_large")

    def test_pages(self):
        base = key("page")
        names = {f"{base}:{index}" for index in range(50)}
        for name in names:
            ask("PUT", self.path(name), b"v", content_type="text/plain")
        found, cursor = [], ""
        while cursor is not None:
            query = f"?limit=20&values=true&cursor={cursor}" if cursor else "?limit=20&values=true"
            status, _, body = ask("GET", "/v1/kv/default" + query)
            self.assertEqual(status, 200)
            page = json.loads(body)
            found += [entry["key"] for entry in page["entries"] if "key" in entry]
            cursor = page["cursor"]
        mine = [name for name in found if name.startswith(base)]
        self.assertEqual(len(mine), len(names))
        self.assertEqual(set(mine), names)

    def test_what_happens_is_followed(self):
        connection = http.client.HTTPConnection(HTTP, timeout=TIMEOUT)
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/events")
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        self.assertEqual(answer.headers["content-type"], "text/event-stream")
        told = []
        while b"event: current\n" not in told:
            told.append(answer.readline())
        self.assertIn(b"event: keyspace-present\n", told)
        data = json.loads(told[told.index(b"event: host-present\n") + 1].removeprefix(b"data: "))
        self.assertEqual(data["event"], "host-present")
        self.assertEqual(len(data["node"]), 16)

    def test_errors(self):
        status, _, body = ask("GET", "/v1/kv/nope/k")
        error = json.loads(body)["error"]
        self.assertEqual((status, error["kind"]), (404, "no_keyspace"))
        self.assertIn("default", error["right"])
        status, _, body = ask("PUT", self.path("k"), b"v", content_type="text/plain",
                              x_quorate_context="AA==")
        self.assertEqual((status, json.loads(body)["error"]["kind"]), (501, "unsupported"))

    def test_a_page_of_another_site_may_not_write(self):
        status, _, _ = ask("PUT", self.path("k"), b"v", content_type="text/plain",
                           origin="http://elsewhere.example")
        self.assertEqual(status, 403)

    def fuzz(self, document):
        """Has Schemathesis test the server against a description; it must find nothing."""
        # A stream has no end that could be waited for, nor has that of a node that is followed.
        del document["paths"]["/v1/events"]
        node = document["paths"]["/v1/tree/{keyspace}/{path}"]["get"]
        node["parameters"] = [it for it in node["parameters"] if it["name"] == "children"]
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "openapi.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(document, file)
            command = [os.path.join(os.path.dirname(sys.executable), "schemathesis"), "run"]
            command += [path, "--url", f"http://{HTTP}", "--checks", CHECKS, "--mode", "all"]
            command += ["--phases", "examples,coverage,fuzzing", "--max-examples", EXAMPLES]
            command += ["--seed", "7", "--request-timeout", str(TIMEOUT)]
            done = subprocess.run(
                command, cwd=place, capture_output=True, text=True, timeout=250, check=False
            )
        self.assertEqual(done.returncode, 0, done.stdout[-8_000:] + done.stderr[-2_000:])
        return int(re.search(r"(\d+) generated, \1 passed", done.stdout)[1])

    def test_any_request_is_answered_as_described(self):
        _, _, body = ask("GET", "/v1/openapi.json")
        self.assertGreater(self.fuzz(json.loads(body)), 100)

    def test_requests_that_are_served_are_answered_as_described(self):
        _, _, body = ask("GET", "/v1/openapi.json")
        document = json.loads(body)
        # What would be refused for what it names is left out, so that the rest is really done.
        parameters = document["components"]["parameters"]
        parameters["keyspace"]["schema"] = {"type": "string", "enum": ["default"]}
        parameters["key"]["schema"]["maxLength"] = 8
        refused = ["replicas", "cursor", "from", "to", "context", "repeat_of", "repeat_age_ms",
                   "expire_after_ms", "expire_at_ms", "keep_expiry", "token", "version"]
        for item in document["paths"].values():
            for operation in item.values():
                if "parameters" in operation:
                    operation["parameters"] = [
                        each for each in operation["parameters"]
                        if each.get("name", each.get("$ref", "").rpartition("/")[2]) not in refused
                    ]
        before = served()
        self.assertGreater(self.fuzz(document), 100)
        self.assertGreater(served() - before, 100)


def served():
    """How many operations host 1 has done for clients."""
    _, _, body = ask("GET", "/metrics")
    lines = body.decode().splitlines()
    done = [line for line in lines if line.startswith("quorate_requests_total{")]
    return sum(int(line.rpartition(" ")[2]) for line in done if 'outcome="ok"' in line)


if __name__ == "__main__":
    unittest.main()
