// node-redis with either protocol, on a register and on a keyspace with transactions.

import assert from "node:assert/strict";
import { test } from "node:test";
import { WatchError, createClient } from "redis";
import { FIRST, IS_QUORATE, SECOND, TRANSACTIONAL, gone, key } from "./endpoint.js";

const ADDERS = 8;
const ADDITIONS = 25;

// Runs a test with a client of one keyspace, once for each protocol; it is closed behind it.
function each(name, database, body) {
  for (const RESP of [2, 3]) {
    test(`${name}, RESP${RESP}`, async () => {
      const clients = [];
      const connect = async (socket = FIRST) => {
        const client = createClient({ socket, database, RESP });
        client.on("error", () => {});
        clients.push(client);
        return client.connect();
      };
      try {
        await body(await connect(), connect);
      } finally {
        clients.forEach((client) => client.destroy());
      }
    });
  }
}

each("values", 0, async (client) => {
  const name = key("value");
  assert.equal(await client.get(name), null);
  assert.equal(await client.set(name, "a\0\r\nb"), "OK");
  assert.equal(await client.get(name), "a\0\r\nb");
  assert.equal(await client.exists([name, key("absent")]), 1);
  assert.equal(await client.type(name), "string");
  assert.equal(await client.del(name), 1);
  const found = new Set();
  const base = key("scan");
  await Promise.all(Array.from({ length: 200 }, (_, index) => client.set(`${base}:${index}`, "v")));
  for await (const page of client.scanIterator({ MATCH: `${base}:*`, COUNT: 50 })) {
    page.forEach((each) => found.add(each));
  }
  assert.equal(found.size, 200);
});

each("what a register cannot do is refused", 0, async (client) => {
  if (!IS_QUORATE) return;
  for (const ask of [() => client.incr("k"), () => client.setNX("k", "x")]) {
    await assert.rejects(ask, /this keyspace is linearizable/);
  }
});

each("counters and conditions", TRANSACTIONAL, async (client) => {
  const name = key("counter");
  assert.equal(await client.incr(name), 1);
  assert.equal(await client.decrBy(name, 11), -10);
  await client.set(name, "text");
  await assert.rejects(() => client.incr(name), /not an integer or out of range/);
  const lock = { condition: "NX", expiration: { type: "PX", value: 60_000 } };
  assert.equal(await client.set(name, "x", lock), null);
  assert.equal(await client.set(key("lock"), "x", lock), "OK");
  assert.equal(await client.getDel(name), "text");
});

each("a transaction", TRANSACTIONAL, async (client) => {
  const name = key("transaction");
  const told = await client.multi().set(name, "1").incr(name).get(name).exec();
  assert.deepEqual(told, ["OK", 2, "2"]);
});

each("a watched key that changed", TRANSACTIONAL, async (client, connect) => {
  const name = key("watched");
  await client.set(name, "5");
  await client.watch(name);
  await (await connect(SECOND)).incr(name);
  await assert.rejects(() => client.multi().set(name, "50").exec(), WatchError);
  assert.equal(await client.get(name), "6");
});

each("nothing is lost of what many add", TRANSACTIONAL, async (client, connect) => {
  const name = key("adders");
  const add = async (number) => {
    const adder = await connect(number % 2 ? SECOND : FIRST);
    for (let turn = 0; turn < ADDITIONS; turn++) await adder.incr(name);
  };
  await Promise.all(Array.from({ length: ADDERS }, (_, number) => add(number)));
  assert.equal(await client.get(name), String(ADDERS * ADDITIONS));
});

each("keys expire", TRANSACTIONAL, async (client) => {
  const name = key("short");
  assert.equal(await client.setEx(name, 100, "x"), "OK");
  assert.equal(await client.ttl(name), 100);
  assert.equal(await client.persist(name), 1);
  assert.equal(await client.pExpire(name, 200), 1);
  await gone(() => client.get(name));
  assert.equal(await client.ttl(name), -2);
});
