// A consumer of scale events: docs/scale-events.md. scale() is yours to write. Needs: npm
// install @azure/service-bus (7.9.5, Node.js 20).

import { setTimeout as pause } from "node:timers/promises";
import { ServiceBusClient } from "@azure/service-bus";

const bus = new ServiceBusClient(process.env.SERVICEBUS);
const receiver = bus.createReceiver("scale-events");
const stop = new AbortController();
const acted = new Map();             // subject -> the event that was acted on last
let underWay = Promise.resolve();    // settles with the message under way

/** Returns what a scale event says; throws where the body is none. */
function read(body) {
  const { type, subject, data } = body ?? {};
  if (type !== "feedscale.scale.v1") throw new TypeError(`type is ${type}`);
  const { epoch = 0, sequence, desiredReplicas: replicas, target } = data ?? {};
  if (typeof subject !== "string" || subject !== (data?.group ?? data?.processor)) {
    throw new TypeError("subject is neither processor nor group");
  }
  if (![epoch, sequence, replicas].every((n) => Number.isSafeInteger(n) && n >= 0)) {
    throw new TypeError("epoch, sequence or desiredReplicas is no number");
  }
  if (target === null || typeof target !== "object" || Array.isArray(target)) {
    throw new TypeError("target is no object");
  }
  const time = Date.parse(body.time);
  if (Number.isNaN(time)) throw new TypeError("time is none");
  return { subject, epoch, sequence, replicas, target, time };
}

const isNewer = (event, last) =>
  !last || event.epoch > last.epoch || (event.epoch === last.epoch && event.sequence > last.sequence);

async function handle(message) {
  let event;
  try {
    event = read(message.body);      // the SDK has parsed the JSON, where it is any
  } catch (error) {
    return receiver.deadLetterMessage(message, {
      deadLetterReason: "not a scale event", deadLetterErrorDescription: error.message,
    });
  }
  const expired = Date.now() - event.time > (message.timeToLive ?? Infinity);
  if (isNewer(event, acted.get(event.subject))) {
    try {
      if (!expired) await scale(event.subject, event.replicas, event.target, stop.signal);   // yours
    } catch (error) {
      console.error(`${event.subject}: ${error.message}`);
      await pause(30_000, null, { signal: stop.signal }).catch(() => {});
      return receiver.abandonMessage(message);
    }
    acted.set(event.subject, event);
  }
  return receiver.completeMessage(message);
}

const subscription = receiver.subscribe({
  processMessage: (message) => (underWay = handle(message)),
  processError: async ({ error }) => console.error(error.message),
}, { autoCompleteMessages: false, maxConcurrentCalls: 1 });

process.once("SIGTERM", async () => {
  stop.abort();
  await subscription.close();
  await underWay.catch(() => {});
  await bus.close();
});
