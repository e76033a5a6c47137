// The server under test; ../endpoint.py describes the environment.

import { randomUUID } from "node:crypto";

function parse(text) {
  const [host, port] = text.split(":");
  return { host, port: Number(port) };
}

export const FIRST = parse(process.env.RESP_ENDPOINT ?? "127.0.0.1:6379");
export const SECOND = parse(process.env.RESP_ENDPOINT_SECOND || `${FIRST.host}:${FIRST.port}`);
export const IS_QUORATE = process.env.QUORATE === "1";
// The number of a keyspace with transactions; plain Redis has one of that number too.
export const TRANSACTIONAL = 2;
const DEADLINE_MS = 30_000;

// A key that no other test and no earlier run has used.
export function key(name) {
  return `clients:node:${randomUUID()}:${name}`;
}

// Waits until `read` gives null.
export async function gone(read) {
  const deadline = Date.now() + DEADLINE_MS;
  while ((await read()) !== null) {
    if (Date.now() > deadline) throw new Error("the key stays");
  }
}
