// Writes to both stand-ins of `feedscale emulate`, and reads back.
import com.azure.cosmos.CosmosClientBuilder;
import com.azure.cosmos.models.CosmosChangeFeedRequestOptions;
import com.azure.cosmos.models.FeedRange;
import com.azure.messaging.servicebus.ServiceBusClientBuilder;
import com.azure.messaging.servicebus.ServiceBusMessage;
import java.util.Map;

class Keys {
    public static void main(String[] args) {
        String[] account = System.getenv("COSMOS").split(";", 3);
        var cosmos = new CosmosClientBuilder().gatewayMode()
            .endpoint(account[0].substring("AccountEndpoint=".length()))
            .key(account[1].substring("AccountKey=".length())).buildClient();
        var orders = cosmos.getDatabase("shop").getContainer("orders");
        orders.upsertItem(Map.of("id", "1", "customerId", "a"));
        var all = CosmosChangeFeedRequestOptions.createForProcessingFromBeginning(FeedRange.forFullRange());
        for (var order : orders.queryChangeFeed(all, Map.class)) System.out.println("changed " + order.get("id"));
        cosmos.close();

        var bus = new ServiceBusClientBuilder().connectionString(System.getenv("SERVICEBUS"));
        try (var sender = bus.sender().queueName("scale-events").buildClient();
             var receiver = bus.receiver().queueName("scale-events").buildClient()) {
            sender.sendMessage(new ServiceBusMessage("hello"));
            for (var message : receiver.receiveMessages(1)) {
                System.out.println("received " + message.getBody());
                receiver.complete(message);
            }
        }
    }
}
