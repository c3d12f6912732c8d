// Uses ioredis as its users do, through the node at each port that is given.
"use strict";

const assert = require("node:assert/strict");
const Redis = require("ioredis");

async function check(port) {
  const client = new Redis({ port, db: 5, connectionName: "check", maxRetriesPerRequest: 1 });
  client.on("error", (error) => {
    throw error;
  });
  await new Promise((resolve) => client.once("ready", resolve));
  await client.flushdb();
  assert.equal(await client.set("k", "v"), "OK");
  assert.equal(await client.get("k"), "v");
  assert.equal(await client.get("absent"), null);
  assert.equal(await client.set("k", "w", "NX"), null);
  assert.equal(await client.set("k", "w", "XX"), "OK");
  assert.equal(await client.append("k", "!"), 2);
  assert.equal(await client.incr("n"), 1);
  assert.equal(await client.incrby("n", 9), 10);
  assert.deepEqual(await client.mget("k", "absent"), ["w!", null]);
  await assert.rejects(client.incr("k"), /not an integer/);
  await assert.rejects(client.expire("k", 5), /unknown command/);

  const binary = Buffer.from([0, 255, 13, 10]);
  await client.set("binary", binary);
  assert.deepEqual(await client.getBuffer("binary"), binary);

  const pipeline = client.pipeline();
  for (let number = 0; number < 300; number += 1) {
    pipeline.set(`pipe:${number}`, number).get(`pipe:${number}`);
  }
  const replies = await pipeline.exec();
  for (let number = 0; number < 300; number += 1) {
    assert.deepEqual(replies[2 * number], [null, "OK"]);
    assert.deepEqual(replies[2 * number + 1], [null, String(number)]);
  }

  const found = new Set();
  for await (const keys of client.scanStream({ match: "pipe:*", count: 50 })) {
    keys.forEach((key) => found.add(key));
  }
  assert.equal(found.size, 300);
  assert.equal(await client.dbsize(), 303);
  await client.quit();
  console.log(`ioredis: passed on port ${port}`);
}

(async () => {
  for (const port of process.argv.slice(2)) {
    await check(Number(port));
  }
})().catch((error) => {
  console.error("ioredis:", error);
  process.exit(1);
});
