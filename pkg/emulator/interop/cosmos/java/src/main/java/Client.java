import com.azure.cosmos.ChangeFeedProcessor;
import com.azure.cosmos.ChangeFeedProcessorBuilder;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.CosmosException;
import com.azure.cosmos.models.ChangeFeedProcessorOptions;
import com.azure.cosmos.models.ChangeFeedProcessorState;
import com.azure.cosmos.models.CosmosBatch;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.CosmosItemRequestOptions;
import com.azure.cosmos.models.CosmosPatchOperations;
import com.azure.cosmos.models.CosmosQueryRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.cosmos.models.PartitionKey;
import com.azure.cosmos.models.SqlParameter;
import com.azure.cosmos.models.SqlQuerySpec;
import com.azure.cosmos.models.ThroughputProperties;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/** Uses the account at COSMOS_ENDPOINT as any program would, through the official SDK, and fails on the first surprise. */
public final class Client {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final BufferedReader ANSWERS = new BufferedReader(new InputStreamReader(System.in));

    private final CosmosAsyncClient client = new CosmosClientBuilder()
        .endpoint(System.getenv("COSMOS_ENDPOINT"))
        .key(System.getenv("COSMOS_KEY"))
        .gatewayMode()
        .contentResponseOnWriteEnabled(true)
        .buildAsyncClient();
    private CosmosAsyncContainer orders;

    public static void main(String[] args) {
        try {
            new Client().run();
            System.out.println("done");
            System.exit(0);
        } catch (Throwable surprise) {
            surprise.printStackTrace();
            System.exit(1);
        }
    }

    private void run() throws Exception {
        client.createDatabaseIfNotExists("java").block();
        orders = container("orders", "/customer");
        documents();
        queries();
        changeFeed();
        processor("pk", false);
        processor("epk", true);
        versionsProcessor();
        throwingProcessor("pk-throws", false);
        throwingProcessor("epk-throws", true);
        client.getDatabase("java").delete().block();
    }

    private CosmosAsyncContainer container(String id, String key) {
        client.getDatabase("java")
            .createContainerIfNotExists(id, key, ThroughputProperties.createManualThroughput(20000)).block();
        return client.getDatabase("java").getContainer(id);
    }

    private static ObjectNode order(String id, String customer, int total) {
        return JSON.createObjectNode().put("id", id).put("customer", customer).put("total", total);
    }

    private static void same(Object got, Object want) {
        if (!Objects.equals(got, want)) {
            throw new AssertionError("got " + got + ", want " + want);
        }
    }

    private static void fails(int status, Runnable run) {
        try {
            run.run();
        } catch (CosmosException e) {
            same(e.getStatusCode(), status);
            return;
        }
        throw new AssertionError("expected status " + status);
    }

    private static String[] ask(String line) {
        System.out.println(line);
        try {
            return ANSWERS.readLine().split(" ");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void await(String what, BooleanSupplier condition) throws InterruptedException {
        Instant deadline = Instant.now().plusSeconds(300); // only ends what hangs
        while (!condition.getAsBoolean()) {
            if (Instant.now().isAfter(deadline)) {
                throw new AssertionError("waited in vain for: " + what);
            }
            Thread.sleep(50);
        }
    }

    private void documents() {
        for (int i = 0; i < 20; i++) {
            orders.createItem(order("o" + i, "c" + i % 5, i)).block();
        }
        var throughput = orders.readThroughput().block();
        same(throughput.getProperties().getManualThroughput(), 20000);
        same(throughput.getMinThroughput(), 400);
        same(throughput.isReplacePending(), false);
        same(orders.replaceThroughput(ThroughputProperties.createManualThroughput(19000)).block().getProperties().getManualThroughput(), 19000);
        same(orders.replaceThroughput(ThroughputProperties.createManualThroughput(30000)).block().isReplacePending(), true);
        fails(400, () -> orders.replaceThroughput(ThroughputProperties.createManualThroughput(100)).block());
        PartitionKey c1 = new PartitionKey("c1");
        fails(409, () -> orders.createItem(order("o1", "c1", 1)).block());
        var read = orders.readItem("o1", c1, JsonNode.class).block();
        same(read.getItem().get("total").asInt(), 1);
        CosmosItemRequestOptions unchanged = new CosmosItemRequestOptions().setIfMatchETag(read.getETag());
        orders.replaceItem(order("o1", "c1", 100), "o1", c1, unchanged).block();
        fails(412, () -> orders.replaceItem(order("o1", "c1", 0), "o1", c1, unchanged).block());
        var patched = orders.patchItem("o1", c1, CosmosPatchOperations.create().increment("/total", 1).set("/note", "n"), JsonNode.class).block();
        same(patched.getItem().get("total").asInt(), 101);
        orders.upsertItem(order("new", "c9", 1)).block();
        orders.deleteItem("new", new PartitionKey("c9")).block();
        fails(404, () -> orders.readItem("new", new PartitionKey("c9"), JsonNode.class).block());

        CosmosBatch good = CosmosBatch.createCosmosBatch(new PartitionKey("batch"));
        good.createItemOperation(order("b1", "batch", 1));
        good.upsertItemOperation(order("b2", "batch", 2));
        same(orders.executeCosmosBatch(good).block().isSuccessStatusCode(), true);
        CosmosBatch bad = CosmosBatch.createCosmosBatch(new PartitionKey("batch"));
        bad.deleteItemOperation("b1");
        bad.createItemOperation(order("b2", "batch", 2));
        var results = orders.executeCosmosBatch(bad).block();
        same(results.getStatusCode(), 409);
        same(results.getResults().get(0).getStatusCode(), 424);
        orders.readItem("b1", new PartitionKey("batch"), JsonNode.class).block();
    }

    private List<JsonNode> query(String text, SqlParameter... parameters) {
        return orders.queryItems(new SqlQuerySpec(text, parameters), new CosmosQueryRequestOptions(), JsonNode.class)
            .byPage(3).flatMapIterable(p -> p.getResults()).collectList().block();
    }

    private void queries() {
        same(query("SELECT * FROM c").size(), 22);
        same(query("SELECT VALUE c.id FROM c WHERE c.customer = @c", new SqlParameter("@c", "c2")).size(), 4);
        same(query("SELECT VALUE c.total FROM c WHERE c.total BETWEEN 5 AND 8 ORDER BY c.total DESC").toString(), "[8, 7, 6, 5]");
        same(query("SELECT c.id FROM c WHERE c.total > 4 AND c.customer <> 'batch' ORDER BY c.total OFFSET 1 LIMIT 2").toString(),
            "[{\"id\":\"o6\"}, {\"id\":\"o7\"}]");
        same(query("SELECT VALUE COUNT(1) FROM c").toString(), "[22]");
        same(query("SELECT VALUE MAX(c.total) FROM c").toString(), "[101]");
        same(query("SELECT TOP 3 * FROM c").size(), 3);
        fails(400, () -> query("SELECT * FRM c"));
        same(orders.readAllItems(new PartitionKey("c1"), JsonNode.class).collectList().block().size(), 4);
    }

    private void changeFeed() {
        int count = 0;
        for (FeedRange range : orders.getFeedRanges().block()) {
            var pages = orders.queryChangeFeed(CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(range).setMaxItemCount(4), JsonNode.class);
            count += pages.byPage().takeUntil(p -> p.getResults().isEmpty()).flatMapIterable(p -> p.getResults()).count().block();
        }
        same(count, 22);
    }

    /** Two workers share the ranges of a container through their leases, checkpoint, and follow a split. */
    private void processor(String name, boolean latestVersion) throws Exception {
        CosmosAsyncContainer feed = container(name, "/id");
        CosmosAsyncContainer leases = container(name + "-leases", "/id");
        Set<String> seen = new ConcurrentSkipListSet<>();
        Set<String> workers = new ConcurrentSkipListSet<>();
        for (int i = 0; i < 10; i++) {
            feed.createItem(JSON.createObjectNode().put("id", "before" + i)).block();
        }
        ChangeFeedProcessor first = worker("first", feed, leases, latestVersion, seen, workers);
        first.start().block();
        await("the backlog", () -> seen.size() == 10);
        ChangeFeedProcessor second = worker("second", feed, leases, latestVersion, seen, workers);
        second.start().block();
        await("both workers owning a lease", () -> owners(leases).size() == 2);
        for (int i = 0; i < 10; i++) {
            feed.createItem(JSON.createObjectNode().put("id", "shared" + i)).block();
        }
        await("the changes of two workers", () -> seen.size() == 20);

        String[] children = ask("split java " + name + " 0");
        same(children.length, 2);
        for (int i = 0; i < 10; i++) {
            feed.createItem(JSON.createObjectNode().put("id", "split" + i)).block();
        }
        await("the changes after the split", () -> seen.size() == 30);
        await("a lease per range", () -> leases(leases).size() == 3);
        awaitNoLag("no lag", feed, () -> lag(first) == 0);
        stop(first);
        // A worker that is stopped in the middle of taking a lease leaves it owned.
        await("the second worker owning all", () -> leases(leases).stream().allMatch(l -> l.path("Owner").asText().equals("second")));
        stop(second);
        await("all leases released", () -> owners(leases).isEmpty());
        for (int i = 0; i < 5; i++) {
            feed.createItem(JSON.createObjectNode().put("id", "later" + i)).block();
        }
        same(lag(first), 5);
        same(ask("lag java " + name + " " + name + "-leases")[0], "5"); // feedscale says the same
        same(workers, new TreeSet<>(Set.of("first", "second")));
        ChangeFeedProcessor third = worker("third", feed, leases, latestVersion, seen, workers);
        third.start().block();
        await("the rest, from the checkpoints", () -> seen.size() == 35);
        if (latestVersion) { // leases by range id do not survive a merge in this SDK
            ask("merge java " + name + " " + String.join(" ", children));
            feed.createItem(JSON.createObjectNode().put("id", "merged")).block();
            await("the change after the merge", () -> seen.remove("merged"));
        }
        awaitNoLag("no lag as feedscale sees it", feed, () -> ask("lag java " + name + " " + name + "-leases")[0].equals("0"));
        stop(third);
    }

    /**
     * A renewal at the same time as a checkpoint of its lease writes the old position again (updateLease of
     * DocumentServiceLeaseUpdaterImpl). The next change in the range corrects it, so changes are written until there is no lag.
     */
    private static void awaitNoLag(String what, CosmosAsyncContainer feed, BooleanSupplier none) throws InterruptedException {
        int[] looks = {0};
        await(what, () -> {
            if (none.getAsBoolean()) {
                return true;
            }
            if (++looks[0] % 100 == 0) {
                for (int i = 0; i < 10; i++) { // so that each range has some
                    feed.createItem(JSON.createObjectNode().put("id", "nudge" + looks[0] + "-" + i)).block();
                }
            }
            return false;
        });
    }

    /** The processor of all versions and deletes sees what the others do not. */
    private void versionsProcessor() throws Exception {
        CosmosAsyncContainer feed = container("versions", "/id");
        CosmosAsyncContainer leases = container("versions-leases", "/id");
        List<String> seen = new CopyOnWriteArrayList<>();
        ChangeFeedProcessor worker = new ChangeFeedProcessorBuilder()
            .hostName("only").feedContainer(feed).leaseContainer(leases)
            .options(new ChangeFeedProcessorOptions().setFeedPollDelay(Duration.ofMillis(100)).setLeaseAcquireInterval(Duration.ofMillis(500)))
            .handleAllVersionsAndDeletesChanges(changes -> changes.forEach(c ->
                seen.add(c.getChangeFeedMetaData().getOperationType().toString())))
            .buildChangeFeedProcessor();
        worker.start().block();
        await("the leases", () -> leases(leases).size() == 2);
        await("their continuations", () -> leases(leases).stream().allMatch(l -> l.hasNonNull("ContinuationToken")));
        feed.createItem(JSON.createObjectNode().put("id", "d")).block();
        feed.upsertItem(JSON.createObjectNode().put("id", "d").put("n", 2)).block();
        feed.deleteItem("d", new PartitionKey("d")).block();
        await("create, replace and delete", () -> seen.size() == 3);
        same(seen.toString().toLowerCase(), "[create, replace, delete]");
        await("no lag as feedscale sees it", () -> ask("lag java versions versions-leases")[0].equals("0"));
        stop(worker);
        feed.createItem(JSON.createObjectNode().put("id", "e")).block();
        feed.deleteItem("e", new PartitionKey("e")).block();
        same(ask("lag java versions versions-leases")[0], "2"); // the delete counts, too
    }

    /**
     * A handler that throws has its lease given back and taken again, so that an owner is hardly ever seen. Once it does not
     * throw any more, nothing is left of that.
     */
    private void throwingProcessor(String name, boolean latestVersion) throws Exception {
        CosmosAsyncContainer feed = container(name, "/id");
        CosmosAsyncContainer leases = container(name + "-leases", "/id");
        String status = "status java " + name + " " + name + "-leases";
        for (int i = 0; i < 10; i++) {
            feed.createItem(JSON.createObjectNode().put("id", "order" + i)).block();
        }
        AtomicBoolean throwing = new AtomicBoolean(true);
        AtomicInteger calls = new AtomicInteger();
        Set<String> seen = new ConcurrentSkipListSet<>();
        ChangeFeedProcessor worker = worker("only", feed, leases, latestVersion, id -> {
            calls.incrementAndGet();
            if (throwing.get()) {
                throw new IllegalStateException("as it was told to");
            }
            seen.add(id);
        });
        worker.start().block();
        await("a stall of the kind that throws", () -> String.join(" ", ask(status)).equals("stalled flapping"));
        same(calls.get() > 2, true);
        same(seen.size(), 0);
        throwing.set(false);
        await("the backlog", () -> seen.size() == 10);
        await("no more stall", () -> String.join(" ", ask(status)).equals("ok"));
        stop(worker);
    }

    private static void stop(ChangeFeedProcessor worker) throws InterruptedException {
        worker.stop().block();
        await("a worker's end", () -> !worker.isStarted());
    }

    private static ChangeFeedProcessor worker(String host, CosmosAsyncContainer feed, CosmosAsyncContainer leases,
            boolean latestVersion, Set<String> seen, Set<String> workers) {
        return worker(host, feed, leases, latestVersion, id -> {
            workers.add(host);
            if (!id.startsWith("nudge")) {
                seen.add(id);
            }
        });
    }

    private static ChangeFeedProcessor worker(String host, CosmosAsyncContainer feed, CosmosAsyncContainer leases,
            boolean latestVersion, Consumer<String> handler) {
        ChangeFeedProcessorOptions options = new ChangeFeedProcessorOptions()
            .setStartFromBeginning(true)
            .setFeedPollDelay(Duration.ofMillis(100))
            .setLeaseAcquireInterval(Duration.ofMillis(500))
            .setLeaseRenewInterval(Duration.ofSeconds(1))
            .setLeaseExpirationInterval(Duration.ofSeconds(5));
        ChangeFeedProcessorBuilder builder = new ChangeFeedProcessorBuilder()
            .hostName(host).feedContainer(feed).leaseContainer(leases).options(options);
        if (latestVersion) {
            builder.handleLatestVersionChanges(changes -> changes.forEach(c -> handler.accept(c.getCurrent().get("id").asText())));
        } else {
            builder.handleChanges(changes -> changes.forEach(c -> handler.accept(c.get("id").asText())));
        }
        return builder.buildChangeFeedProcessor();
    }

    private static List<JsonNode> leases(CosmosAsyncContainer leases) {
        return leases.queryItems("SELECT * FROM c WHERE IS_DEFINED(c.LeaseToken)", JsonNode.class).collectList().block();
    }

    private static Set<String> owners(CosmosAsyncContainer container) {
        Set<String> owners = new TreeSet<>();
        for (JsonNode lease : leases(container)) {
            if (lease.hasNonNull("Owner")) {
                owners.add(lease.get("Owner").asText());
            }
        }
        return owners;
    }

    private static int lag(ChangeFeedProcessor worker) {
        int lag = 0;
        for (ChangeFeedProcessorState state : worker.getCurrentState().block()) {
            lag += state.getEstimatedLag();
        }
        return lag;
    }
}
