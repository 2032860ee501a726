import com.azure.core.amqp.AmqpRetryOptions;
import com.azure.core.util.IterableStream;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusException;
import com.azure.messaging.servicebus.ServiceBusFailureReason;
import com.azure.messaging.servicebus.ServiceBusMessage;
import com.azure.messaging.servicebus.ServiceBusMessageBatch;
import com.azure.messaging.servicebus.ServiceBusReceivedMessage;
import com.azure.messaging.servicebus.ServiceBusReceiverClient;
import com.azure.messaging.servicebus.ServiceBusRuleManagerClient;
import com.azure.messaging.servicebus.ServiceBusSenderClient;
import com.azure.messaging.servicebus.ServiceBusSessionReceiverClient;
import com.azure.messaging.servicebus.ServiceBusTransactionContext;
import com.azure.messaging.servicebus.administration.models.CorrelationRuleFilter;
import com.azure.messaging.servicebus.administration.models.CreateRuleOptions;
import com.azure.messaging.servicebus.administration.models.FalseRuleFilter;
import com.azure.messaging.servicebus.models.CompleteOptions;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import com.azure.messaging.servicebus.models.ServiceBusReceiveMode;
import com.azure.messaging.servicebus.models.SubQueue;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;

/**
 * Runs the official Java client through what queues and topics can do.
 *
 * <p>Usage: Client CONNECTION_STRING [HOST:PORT]. With HOST:PORT the client dials that address, whatever host the connection string
 * names. Queues: orders (plain), sessions (requires sessions). Topic: events, with the subscriptions all and ruled (plain) and ordered
 * (requires sessions). Prints one line per check; ends with an exception at the first that fails.
 */
public final class Client {
    private static final Duration PATIENCE = Duration.ofSeconds(10);

    private final ServiceBusClientBuilder builder;

    private Client(String[] arguments) {
        builder = new ServiceBusClientBuilder()
            .connectionString(arguments[0])
            .retryOptions(new AmqpRetryOptions().setMaxRetries(1).setDelay(Duration.ofMillis(10)).setTryTimeout(PATIENCE));
        if (arguments.length > 1) {
            builder.customEndpointAddress("https://" + arguments[1]);
        }
    }

    public static void main(String[] arguments) {
        Client client = new Client(arguments);
        check("send, receive, complete", client::sendReceiveComplete);
        check("a batch", client::batch);
        check("a message of many frames", client::messageOfManyFrames);
        check("abandon, renew, defer", client::abandonRenewDefer);
        check("dead-letter", client::deadLetter);
        check("schedule, peek, cancel", client::schedulePeekCancel);
        check("sessions", client::sessions);
        check("transactions", client::transactions);
        check("a topic and its subscriptions", client::topic);
        check("the rules of a subscription", client::rules);
        check("what is not for that", client::whatIsNotForThat);
        check("what does not exist", client::whatDoesNotExist);
        System.exit(0);
    }

    private static void check(String name, Runnable run) {
        run.run();
        System.out.println("ok " + name);
    }

    private static void expect(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError(what);
        }
    }

    private static void equal(Object got, Object want) {
        expect(want.equals(got), "got " + got + ", want " + want);
    }

    private ServiceBusSenderClient sender(String queue) {
        return builder.sender().queueName(queue).buildClient();
    }

    private ServiceBusClientBuilder.ServiceBusReceiverClientBuilder orders() {
        return builder.receiver().queueName("orders").maxAutoLockRenewDuration(Duration.ZERO);
    }

    private void send(String... bodies) {
        try (ServiceBusSenderClient sender = sender("orders")) {
            for (String body : bodies) {
                sender.sendMessage(new ServiceBusMessage(body));
            }
        }
    }

    private static List<ServiceBusReceivedMessage> receive(ServiceBusReceiverClient receiver, int count) {
        List<ServiceBusReceivedMessage> messages = new ArrayList<>();
        while (messages.size() < count) {
            IterableStream<ServiceBusReceivedMessage> some = receiver.receiveMessages(count - messages.size(), PATIENCE);
            some.forEach(messages::add);
        }
        return messages;
    }

    private static List<String> bodies(Iterable<ServiceBusReceivedMessage> messages) {
        List<String> bodies = new ArrayList<>();
        messages.forEach(message -> bodies.add(message.getBody().toString()));
        return bodies;
    }

    private void sendReceiveComplete() {
        ServiceBusMessage sent = new ServiceBusMessage("hello").setMessageId("m1").setCorrelationId("c1").setSubject("s1")
            .setContentType("text/plain").setTimeToLive(Duration.ofHours(1));
        sent.getApplicationProperties().put("text", "x");
        sent.getApplicationProperties().put("number", 7);
        try (ServiceBusSenderClient sender = sender("orders"); ServiceBusReceiverClient receiver = orders().buildClient()) {
            sender.sendMessage(sent);
            ServiceBusReceivedMessage got = receive(receiver, 1).get(0);
            equal(got.getBody().toString(), "hello");
            equal(got.getMessageId(), "m1");
            equal(got.getCorrelationId(), "c1");
            equal(got.getSubject(), "s1");
            equal(got.getContentType(), "text/plain");
            equal(got.getTimeToLive(), Duration.ofHours(1));
            equal(got.getApplicationProperties().get("text"), "x");
            equal(got.getApplicationProperties().get("number"), 7);
            equal(got.getDeliveryCount(), 0L);
            expect(got.getLockedUntil().isAfter(OffsetDateTime.now()), "locked until " + got.getLockedUntil());
            receiver.complete(got);
        }
    }

    private void batch() {
        try (ServiceBusSenderClient sender = sender("orders");
             ServiceBusReceiverClient receiver = orders().receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE).buildClient()) {
            ServiceBusMessageBatch batch = sender.createMessageBatch();
            for (String body : List.of("a", "b", "c")) {
                expect(batch.tryAddMessage(new ServiceBusMessage(body)), "no room for " + body);
            }
            sender.sendMessages(batch);
            equal(bodies(receive(receiver, 3)), List.of("a", "b", "c"));
        }
    }

    private void messageOfManyFrames() {
        String body = "0123456789".repeat(20_000);
        send(body);
        try (ServiceBusReceiverClient receiver = orders().receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE).buildClient()) {
            equal(bodies(receive(receiver, 1)), List.of(body));
        }
    }

    private void abandonRenewDefer() {
        send("a");
        try (ServiceBusReceiverClient receiver = orders().buildClient()) {
            receiver.abandon(receive(receiver, 1).get(0));
            ServiceBusReceivedMessage again = receive(receiver, 1).get(0);
            equal(again.getDeliveryCount(), 1L);
            expect(receiver.renewMessageLock(again).isAfter(again.getEnqueuedTime()), "the lock was not renewed");
            receiver.defer(again);
            ServiceBusReceivedMessage deferred = receiver.receiveDeferredMessage(again.getSequenceNumber());
            equal(deferred.getBody().toString(), "a");
            receiver.complete(deferred);
        }
    }

    private void deadLetter() {
        send("a");
        try (ServiceBusReceiverClient receiver = orders().buildClient();
             ServiceBusReceiverClient dead = orders().subQueue(SubQueue.DEAD_LETTER_QUEUE).buildClient()) {
            receiver.deadLetter(receive(receiver, 1).get(0),
                new DeadLetterOptions().setDeadLetterReason("bad").setDeadLetterErrorDescription("very bad"));
            ServiceBusReceivedMessage got = receive(dead, 1).get(0);
            equal(got.getDeadLetterReason(), "bad");
            equal(got.getDeadLetterErrorDescription(), "very bad");
            dead.complete(got);
        }
    }

    private void schedulePeekCancel() {
        try (ServiceBusSenderClient sender = sender("orders"); ServiceBusReceiverClient receiver = orders().buildClient()) {
            long number = sender.scheduleMessage(new ServiceBusMessage("a"), OffsetDateTime.now().plusHours(1));
            equal(bodies(receiver.peekMessages(10)), List.of("a"));
            sender.cancelScheduledMessage(number);
            equal(bodies(receiver.peekMessages(10, number)), List.of());
        }
    }

    private void sessions() {
        try (ServiceBusSenderClient sender = sender("sessions");
             ServiceBusSessionReceiverClient accepting = builder.sessionReceiver().queueName("sessions")
                 .maxAutoLockRenewDuration(Duration.ZERO).buildClient()) {
            for (String body : List.of("x1", "y1", "x2")) {
                sender.sendMessage(new ServiceBusMessage(body).setSessionId(body.substring(0, 1)));
            }
            try (ServiceBusReceiverClient x = accepting.acceptSession("x")) {
                List<ServiceBusReceivedMessage> got = receive(x, 2);
                equal(bodies(got), List.of("x1", "x2"));
                x.setSessionState("half done".getBytes());
                equal(new String(x.getSessionState()), "half done");
                expect(x.renewSessionLock().isAfter(OffsetDateTime.now()), "the session lock was not renewed");
                try (ServiceBusReceiverClient next = accepting.acceptNextSession()) {
                    equal(next.getSessionId(), "y");
                }
                got.forEach(x::complete);
            }
        }
    }

    private void transactions() {
        send("kept", "completed");
        try (ServiceBusSenderClient sender = sender("orders"); ServiceBusReceiverClient receiver = orders().buildClient()) {
            List<ServiceBusReceivedMessage> got = receive(receiver, 2);
            ServiceBusTransactionContext undone = receiver.createTransaction();
            receiver.complete(got.get(0), new CompleteOptions().setTransactionContext(undone));
            receiver.rollbackTransaction(undone);
            ServiceBusTransactionContext done = receiver.createTransaction();
            receiver.complete(got.get(1), new CompleteOptions().setTransactionContext(done));
            equal(bodies(receiver.peekMessages(10, got.get(0).getSequenceNumber())), List.of("kept", "completed"));
            receiver.commitTransaction(done);
            equal(bodies(receiver.peekMessages(10, got.get(0).getSequenceNumber())), List.of("kept"));

            ServiceBusTransactionContext unsent = sender.createTransaction();
            sender.sendMessage(new ServiceBusMessage("unsent"), unsent);
            sender.rollbackTransaction(unsent);
            ServiceBusTransactionContext sent = sender.createTransaction();
            sender.sendMessage(new ServiceBusMessage("sent"), sent);
            equal(bodies(receiver.peekMessages(10, got.get(0).getSequenceNumber())), List.of("kept"));
            sender.commitTransaction(sent);
            equal(bodies(receive(receiver, 1)), List.of("sent"));
        }
    }

    private ServiceBusReceiverClient subscriber(String subscription, SubQueue subQueue) {
        return builder.receiver().topicName("events").subscriptionName(subscription).subQueue(subQueue)
            .receiveMode(ServiceBusReceiveMode.RECEIVE_AND_DELETE).maxAutoLockRenewDuration(Duration.ZERO).buildClient();
    }

    private void topic() {
        try (ServiceBusSenderClient sender = builder.sender().topicName("events").buildClient();
             ServiceBusReceiverClient all = subscriber("all", SubQueue.NONE);
             ServiceBusReceiverClient dead = subscriber("ordered", SubQueue.DEAD_LETTER_QUEUE);
             ServiceBusSessionReceiverClient ordered = builder.sessionReceiver().topicName("events").subscriptionName("ordered")
                 .maxAutoLockRenewDuration(Duration.ZERO).buildClient()) {
            sender.sendMessage(new ServiceBusMessage("a").setSessionId("x"));
            sender.sendMessage(new ServiceBusMessage("b"));
            sender.cancelScheduledMessage(sender.scheduleMessage(new ServiceBusMessage("c"), OffsetDateTime.now().plusHours(1)));
            List<ServiceBusReceivedMessage> got = receive(all, 2);
            equal(bodies(got), List.of("a", "b"));
            equal(got.get(1).getEnqueuedSequenceNumber(), 2L);
            try (ServiceBusReceiverClient x = ordered.acceptNextSession()) {
                equal(x.getSessionId(), "x");
                x.complete(receive(x, 1).get(0));
            }
            ServiceBusReceivedMessage sessionless = receive(dead, 1).get(0);
            equal(sessionless.getBody().toString(), "b");
            equal(sessionless.getDeadLetterReason(), "Session ID is null");
        }
    }

    private void rules() {
        try (ServiceBusRuleManagerClient rules = builder.ruleManager().topicName("events").subscriptionName("ruled").buildClient();
             ServiceBusSenderClient sender = builder.sender().topicName("events").buildClient();
             ServiceBusReceiverClient ruled = subscriber("ruled", SubQueue.NONE)) {
            receive(ruled, 2); // those sent so far
            rules.deleteRule("$Default");
            rules.createRule("out", new CreateRuleOptions(new CorrelationRuleFilter().setLabel("out")));
            rules.createRule("none", new CreateRuleOptions(new FalseRuleFilter()));
            List<String> names = new ArrayList<>();
            rules.listRules().forEach(rule -> names.add(rule.getName() + " " + rule.getFilter().getClass().getSimpleName()));
            equal(names, List.of("out CorrelationRuleFilter", "none FalseRuleFilter"));
            sender.sendMessage(new ServiceBusMessage("in"));
            sender.sendMessage(new ServiceBusMessage("out").setSubject("out"));
            equal(bodies(receive(ruled, 1)), List.of("out"));
        }
    }

    private void whatIsNotForThat() {
        refused("events/Subscriptions/all", ServiceBusFailureReason.GENERAL_ERROR);
    }

    private void refused(String queue, ServiceBusFailureReason reason) {
        try (ServiceBusSenderClient sender = sender(queue)) {
            sender.sendMessage(new ServiceBusMessage("a"));
        } catch (ServiceBusException refused) {
            equal(refused.getReason(), reason);
            return;
        }
        throw new AssertionError("a message to " + queue + " was taken");
    }

    private void whatDoesNotExist() {
        refused("nowhere", ServiceBusFailureReason.MESSAGING_ENTITY_NOT_FOUND);
    }
}
