# A consumer of scale events: docs/scale-events.md. scale() is yours to write. Needs: pip
# install azure-servicebus (7.15.0, Python 3.11).

import json, logging, os, signal, threading
from datetime import datetime, timedelta, timezone
from azure.servicebus import AutoLockRenewer, ServiceBusClient
from azure.servicebus.exceptions import ServiceBusError

PAUSE = 30   # seconds before a message is given back
stop = threading.Event()
acted = {}   # subject -> (epoch, sequence) of the event that was acted on last


def read(body):
    """Returns what a scale event says; raises where the body is none."""
    event = json.loads(body)
    if event["type"] != "feedscale.scale.v1":
        raise ValueError(f"type is {event['type']!r}")
    subject, data = event["subject"], event["data"]
    if type(subject) is not str or subject != (data.get("group") or data.get("processor")):
        raise ValueError("subject is neither processor nor group")
    numbers = data.get("epoch", 0), data["sequence"], data["desiredReplicas"]
    if any(type(n) is not int or n < 0 for n in numbers):
        raise ValueError("epoch, sequence or desiredReplicas is no number")
    if type(data["target"]) is not dict:
        raise ValueError("target is no object")
    return subject, numbers[:2], numbers[2], data["target"], datetime.fromisoformat(event["time"])


def handle(receiver, message):
    try:
        subject, position, replicas, target, made = read(b"".join(message.body))
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        receiver.dead_letter_message(message, reason="not a scale event", error_description=repr(e))
        return
    expired = datetime.now(timezone.utc) - made > (message.time_to_live or timedelta.max)
    if position > acted.get(subject, (-1, -1)):
        try:
            if not expired:
                scale(subject, replicas, target, stop)   # yours; ends where stop is set
        except Exception:
            logging.exception(subject)
            stop.wait(PAUSE)
            receiver.abandon_message(message)
            return
        acted[subject] = position
    receiver.complete_message(message)


signal.signal(signal.SIGTERM, lambda *_: stop.set())
bus = ServiceBusClient.from_connection_string(os.environ["SERVICEBUS"])
with bus, AutoLockRenewer() as renewer, bus.get_queue_receiver("scale-events") as receiver:
    while not stop.is_set():
        try:
            for message in receiver.receive_messages(max_message_count=1, max_wait_time=5):
                renewer.register(receiver, message, max_lock_renewal_duration=300)
                handle(receiver, message)
        except ServiceBusError:   # the broker is away, or a lock was lost: the message comes again
            logging.exception("receiving scale events")
            stop.wait(5)
