// Runs the official client through what queues and topics can do. Usage: node client.mjs CONNECTION_STRING
// Queues: orders (plain), sessions (requires sessions). Topic: events, with the subscriptions all and ruled (plain) and ordered
// (requires sessions). Prints one line per check; exits with 1 at the first that fails.
import assert from "node:assert/strict";
import { ServiceBusClient } from "@azure/service-bus";

const client = new ServiceBusClient(process.argv[2], { retryOptions: { maxRetries: 1, retryDelayInMs: 10 } });

async function check(name, run) {
  await run();
  console.log(`ok ${name}`);
}

const bodies = (messages) => messages.map((message) => message.body);

async function receive(receiver, count) {
  const all = [];
  while (all.length < count) {
    all.push(...(await receiver.receiveMessages(count - all.length, { maxWaitTimeInMs: 10_000 })));
  }
  return all;
}

const sender = client.createSender("orders");
const receiver = client.createReceiver("orders");

await check("send, receive, complete", async () => {
  const sent = {
    body: { text: "hello" }, messageId: "m1", correlationId: "c1", subject: "s1", contentType: "application/json",
    applicationProperties: { text: "x", yes: true, number: 7 }, timeToLive: 3_600_000,
  };
  await sender.sendMessages(sent);
  const [got] = await receive(receiver, 1);
  assert.deepEqual(got.body, sent.body);
  for (const name of ["messageId", "correlationId", "subject", "contentType", "timeToLive"]) {
    assert.equal(got[name], sent[name], name);
  }
  assert.deepEqual(got.applicationProperties, sent.applicationProperties);
  assert.equal(got.deliveryCount, 0);
  assert.equal(got.state, "active");
  assert.ok(got.lockedUntilUtc > new Date());
  assert.ok(got.sequenceNumber.toNumber() > 0);
  await receiver.completeMessage(got);
});

await check("a batch", async () => {
  const batch = await sender.createMessageBatch();
  for (const body of ["a", "b", "c"]) {
    assert.ok(batch.tryAddMessage({ body }));
  }
  await sender.sendMessages(batch);
  const got = await receive(receiver, 3);
  assert.deepEqual(bodies(got), ["a", "b", "c"]);
  for (const message of got) {
    await receiver.completeMessage(message);
  }
});

await check("a message of many frames", async () => {
  const body = "0123456789".repeat(20_000);
  await sender.sendMessages({ body });
  const [got] = await receive(receiver, 1);
  assert.equal(got.body, body);
  await receiver.completeMessage(got);
});

await check("abandon, renew, defer", async () => {
  await sender.sendMessages({ body: "a" });
  await receiver.abandonMessage((await receive(receiver, 1))[0], { tried: "yes" });
  const [again] = await receive(receiver, 1);
  assert.equal(again.deliveryCount, 1);
  assert.equal(again.applicationProperties.tried, "yes");
  assert.ok((await receiver.renewMessageLock(again)) >= again.enqueuedTimeUtc);
  await receiver.deferMessage(again);
  const [deferred] = await receiver.receiveDeferredMessages(again.sequenceNumber);
  assert.equal(deferred.body, "a");
  await receiver.completeMessage(deferred);
  await assert.rejects(receiver.completeMessage(again));
});

await check("dead-letter", async () => {
  await sender.sendMessages({ body: "a" });
  await receiver.deadLetterMessage((await receive(receiver, 1))[0], { deadLetterReason: "bad", deadLetterErrorDescription: "very bad" });
  const dead = client.createReceiver("orders", { subQueueType: "deadLetter" });
  const [got] = await receive(dead, 1);
  assert.equal(got.deadLetterReason, "bad");
  assert.equal(got.deadLetterErrorDescription, "very bad");
  await dead.completeMessage(got);
  await dead.close();
});

await check("receive and delete", async () => {
  await sender.sendMessages([{ body: "a" }, { body: "b" }]);
  const deleting = client.createReceiver("orders", { receiveMode: "receiveAndDelete" });
  assert.deepEqual(bodies(await receive(deleting, 2)), ["a", "b"]);
  await deleting.close();
});

await check("schedule, peek, cancel", async () => {
  const numbers = await sender.scheduleMessages([{ body: "a" }, { body: "b" }], new Date(Date.now() + 3_600_000));
  const peeked = await receiver.peekMessages(10);
  assert.deepEqual(bodies(peeked), ["a", "b"]);
  assert.equal(peeked[0].state, "scheduled");
  await sender.cancelScheduledMessages(numbers);
  assert.deepEqual(await receiver.peekMessages(10, { fromSequenceNumber: numbers[0] }), []);
});

await check("subscribe", async () => {
  await sender.sendMessages([{ body: "a" }, { body: "b" }]);
  const got = [];
  let subscription;
  await new Promise((resolve, reject) => {
    subscription = receiver.subscribe({
      processMessage: async (message) => {
        got.push(message.body);
        if (got.length === 2) {
          resolve();
        }
      },
      processError: async ({ error }) => reject(error),
    });
  });
  await subscription.close();
  assert.deepEqual(got, ["a", "b"]);
});

await check("nothing to receive", async () => {
  const idle = client.createReceiver("orders");
  assert.deepEqual(await idle.receiveMessages(5, { maxWaitTimeInMs: 100 }), []);
  await idle.close();
});

await check("sessions", async () => {
  const sessions = client.createSender("sessions");
  await sessions.sendMessages([{ body: "x1", sessionId: "x" }, { body: "y1", sessionId: "y" }, { body: "x2", sessionId: "x" }]);
  const x = await client.acceptSession("sessions", "x");
  await assert.rejects(client.acceptSession("sessions", "x"));
  const got = await receive(x, 2);
  assert.deepEqual(bodies(got), ["x1", "x2"]);
  await x.setSessionState({ step: 1 });
  assert.deepEqual(await x.getSessionState(), { step: 1 });
  assert.ok((await x.renewSessionLock()) > new Date());
  const next = await client.acceptNextSession("sessions");
  assert.equal(next.sessionId, "y");
  for (const message of got) {
    await x.completeMessage(message);
  }
  await x.close();
  await next.close();
  await assert.rejects(sessions.sendMessages({ body: "without" }));
});

const events = client.createSender("events");

await check("a topic and its subscriptions", async () => {
  await events.sendMessages([{ body: "a", sessionId: "x" }, { body: "b" }]);
  const all = client.createReceiver("events", "all");
  const got = await receive(all, 2);
  assert.deepEqual(bodies(got), ["a", "b"]);
  assert.equal(got[1].enqueuedSequenceNumber, 2);
  for (const message of got) {
    await all.completeMessage(message);
  }
  await all.close();

  const x = await client.acceptNextSession("events", "ordered");
  assert.equal(x.sessionId, "x");
  const [ordered] = await receive(x, 1);
  assert.equal(ordered.body, "a");
  await x.deadLetterMessage(ordered, { deadLetterReason: "bad" });
  await x.close();
  const dead = client.createReceiver("events", "ordered", { subQueueType: "deadLetter", receiveMode: "receiveAndDelete" });
  // The one without a session came there by itself.
  assert.deepEqual((await receive(dead, 2)).map((message) => message.deadLetterReason), ["bad", "Session ID is null"]);
  await dead.close();
});

await check("the rules of a subscription", async () => {
  const rules = client.createRuleManager("events", "ruled");
  const listed = async () => {
    const all = [];
    for await (const rule of rules.listRules()) {
      // Of a list that is empty the client makes one that holds nothing once.
      if (rule) all.push([rule.name, rule.filter.sqlExpression ?? rule.filter.subject ?? rule.filter.applicationProperties.processor]);
    }
    return all;
  };
  assert.deepEqual(await listed(), [["$Default", "1=1"]]);
  await rules.deleteRule("$Default");
  assert.deepEqual(await listed(), []);
  await rules.createRule("out", { subject: "out" });
  await rules.createRule("orders", { applicationProperties: { processor: "orders" } });
  assert.deepEqual(await listed(), [["out", "out"], ["orders", "orders"]]);
  await assert.rejects(rules.createRule("out", { subject: "in" }), { code: "MessagingEntityAlreadyExists" });
  await assert.rejects(rules.deleteRule("nowhere"), { code: "MessagingEntityNotFound" });
  await assert.rejects(rules.createRule("sql", { sqlExpression: "lag > 100" }), /SQL filters are not offered/);
  await assert.rejects(rules.createRule("act", { subject: "in" }, { sqlExpression: "SET a = 1" }), /SQL, are not offered/);
  await events.sendMessages([
    { body: "neither", subject: "in" }, { body: "first", subject: "out" }, { body: "second", applicationProperties: { processor: "orders" } },
  ]);
  const ruled = client.createReceiver("events", "ruled", { receiveMode: "receiveAndDelete" });
  // What was sent before the rules was taken by the default one.
  assert.deepEqual(bodies(await receive(ruled, 4)), ["a", "b", "first", "second"]);
  await ruled.close();
});

await check("what is not for that", async () => {
  await assert.rejects(client.createReceiver("events").receiveMessages(1), /it is a topic/);
  await assert.rejects(client.createSender("events/Subscriptions/all").sendMessages({ body: "a" }), /it is a subscription/);
});

await check("what does not exist", async () => {
  await assert.rejects(client.createSender("nowhere").sendMessages({ body: "a" }), { code: "MessagingEntityNotFound" });
});

await check("close", () => client.close());
