// BullMQ on ioredis against a Korum cluster: node bullmq.js redis|cluster HOST:PORT... (client ports, or cluster ports).
// Its producer, its worker and its listener talk to different nodes. The prefix has the braces that BullMQ's
// documentation asks for with Redis Cluster: all keys of a queue are then in one slot.
// Prints a line a check; exit code 1 when one fails or nothing happens for 60 seconds.
"use strict";

const assert = require("node:assert");
const { Cluster, Redis } = require("ioredis");
const { FlowProducer, Job, Queue, QueueEvents, Worker } = require("bullmq");

const [mode, ...addresses] = process.argv.slice(2);
const nodes = addresses.map((address) => {
  const [host, port] = address.split(":");
  return { host, port: Number(port) };
});
setTimeout(() => {
  console.error("not ok: no end after 60 s");
  process.exit(1);
}, 60_000).unref();

let next = 0;
const opened = [];
function connection() {
  const node = nodes[next++ % nodes.length];
  const made = mode === "cluster" ? new Cluster([node]) : new Redis({ ...node, maxRetriesPerRequest: null });
  opened.push(made);
  return made;
}

const prefix = "{bull}";
const closing = [];
function use(thing) {
  thing.on("error", (error) => console.error("error event:", error.message));
  closing.push(thing);
  return thing;
}
function queueOf(name) {
  const queue = use(new Queue(name, { connection: connection(), prefix }));
  queue.setMaxListeners(100); // one for each job that is waited for
  return queue;
}
const eventsOf = (name) => use(new QueueEvents(name, { connection: connection(), prefix }));
const workerOf = (name, work, options = {}) => use(new Worker(name, work, { connection: connection(), prefix, ...options }));

const checks = {
  "jobs are worked on and their results come back": async () => {
    const queue = queueOf("sums");
    const events = eventsOf("sums");
    await events.waitUntilReady();
    workerOf("sums", async (job) => job.data.a + job.data.b, { concurrency: 4 });
    const jobs = await queue.addBulk(Array.from({ length: 30 }, (_, i) => ({ name: "sum", data: { a: i, b: 1 } })));
    const results = await Promise.all(jobs.map((job) => job.waitUntilFinished(events, 10_000)));
    assert.deepStrictEqual(results, Array.from({ length: 30 }, (_, i) => i + 1));
    const counts = await queue.getJobCounts("active", "completed", "failed");
    assert.deepStrictEqual(counts, { active: 0, completed: 30, failed: 0 });
    const again = await Job.fromId(queue, jobs[3].id);
    assert.strictEqual(again.returnvalue, 4);
  },
  "a worker that waits gets a job at once": async () => {
    const queue = queueOf("idle");
    const events = eventsOf("idle");
    await events.waitUntilReady();
    const worker = workerOf("idle", async (job) => job.name);
    await worker.waitUntilReady();
    await new Promise((done) => setTimeout(done, 300));
    const begun = Date.now();
    const job = await queue.add("now", {});
    assert.strictEqual(await job.waitUntilFinished(events, 10_000), "now");
    assert.ok(Date.now() - begun < 2000, `it took ${Date.now() - begun} ms`);
  },
  "jobs fail, are tried again, report progress": async () => {
    const queue = queueOf("tries");
    const events = eventsOf("tries");
    await events.waitUntilReady();
    const progress = [];
    events.on("progress", ({ data }) => progress.push(data));
    workerOf("tries", async (job) => {
      await job.updateProgress(job.attemptsMade);
      await job.log(`attempt ${job.attemptsMade}`);
      if (job.attemptsMade < job.data.works) throw new Error("not yet");
      return job.attemptsMade;
    });
    const backoff = { type: "fixed", delay: 20 };
    const job = await queue.add("third", { works: 2 }, { attempts: 5, backoff });
    assert.strictEqual(await job.waitUntilFinished(events, 10_000), 2);
    assert.deepStrictEqual((await queue.getJobLogs(job.id)).logs, ["attempt 0", "attempt 1", "attempt 2"]);
    assert.deepStrictEqual(progress, [0, 1, 2]);
    const fails = await queue.add("never", { works: 9 }, { attempts: 2, backoff });
    await assert.rejects(fails.waitUntilFinished(events, 10_000), /not yet/);
    assert.strictEqual(await fails.getState(), "failed");
    await fails.retry();
    await assert.rejects(fails.waitUntilFinished(events, 10_000), /not yet/);
  },
  "delays, priorities and a pause": async () => {
    const queue = queueOf("order");
    const events = eventsOf("order");
    await events.waitUntilReady();
    await queue.pause();
    const order = [];
    let late;
    workerOf("order", async (job) => {
      if (job.name === "late") late = Date.now();
      else order.push(job.name);
    });
    const begun = Date.now();
    const jobs = [
      await queue.add("late", {}, { delay: 300 }),
      await queue.add("low", {}, { priority: 9 }),
      await queue.add("high", {}, { priority: 1 }),
      await queue.add("first", {}),
    ];
    assert.deepStrictEqual(await queue.getJobCounts("prioritized"), { prioritized: 2 });
    await queue.resume();
    await Promise.all(jobs.map((job) => job.waitUntilFinished(events, 10_000)));
    assert.deepStrictEqual(order, ["first", "high", "low"]);
    assert.ok(late - begun >= 300);
  },
  "a limit of so many jobs in a time": async () => {
    const queue = queueOf("limited");
    const events = eventsOf("limited");
    await events.waitUntilReady();
    const begun = Date.now();
    workerOf("limited", async () => Date.now() - begun, { limiter: { max: 2, duration: 300 } });
    const jobs = await queue.addBulk(Array.from({ length: 5 }, () => ({ name: "one", data: {} })));
    const times = await Promise.all(jobs.map((job) => job.waitUntilFinished(events, 10_000)));
    assert.ok(Math.max(...times) >= 500, `${times}`);
  },
  "a flow: the parent comes after its children": async () => {
    const flows = use(new FlowProducer({ connection: connection(), prefix }));
    const events = eventsOf("parents");
    await events.waitUntilReady();
    workerOf("children", async (job) => job.data.value);
    workerOf("parents", async (job) => Object.values(await job.getChildrenValues()).reduce((a, b) => a + b, 0));
    const child = (value) => ({ name: "child", queueName: "children", data: { value } });
    const flow = await flows.add({ name: "sum", queueName: "parents", children: [1, 2, 3].map(child) });
    assert.strictEqual(await flow.job.waitUntilFinished(events, 10_000), 6);
  },
  "a schedule, and ids that come once": async () => {
    const queue = queueOf("often");
    let count = 0;
    const three = new Promise((done) => {
      workerOf("often", async (job) => {
        if (job.name === "tick" && ++count === 3) done();
      });
    });
    await queue.upsertJobScheduler("ticks", { every: 100 }, { name: "tick" });
    await three;
    assert.strictEqual((await queue.getJobSchedulers()).length, 1);
    assert.strictEqual(await queue.removeJobScheduler("ticks"), true);
    const [one, two] = [await queue.add("x", {}, { jobId: "only" }), await queue.add("x", {}, { jobId: "only" })];
    assert.strictEqual(one.id, two.id);
    const same = { deduplication: { id: "same", ttl: 5000 }, delay: 60_000 };
    assert.strictEqual((await queue.add("y", {}, same)).id, (await queue.add("y", {}, same)).id);
  },
  "queues are emptied and removed": async () => {
    const queue = queueOf("gone");
    await queue.addBulk(Array.from({ length: 10 }, () => ({ name: "x", data: {} })));
    assert.strictEqual(await queue.getWaitingCount(), 10);
    const [job] = await queue.getJobs(["waiting"], 0, 0);
    await job.remove();
    await queue.drain();
    assert.strictEqual(await queue.count(), 0);
    await queue.obliterate({ force: true });
    const client = await queue.client;
    assert.strictEqual(await client.exists("{bull}:gone:meta"), 0);
  },
};

(async () => {
  const first = connection();
  if (mode === "cluster") await new Promise((done) => first.once("ready", done));
  for (const node of mode === "cluster" ? first.nodes("master") : [first]) await node.flushall();
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
  await Promise.all(closing.map((thing) => thing.close()));
  opened.forEach((made) => made.disconnect());
  process.exit(failed ? 1 : 0);
})();
