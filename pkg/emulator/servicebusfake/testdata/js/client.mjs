// Runs the official client through what a queue can do. Usage: node client.mjs CONNECTION_STRING
// Queues: orders (plain), sessions (requires sessions). Prints one line per check; exits with 1 at the first that fails.
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

await check("what does not exist", async () => {
  await assert.rejects(client.createSender("nowhere").sendMessages({ body: "a" }), { code: "MessagingEntityNotFound" });
});

await check("close", () => client.close());
