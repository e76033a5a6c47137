// BullMQ keeps its jobs in lists and sorted sets, by scripts: it is refused with the reason.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Queue } from "bullmq";
import { FIRST, IS_QUORATE, TRANSACTIONAL, key } from "./endpoint.js";

test("a queue of jobs is refused", { skip: !IS_QUORATE && "plain Redis can do it" }, async () => {
  const connection = { ...FIRST, db: TRANSACTIONAL, maxRetriesPerRequest: 3 };
  const queue = new Queue(key("jobs").replaceAll(":", "-"), { connection });
  // What a connection tells beside its answers is told there.
  queue.on("error", () => {});
  try {
    await assert.rejects(() => queue.add("job", { paint: "red" }), /EVAL(SHA)? needs scripts/);
  } finally {
    await queue.close();
  }
});
