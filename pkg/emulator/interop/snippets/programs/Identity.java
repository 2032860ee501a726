// Signs in to `feedscale emulate --any-token` without a key, and writes to both services.
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.identity.DefaultAzureCredentialBuilder;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import java.util.Map;

class Identity {
    public static void main(String[] args) {
        var me = new DefaultAzureCredentialBuilder().build();
        try (var cosmos = new CosmosClientBuilder().gatewayMode().credential(me)
                .endpoint(System.getenv("COSMOS__accountEndpoint")).buildClient()) {
            cosmos.getDatabase("shop").getContainer("orders").upsertItem(Map.of("id", "1", "customerId", "a"));
        }
        try (var sender = new ServiceBusClientBuilder()
                .credential(System.getenv("SERVICEBUS__fullyQualifiedNamespace"), me)
                .sender().queueName("scale-events").buildClient()) {
            sender.sendMessage(new ServiceBusMessage("hello"));
        }
        System.out.println("signed in");
    }
}
