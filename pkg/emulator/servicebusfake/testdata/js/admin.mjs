// Runs the official administration client through what can be read. Usage: node admin.mjs CONNECTION_STRING
// Queues: orders, whose messages live for 14 days. Topics: decisions, with the subscriptions audit and kubernetes; the latter
// requires sessions. Prints one line per check; exits with 1 at the first that fails.
import assert from "node:assert/strict";
import { ServiceBusAdministrationClient, ServiceBusClient } from "@azure/service-bus";

const client = new ServiceBusClient(process.argv[2], { retryOptions: { maxRetries: 1, retryDelayInMs: 10 } });
const admin = new ServiceBusAdministrationClient(process.argv[2]);

async function check(name, run) {
  await run();
  console.log(`ok ${name}`);
}

await client.createSender("orders").sendMessages([{ body: "a" }, { body: "b" }, { body: "c" }]);

await check("the counts of a queue", async () => {
  const got = await admin.getQueueRuntimeProperties("orders");
  assert.equal(got.name, "orders");
  assert.equal(got.activeMessageCount, 3);
  assert.equal(got.deadLetterMessageCount, 0);
  assert.equal(got.totalMessageCount, 3);
  assert.ok(got.createdAt instanceof Date);
});

await check("the settings of a queue", async () => {
  const got = await admin.getQueue("orders");
  assert.equal(got.defaultMessageTimeToLive, "P14D");
  assert.equal(got.lockDuration, "PT1M");
  assert.equal(got.requiresSession, false);
  assert.equal(got.status, "Active");
});

await check("a list of queues", async () => {
  const names = [];
  for await (const queue of admin.listQueuesRuntimeProperties()) {
    names.push(queue.name);
  }
  assert.deepEqual(names, ["orders"]);
});

await check("which queues there are", async () => {
  assert.equal(await admin.queueExists("orders"), true);
  assert.equal(await admin.queueExists("absent"), false);
});

await client.createSender("decisions").sendMessages([{ body: "a", sessionId: "orders" }, { body: "b", sessionId: "orders" }]);

await check("a topic", async () => {
  const got = await admin.getTopicRuntimeProperties("decisions");
  assert.equal(got.name, "decisions");
  assert.equal(got.subscriptionCount, 2);
  assert.equal(got.scheduledMessageCount, 0);
  assert.equal((await admin.getTopic("decisions")).defaultMessageTimeToLive, "P10675199DT2H48M5.4775807S");
});

await check("a subscription", async () => {
  const got = await admin.getSubscriptionRuntimeProperties("decisions", "kubernetes");
  assert.equal(got.topicName, "decisions");
  assert.equal(got.subscriptionName, "kubernetes");
  assert.equal(got.activeMessageCount, 2);
  assert.equal(got.deadLetterMessageCount, 0);
  assert.equal((await admin.getSubscription("decisions", "kubernetes")).requiresSession, true);
});

await check("lists of topics and subscriptions", async () => {
  const names = [];
  for await (const topic of admin.listTopics()) {
    names.push(topic.name);
  }
  for await (const subscription of admin.listSubscriptionsRuntimeProperties("decisions")) {
    names.push(`${subscription.topicName}/${subscription.subscriptionName}`);
  }
  assert.deepEqual(names, ["decisions", "decisions/audit", "decisions/kubernetes"]);
});

await check("which topics and subscriptions there are", async () => {
  assert.equal(await admin.topicExists("decisions"), true);
  assert.equal(await admin.topicExists("absent"), false);
  assert.equal(await admin.subscriptionExists("decisions", "audit"), true);
  assert.equal(await admin.subscriptionExists("decisions", "absent"), false);
});

await client.close();
