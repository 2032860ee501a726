// Uses the account at COSMOS_ENDPOINT as any program would, through the official SDK, and fails on the first surprise.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import {
  ChangeFeedMode,
  ChangeFeedStartFrom,
  CosmosClient,
} from "@azure/cosmos";

const client = new CosmosClient({
  endpoint: process.env.COSMOS_ENDPOINT,
  key: process.env.COSMOS_KEY,
});

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
async function ask(line) {
  console.log(line);
  return (await answers.next()).value.split(" ");
}

async function step(name, run) {
  try {
    await run();
  } catch (error) {
    console.error(`${name}:`, error);
    process.exit(1);
  }
}

const rejects = (promise, code) => assert.rejects(promise, (e) => e.code === code || assert.fail(`${e.code} ${e.message}`));

let database, container;

await step("account, database and container", async () => {
  const account = await client.getDatabaseAccount();
  assert.equal(account.resource.writableLocations.length, 1);
  ({ database } = await client.databases.createIfNotExists({ id: "js" }));
  ({ container } = await database.containers.createIfNotExists({
    id: "orders",
    partitionKey: { paths: ["/customer"], version: 2 },
    throughput: 20000,
  }));
  await database.containers.createIfNotExists({ id: "orders", partitionKey: { paths: ["/customer"] } });
  const { resources } = await client.databases.query("SELECT * FROM root r WHERE r.id = 'js'").fetchAll();
  assert.equal(resources.length, 1);
  const { resource: offer, offer: link } = await container.readOffer();
  assert.equal(offer.content.offerThroughput, 20000);
  await link.replace({ ...offer, content: { ...offer.content, offerThroughput: 19000 } });
  assert.equal((await container.readOffer()).resource.content.offerThroughput, 19000);
  await rejects(link.replace({ ...offer, content: { ...offer.content, offerThroughput: 300 } }), 400);
  const stale = { accessCondition: { type: "IfMatch", condition: offer._etag } };
  await rejects(link.replace({ ...offer, content: { ...offer.content, offerThroughput: 20000 } }, stale), 412);
  const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
  assert.equal(ranges.length, 2);
});

await step("documents", async () => {
  for (let i = 0; i < 20; i++) {
    await container.items.create({ id: `o${i}`, customer: `c${i % 5}`, total: i, tags: ["a", `t${i}`] });
  }
  await rejects(container.items.create({ id: "o1", customer: "c1" }), 409);
  const item = container.item("o1", "c1");
  const { resource, etag } = await item.read();
  assert.equal(resource.total, 1);
  await item.replace({ ...resource, total: 100 }, { accessCondition: { type: "IfMatch", condition: etag } });
  await rejects(item.replace(resource, { accessCondition: { type: "IfMatch", condition: etag } }), 412);
  const patched = await item.patch([
    { op: "incr", path: "/total", value: 1 },
    { op: "add", path: "/tags/-", value: "last" },
    { op: "set", path: "/note", value: "n" },
  ]);
  assert.equal(patched.resource.total, 101);
  assert.deepEqual(patched.resource.tags, ["a", "t1", "last"]);
  assert.equal((await container.items.upsert({ id: "new", customer: "c9" })).statusCode, 201);
  assert.equal((await container.items.upsert({ id: "new", customer: "c9", v: 2 })).statusCode, 200);
  assert.equal((await container.item("new", "c9").delete()).statusCode, 204);
  assert.equal((await container.item("new", "c9").read()).statusCode, 404);
  await container.items.create({ id: "none" });
  assert.equal((await container.item("none", undefined).read()).statusCode, 200);
  await container.item("none", undefined).delete();
});

await step("batch and bulk", async () => {
  const good = await container.items.batch(
    [
      { operationType: "Create", resourceBody: { id: "b1", customer: "batch" } },
      { operationType: "Create", resourceBody: { id: "b2", customer: "batch" } },
      { operationType: "Read", id: "b1" },
    ],
    "batch",
  );
  assert.deepEqual(good.result.map((r) => r.statusCode), [201, 201, 200]);
  const bad = await container.items.batch(
    [
      { operationType: "Delete", id: "b1" },
      { operationType: "Create", resourceBody: { id: "b2", customer: "batch" } },
    ],
    "batch",
  );
  assert.deepEqual(bad.result.map((r) => r.statusCode), [424, 409]);
  assert.equal((await container.item("b1", "batch").read()).statusCode, 200);
  const bulk = await container.items.executeBulkOperations([
    { operationType: "Create", partitionKey: "k1", resourceBody: { id: "x1", customer: "k1" } },
    { operationType: "Upsert", partitionKey: "k2", resourceBody: { id: "x2", customer: "k2" } },
    { operationType: "Delete", partitionKey: "batch", id: "b1" },
  ]);
  assert.deepEqual(bulk.map((r) => r.response?.statusCode), [201, 201, 204]);
});

await step("queries", async () => {
  const all = (q, options) => container.items.query(q, options).fetchAll().then((r) => r.resources);
  assert.equal((await all("SELECT * FROM c", { maxItemCount: 4 })).length, 23);
  assert.deepEqual(
    (await all({ query: "SELECT VALUE c.id FROM c WHERE c.customer = @c AND c.total < 10", parameters: [{ name: "@c", value: "c2" }] })).sort(),
    ["o2", "o7"],
  );
  assert.deepEqual(await all("SELECT VALUE c.total FROM c WHERE c.total >= 5 AND c.total < 9 ORDER BY c.total DESC"), [8, 7, 6, 5]);
  assert.deepEqual(await all("SELECT c.id, c.total AS t FROM c WHERE c.total > 3 ORDER BY c.total ASC OFFSET 1 LIMIT 2"), [
    { id: "o5", t: 5 },
    { id: "o6", t: 6 },
  ]);
  assert.deepEqual(await all("SELECT VALUE COUNT(1) FROM c"), [23]);
  assert.deepEqual(await all("SELECT VALUE MAX(c.total) FROM c"), [101]);
  assert.deepEqual(await all("SELECT VALUE SUM(c.total) FROM c WHERE c.total < 5"), [9]);
  assert.deepEqual(await all("SELECT COUNT(1) AS n FROM c"), [{ n: 23 }]);
  assert.deepEqual(await all("SELECT COUNT(1) AS n, MAX(c.total) AS most, AVG(c.total) AS mean FROM c WHERE c.total < 5"), [{ n: 4, most: 4, mean: 2.25 }]);
  assert.deepEqual(await all("SELECT VALUE c.id FROM c WHERE c.id LIKE 'o_[7-8]' AND c.id NOT LIKE '%8'"), ["o17"]);
  assert.equal((await all("SELECT TOP 3 * FROM c")).length, 3);
  assert.deepEqual((await all("SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 't3')")).map((d) => d.id), ["o3"]);
  assert.equal((await all("SELECT * FROM c", { partitionKey: "c1" })).length, 4);
  await rejects(all("SELECT * FRM c"), 400);
  const pages = container.items.query("SELECT * FROM c WHERE IS_NUMBER(c.total) ORDER BY c.total", { maxItemCount: 5 });
  let count = 0;
  while (pages.hasMoreResults()) count += (await pages.fetchNext()).resources?.length ?? 0;
  assert.equal(count, 20);
  const resumed = [];
  for (let continuationToken, more = true; more; more = continuationToken !== undefined) {
    const page = await container.items.query("SELECT VALUE c.total FROM c WHERE IS_NUMBER(c.total) ORDER BY c.total DESC", { maxItemCount: 3, enableQueryControl: true, continuationToken }).fetchNext();
    resumed.push(...page.resources);
    assert.ok(resumed.length <= 20, `${resumed} goes on and on`);
    continuationToken = page.continuationToken;
  }
  assert.deepEqual(resumed, [101, ...Array.from({ length: 20 }, (_, i) => 19 - i).filter((n) => n !== 1)]);
});

async function drain(iterator) {
  const changes = [];
  for (let quiet = 0; quiet < 6; ) {
    const page = await iterator.readNext();
    changes.push(...(page.result ?? []));
    quiet = page.statusCode === 304 ? quiet + 1 : 0;
  }
  return changes;
}

await step("change feed through a split and a merge", async () => {
  const iterator = container.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning(), maxItemCount: 7 });
  assert.equal((await drain(iterator)).length, 23);
  const children = await ask("split js orders 0");
  assert.equal(children.length, 2);
  for (let i = 20; i < 40; i++) await container.items.upsert({ id: `o${i}`, customer: `s${i}`, total: i });
  assert.deepEqual((await drain(iterator)).map((d) => d.total).sort((a, b) => a - b), Array.from({ length: 20 }, (_, i) => i + 20));
  await ask(`merge js orders ${children.join(" ")}`);
  await container.items.upsert({ id: "o20", customer: "s20", total: -1 });
  const one = container.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning("s20") });
  assert.deepEqual((await drain(one)).map((d) => d.total), [-1]);
  const [range] = await container.getFeedRanges();
  const part = container.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning(range) });
  assert.ok((await drain(part)).length > 0);
});

await step("all versions and deletes", async () => {
  const iterator = container.items.getChangeFeedIterator({
    changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes,
    changeFeedStartFrom: ChangeFeedStartFrom.Now(),
  });
  assert.deepEqual(await drain(iterator), []);
  await container.items.create({ id: "v", customer: "v", n: 1 });
  await container.items.upsert({ id: "v", customer: "v", n: 2 });
  await container.item("v", "v").delete();
  const versions = await drain(iterator);
  assert.deepEqual(versions.map((v) => v.metadata.operationType), ["create", "replace", "delete"]);
});

await step("the end", async () => {
  await container.delete();
  await database.delete();
  await rejects(database.read(), 404);
});

console.log("done");
process.exit(0);
