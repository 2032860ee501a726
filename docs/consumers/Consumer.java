// A consumer of scale events: docs/scale-events.md. scale() is yours to write. Needs:
// com.azure:azure-messaging-servicebus:7.17.20, Java 17.

import com.azure.messaging.servicebus.*;
import com.azure.messaging.servicebus.models.DeadLetterOptions;
import java.time.*;
import java.util.*;
import java.util.concurrent.*;

public class Consumer {
    record Event(String subject, long epoch, long sequence, int replicas,
            Map<String, String> target, Instant time) {
        boolean isOlderThan(Duration life) {   // zero: for ever
            return life != null && !life.isZero() && Duration.between(time, Instant.now()).compareTo(life) > 0;
        }

        boolean isNewerThan(Event last) {
            return last == null || epoch > last.epoch
                || epoch == last.epoch && sequence > last.sequence;
        }
    }

    static final CountDownLatch stop = new CountDownLatch(1);
    static final ExecutorService worker = Executors.newSingleThreadExecutor();
    static final Map<String, Event> acted = new HashMap<>();   // by subject, acted on last

    public static void main(String[] arguments) {
        var main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {   // runs on SIGTERM
            stop.countDown();
            worker.shutdownNow();   // interrupts scale
            try {
                main.join();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }));
        try (var receiver = new ServiceBusClientBuilder().connectionString(System.getenv("SERVICEBUS"))
                .receiver().queueName("scale-events")
                .maxAutoLockRenewDuration(Duration.ofMinutes(5)).buildClient()) {
            while (stop.getCount() > 0) {
                try {
                    receiver.receiveMessages(1, Duration.ofSeconds(5)).forEach(m -> handle(receiver, m));
                } catch (RuntimeException e) {   // no broker, or a lost lock: the message comes again
                    System.err.println(e.getMessage());
                    pause(5);
                }
            }
        }
    }

    static void handle(ServiceBusReceiverClient receiver, ServiceBusReceivedMessage message) {
        Event event;
        try {
            event = read(message.getBody().toObject(Map.class));
        } catch (RuntimeException e) {
            receiver.deadLetter(message, new DeadLetterOptions().setDeadLetterReason("not a scale event")
                .setDeadLetterErrorDescription(e.toString()));
            return;
        }
        if (event.isNewerThan(acted.get(event.subject))) {
            try {
                // Yours. It is interrupted where the process ends.
                if (!event.isOlderThan(message.getTimeToLive())) worker.submit(() -> {
                    scale(event.subject, event.replicas, event.target);
                    return null;
                }).get();
            } catch (ExecutionException | RejectedExecutionException | InterruptedException e) {
                System.err.println(event.subject + ": " + e.getMessage());
                pause(30);
                receiver.abandon(message);
                return;
            }
            acted.put(event.subject, event);
        }
        receiver.complete(message);
    }

    /** Returns what a scale event says; throws where the body is none. */
    static Event read(Map<?, ?> event) {
        if (!"feedscale.scale.v1".equals(event.get("type"))) {
            throw new IllegalArgumentException("another type");
        }
        var data = (Map<?, ?>) event.get("data");
        var subject = (String) event.get("subject");
        var name = data.get("group") != null ? data.get("group") : data.get("processor");
        if (subject == null || !subject.equals(name)) {
            throw new IllegalArgumentException("subject is neither processor nor group");
        }
        var target = new HashMap<String, String>();
        ((Map<?, ?>) data.get("target")).forEach((k, v) -> target.put((String) k, (String) v));
        var epoch = data.containsKey("epoch") ? whole(data.get("epoch")) : 0;
        return new Event(subject, epoch, whole(data.get("sequence")),
            Math.toIntExact(whole(data.get("desiredReplicas"))), target, Instant.parse((String) event.get("time")));
    }

    static long whole(Object number) {
        if (number instanceof Integer n && n >= 0) return n;
        if (number instanceof Long n && n >= 0) return n;
        throw new IllegalArgumentException("no number: " + number);
    }

    static void pause(int seconds) {
        try {
            stop.await(seconds, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
