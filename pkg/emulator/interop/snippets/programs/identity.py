# Signs in to `feedscale emulate --any-token` without a key, and writes to both services.
import os

from azure.cosmos import CosmosClient
from azure.identity import DefaultAzureCredential
from azure.servicebus import ServiceBusClient, ServiceBusMessage

me, trusted = DefaultAzureCredential(), os.environ["SSL_CERT_FILE"]
with CosmosClient(os.environ["COSMOS__accountEndpoint"], me, connection_verify=trusted) as cosmos:
    cosmos.get_database_client("shop").get_container_client("orders").upsert_item({"id": "1", "customerId": "a"})
namespace = os.environ["SERVICEBUS__fullyQualifiedNamespace"]
with ServiceBusClient(namespace, me, connection_verify=trusted) as bus, bus.get_queue_sender("scale-events") as sender:
    sender.send_messages(ServiceBusMessage("hello"))
print("signed in")
