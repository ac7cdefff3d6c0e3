// ioredis `Cluster` against a Korum cluster: node ioredis_cluster.js HOST PORT (a cluster port).
// Prints a line a check; exit code 1 when one fails or nothing happens for 60 seconds.
"use strict";

const assert = require("node:assert");
const { Cluster } = require("ioredis");

const [host, port] = process.argv.slice(2);
const cluster = new Cluster([{ host, port: Number(port) }], {
  clusterRetryStrategy: (times) => (times > 5 ? null : 100),
});
cluster.on("error", (error) => console.error("error event:", error.message));
setTimeout(() => {
  console.error("not ok: no end after 60 s");
  process.exit(1);
}, 60_000).unref();

const checks = {
  "the cluster becomes ready": async () => {
    await new Promise((resolve, reject) => {
      if (cluster.status === "ready") resolve();
      cluster.once("ready", resolve);
      cluster.once("end", () => reject(new Error("the connection ended")));
    });
    assert.strictEqual(cluster.nodes("master").length, 3);
  },
  "values come back from all nodes": async () => {
    for (let i = 0; i < 200; i++) assert.strictEqual(await cluster.set(`io:${i}`, `value ${i}`), "OK");
    for (let i = 0; i < 200; i++) assert.strictEqual(await cluster.get(`io:${i}`), `value ${i}`);
    assert.strictEqual(await cluster.get("io:nothing"), null);
  },
  "binary values": async () => {
    const value = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    await cluster.set("io:binary", value);
    assert.deepStrictEqual(await cluster.getBuffer("io:binary"), value);
  },
  "options and expiry": async () => {
    assert.strictEqual(await cluster.set("io:ttl", "x", "PX", 50_000, "NX"), "OK");
    assert.strictEqual(await cluster.set("io:ttl", "y", "NX"), null);
    const left = await cluster.pttl("io:ttl");
    assert.ok(left > 0 && left <= 50_000);
    assert.strictEqual(await cluster.del("io:ttl"), 1);
  },
  "a pipeline within one slot": async () => {
    const replies = await cluster.pipeline().set("{io}a", 1).incr("{io}a").get("{io}a").mget("{io}a", "{io}b").exec();
    assert.deepStrictEqual(replies, [[null, "OK"], [null, 2], [null, "2"], [null, ["2", null]]]);
  },
  "errors are errors": async () => {
    await cluster.set("io:text", "text");
    await assert.rejects(cluster.incr("io:text"), /ERR value is not an integer/);
    await assert.rejects(cluster.mget("io:1", "io:2"), /CROSSSLOT|same/);
  },
  "messages reach who listens": async () => {
    const listener = new Cluster([{ host, port: Number(port) }]);
    const heard = [];
    listener.on("message", (channel, message) => heard.push([channel, message]));
    listener.on("pmessage", (pattern, channel, message) => heard.push([pattern, channel, message]));
    await listener.subscribe("io:news");
    await listener.psubscribe("io:ne*");
    for (let i = 0; i < 3; i++) await cluster.publish("io:news", `message ${i}`);
    for (let end = Date.now() + 5000; heard.length < 6 && Date.now() < end; ) await new Promise((done) => setTimeout(done, 20));
    const [direct, matched] = [heard.filter((it) => it.length === 2), heard.filter((it) => it.length === 3)];
    assert.deepStrictEqual(direct, [0, 1, 2].map((i) => ["io:news", `message ${i}`]));
    assert.deepStrictEqual(matched, [0, 1, 2].map((i) => ["io:ne*", "io:news", `message ${i}`]));
    listener.disconnect();
  },
  "a hundred requests at once": async () => {
    const replies = await Promise.all(Array.from({ length: 100 }, (_, i) => cluster.incrby(`io:count:${i}`, i)));
    assert.strictEqual(replies.length, 100);
    await Promise.all(Array.from({ length: 100 }, (_, i) => cluster.del(`io:count:${i}`)));
  },
};

(async () => {
  let failed = 0;
  for (const [name, check] of Object.entries(checks)) {
    try {
      await check();
      console.log(`ok: ${name}`);
    } catch (error) {
      failed++;
      console.log(`not ok: ${name}: ${error.stack}`);
    }
  }
  cluster.disconnect();
  process.exit(failed ? 1 : 0);
})();
