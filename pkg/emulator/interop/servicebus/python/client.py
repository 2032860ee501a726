"""Runs the official Python client through what queues and topics can do.

Usage: client.py CONNECTION_STRING [HOST:PORT CA_FILE]
Queues: orders (plain), sessions (requires sessions). Topic: events, with the subscriptions all (plain) and ordered (requires
sessions). With HOST:PORT the client speaks TLS to that address, whatever host the connection string names. Prints one line per
check; ends with an exception at the first that fails.
"""

import sys
from datetime import datetime, timedelta, timezone

from azure.servicebus import (
    NEXT_AVAILABLE_SESSION,
    ServiceBusClient,
    ServiceBusMessage,
    ServiceBusReceiveMode,
    ServiceBusSubQueue,
    TransportType,
)
from azure.servicebus.exceptions import (
    MessageLockLostError,
    MessagingEntityNotFoundError,
    ServiceBusAuthenticationError,
    ServiceBusConnectionError,
    ServiceBusError,
    SessionCannotBeLockedError,
)

CHECKS = []


def check(run):
    CHECKS.append(run)
    return run


def text(message):
    return b"".join(message.body).decode()


def receive(receiver, count):
    messages = []
    while len(messages) < count:
        messages += receiver.receive_messages(max_message_count=count - len(messages), max_wait_time=10)
    return messages


def refused(error, run):
    try:
        run()
    except error:
        return
    raise AssertionError(f"{error.__name__} was expected")


def send(client, *messages, queue="orders"):
    with client.get_queue_sender(queue) as sender:
        sender.send_messages(list(messages))


@check
def send_receive_complete(client):
    sent = ServiceBusMessage(
        "hello", message_id="m1", correlation_id="c1", subject="s1", content_type="text/plain",
        application_properties={"text": "x", "number": 7, "yes": True}, time_to_live=timedelta(hours=1),
    )
    with client.get_queue_sender("orders") as sender:
        sender.send_messages(sent)
    with client.get_queue_receiver("orders") as receiver:
        got = receive(receiver, 1)[0]
        assert text(got) == "hello"
        assert (got.message_id, got.correlation_id, got.subject, got.content_type) == ("m1", "c1", "s1", "text/plain")
        assert got.application_properties == {b"text": b"x", b"number": 7, b"yes": True}, got.application_properties
        assert got.time_to_live == timedelta(hours=1)
        assert got.delivery_count == 0
        assert got.sequence_number > 0
        assert got.locked_until_utc > datetime.now(timezone.utc)
        receiver.complete_message(got)


@check
def batch(client):
    with client.get_queue_sender("orders") as sender:
        messages = sender.create_message_batch()
        for body in "abc":
            messages.add_message(ServiceBusMessage(body))
        sender.send_messages(messages)
    with client.get_queue_receiver("orders", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as receiver:
        assert [text(m) for m in receive(receiver, 3)] == ["a", "b", "c"]


@check
def message_of_many_frames(client):
    body = "0123456789" * 20_000
    send(client, ServiceBusMessage(body))
    with client.get_queue_receiver("orders", receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE) as receiver:
        assert text(receive(receiver, 1)[0]) == body


@check
def abandon_renew_defer(client):
    send(client, ServiceBusMessage("a"))
    with client.get_queue_receiver("orders") as receiver:
        receiver.abandon_message(receive(receiver, 1)[0])
        again = receive(receiver, 1)[0]
        assert again.delivery_count == 1
        assert receiver.renew_message_lock(again) > again.enqueued_time_utc
        receiver.defer_message(again)
        deferred = receiver.receive_deferred_messages([again.sequence_number])
        assert [text(m) for m in deferred] == ["a"]
        receiver.complete_message(deferred[0])
        refused(ServiceBusError, lambda: receiver.receive_deferred_messages([again.sequence_number]))


@check
def dead_letter(client):
    send(client, ServiceBusMessage("a"))
    with client.get_queue_receiver("orders") as receiver:
        receiver.dead_letter_message(receive(receiver, 1)[0], reason="bad", error_description="very bad")
    with client.get_queue_receiver("orders", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as receiver:
        got = receive(receiver, 1)[0]
        assert (got.dead_letter_reason, got.dead_letter_error_description) == ("bad", "very bad")
        receiver.complete_message(got)


@check
def schedule_peek_cancel(client):
    with client.get_queue_sender("orders") as sender, client.get_queue_receiver("orders") as receiver:
        later = datetime.now(timezone.utc) + timedelta(hours=1)
        numbers = sender.schedule_messages([ServiceBusMessage("a"), ServiceBusMessage("b")], later)
        assert [text(m) for m in receiver.peek_messages(10)] == ["a", "b"]
        sender.cancel_scheduled_messages(numbers)
        assert receiver.peek_messages(10, sequence_number=numbers[0]) == []


@check
def nothing_to_receive(client):
    with client.get_queue_receiver("orders") as receiver:
        assert receiver.receive_messages(max_message_count=5, max_wait_time=0.2) == []


@check
def sessions(client):
    send(client, *(ServiceBusMessage(body, session_id=body[0]) for body in ("x1", "y1", "x2")), queue="sessions")
    with client.get_queue_receiver("sessions", session_id="x") as x:
        got = receive(x, 2)
        assert [text(m) for m in got] == ["x1", "x2"]
        x.session.set_state(b"half done")
        assert x.session.get_state() == b"half done"
        assert x.session.renew_lock() > datetime.now(timezone.utc)
        refused(SessionCannotBeLockedError, client.get_queue_receiver("sessions", session_id="x").__enter__)
        with client.get_queue_receiver("sessions", session_id=NEXT_AVAILABLE_SESSION) as following:
            assert following.session.session_id == "y"
        for message in got:
            x.complete_message(message)


@check
def a_topic_and_its_subscriptions(client):
    with client.get_topic_sender("events") as sender:
        sender.send_messages([ServiceBusMessage("a", session_id="x"), ServiceBusMessage("b")])
        later = datetime.now(timezone.utc) + timedelta(hours=1)
        sender.cancel_scheduled_messages(sender.schedule_messages(ServiceBusMessage("c"), later))
    with client.get_subscription_receiver("events", "all") as receiver:
        got = receive(receiver, 2)
        assert [text(m) for m in got] == ["a", "b"]
        assert got[1].enqueued_sequence_number == 2
        for message in got:
            receiver.complete_message(message)
    with client.get_subscription_receiver("events", "ordered", session_id=NEXT_AVAILABLE_SESSION) as x:
        assert x.session.session_id == "x"
        x.complete_message(receive(x, 1)[0])
    with client.get_subscription_receiver("events", "ordered", sub_queue=ServiceBusSubQueue.DEAD_LETTER) as dead:
        got = receive(dead, 1)[0]
        assert (text(got), got.dead_letter_reason) == ("b", "Session ID is null")
        dead.complete_message(got)


@check
def what_is_not_for_that(client):
    refused(ServiceBusError, client.get_queue_receiver("events").__enter__)
    refused(ServiceBusError, lambda: send(client, ServiceBusMessage("a"), queue="events/Subscriptions/all"))


@check
def what_does_not_exist(client):
    refused(MessagingEntityNotFoundError, lambda: send(client, ServiceBusMessage("a"), queue="nowhere"))
    refused(MessagingEntityNotFoundError, client.get_subscription_receiver("events", "nowhere").__enter__)


def connect(connection_string, endpoint=None, ca_file=None):
    options = {"retry_total": 1, "retry_backoff_factor": 0.01}
    if endpoint:
        # Without the transport said, an address of one's own would mean web sockets.
        options |= {
            "custom_endpoint_address": f"sb://{endpoint}", "connection_verify": ca_file, "transport_type": TransportType.Amqp,
        }
    return ServiceBusClient.from_connection_string(connection_string, **options)


def main(arguments):
    with connect(*arguments) as client:
        for run in CHECKS:
            run(client)
            print(f"ok {run.__name__}", flush=True)
    key = arguments[0].split("SharedAccessKey=")[1].split(";")[0]
    with connect(arguments[0].replace(key, "d3Jvbmc="), *arguments[1:]) as client:
        # With an address of one's own the client takes every failure to open for a wrong address.
        refused(ServiceBusConnectionError if len(arguments) > 1 else ServiceBusAuthenticationError, lambda: send(client, ServiceBusMessage("a")))
        print("ok wrong_key")


if __name__ == "__main__":
    main(sys.argv[1:])
