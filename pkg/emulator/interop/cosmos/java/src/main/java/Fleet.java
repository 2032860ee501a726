import com.azure.cosmos.ChangeFeedProcessor;
import com.azure.cosmos.ChangeFeedProcessorBuilder;
import com.azure.cosmos.CosmosAsyncClient;
import com.azure.cosmos.CosmosAsyncContainer;
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.models.ChangeFeedProcessorOptions;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;

/**
 * Hosts of the Java SDK's change feed processor, in a fleet with hosts of other SDKs: Fleet (pk|epk). Each line of the input
 * starts or stops one: "start NAME", "stop NAME". Each change that one handles is a line of the output: the microsecond, its
 * customer and its number.
 */
public final class Fleet {
    private static final Map<String, ChangeFeedProcessor> HOSTS = new HashMap<>();

    public static void main(String[] args) throws Exception {
        CosmosAsyncClient client = new CosmosClientBuilder()
            .endpoint(System.getenv("COSMOS_ENDPOINT")).key(System.getenv("COSMOS_KEY"))
            .gatewayMode().contentResponseOnWriteEnabled(true).buildAsyncClient();
        CosmosAsyncContainer orders = client.getDatabase("shop").getContainer("orders");
        CosmosAsyncContainer leases = client.getDatabase("shop").getContainer("leases");
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("start")) {
                ChangeFeedProcessor host = host(words[1], orders, leases, args[0].equals("epk"));
                HOSTS.put(words[1], host);
                host.start().subscribe(nothing -> { }, failed -> System.err.println(words[1] + ": " + failed.getClass().getSimpleName()));
            } else {
                HOSTS.remove(words[1]).stop().subscribe(nothing -> { }, failed -> System.err.println(words[1] + ": " + failed.getClass().getSimpleName()));
            }
        }
        System.exit(0);
    }

    private static ChangeFeedProcessor host(String name, CosmosAsyncContainer orders, CosmosAsyncContainer leases, boolean epk) {
        ChangeFeedProcessorBuilder builder = new ChangeFeedProcessorBuilder()
            .hostName(name).feedContainer(orders).leaseContainer(leases)
            .options(new ChangeFeedProcessorOptions()
                .setLeasePrefix("fleet").setStartFromBeginning(true).setMaxItemCount(7)
                .setFeedPollDelay(Duration.ofMillis(100)).setLeaseAcquireInterval(Duration.ofMillis(1300))
                .setLeaseRenewInterval(Duration.ofMillis(1700)).setLeaseExpirationInterval(Duration.ofSeconds(6)));
        if (epk) {
            builder.handleLatestVersionChanges(changes -> changes.forEach(c -> handled(c.getCurrent())));
        } else {
            builder.handleChanges(changes -> changes.forEach(Fleet::handled));
        }
        return builder.buildChangeFeedProcessor();
    }

    private static synchronized void handled(JsonNode order) {
        Instant now = Instant.now();
        System.out.println("handled " + (now.getEpochSecond() * 1_000_000 + now.getNano() / 1000) + " "
            + order.get("customer").asText() + " " + order.get("number").asInt());
        System.out.flush();
    }
}
