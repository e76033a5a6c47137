// ioredis, on a register and on a keyspace with transactions.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Redis } from "ioredis";
import { FIRST, IS_QUORATE, SECOND, TRANSACTIONAL, gone, key } from "./endpoint.js";

const ADDERS = 8;
const ADDITIONS = 25;

// Runs a test with a client of one keyspace, which is closed behind it.
function each(name, db, body) {
  test(name, async () => {
    const clients = [];
    const connect = (address = FIRST) => {
      clients.push(new Redis({ ...address, db, maxRetriesPerRequest: 3 }));
      return clients.at(-1);
    };
    try {
      await body(connect(), connect);
    } finally {
      clients.forEach((client) => client.disconnect());
    }
  });
}

each("values", 0, async (client) => {
  const name = key("value");
  assert.equal(await client.get(name), null);
  assert.equal(await client.set(name, "hello"), "OK");
  assert.equal(await client.get(name), "hello");
  const binary = Buffer.from([0, 255, 13, 10]);
  await client.set(name, binary);
  assert.deepEqual(await client.getBuffer(name), binary);
  assert.equal(await client.strlen(name), 4);
  assert.equal(await client.exists(name, key("absent")), 1);
  assert.equal(await client.del(name), 1);
});

each("many keys and pipelines", 0, async (client) => {
  const base = key("many");
  await client.mset({ [`${base}:a`]: "1", [`${base}:b`]: "2" });
  assert.deepEqual(await client.mget(`${base}:a`, key("absent"), `${base}:b`), ["1", null, "2"]);
  const pipeline = client.pipeline();
  for (let index = 0; index < 500; index++) {
    pipeline.set(`${base}:${index}`, index).get(`${base}:${index}`);
  }
  const told = await pipeline.exec();
  assert.deepEqual(told.at(-1), [null, "499"]);
  const found = new Set();
  for await (const page of client.scanStream({ match: `${base}:*`, count: 100 })) {
    page.forEach((name) => found.add(name));
  }
  assert.equal(found.size, 502);
});

each("what a register cannot do is refused", 0, async (client) => {
  if (!IS_QUORATE) return;
  for (const ask of [() => client.incr("k"), () => client.setnx("k", "x"), () => client.watch("k")]) {
    await assert.rejects(ask, /this keyspace is linearizable/);
  }
  await assert.rejects(() => client.eval("return 1", 0), /ERR/);
});

each("counters and conditions", TRANSACTIONAL, async (client) => {
  const name = key("counter");
  assert.equal(await client.incr(name), 1);
  assert.equal(await client.incrby(name, 41), 42);
  assert.equal(await client.incrbyfloat(name, 0.5), "42.5");
  await assert.rejects(() => client.incr(name), /not an integer or out of range/);
  assert.equal(await client.setnx(name, "x"), 0);
  assert.equal(await client.set(name, "x", "PX", 60_000, "NX"), null);
  assert.equal(await client.set(name, "x", "EX", 60, "XX"), "OK");
  assert.equal(await client.ttl(name), 60);
  assert.equal(await client.getdel(name), "x");
});

each("a transaction", TRANSACTIONAL, async (client) => {
  const name = key("transaction");
  const told = await client.multi().set(name, "1").incr(name).get(name).exec();
  assert.deepEqual(told, [[null, "OK"], [null, 2], [null, "2"]]);
  const failing = await client.multi().set(name, "text").incr(name).append(name, "!").exec();
  assert.match(failing[1][0].message, /not an integer/);
  assert.equal(await client.get(name), "text!");
});

each("a watched key that changed", TRANSACTIONAL, async (client, connect) => {
  const name = key("watched");
  await client.set(name, "5");
  await client.watch(name);
  await connect(SECOND).incr(name);
  assert.equal(await client.multi().set(name, "50").exec(), null);
  assert.equal(await client.get(name), "6");
});

each("nothing is lost of what many add", TRANSACTIONAL, async (client, connect) => {
  const name = key("adders");
  const add = async (number) => {
    const adder = connect(number % 2 ? SECOND : FIRST);
    for (let turn = 0; turn < ADDITIONS; turn++) await adder.incr(name);
  };
  await Promise.all(Array.from({ length: ADDERS }, (_, number) => add(number)));
  assert.equal(await client.get(name), String(ADDERS * ADDITIONS));
});

each("keys expire", TRANSACTIONAL, async (client) => {
  const name = key("short");
  assert.equal(await client.setex(name, 100, "x"), "OK");
  assert.equal(await client.ttl(name), 100);
  assert.equal(await client.persist(name), 1);
  assert.equal(await client.ttl(name), -1);
  assert.equal(await client.pexpire(name, 200), 1);
  await gone(() => client.get(name));
  assert.equal(await client.ttl(name), -2);
});
