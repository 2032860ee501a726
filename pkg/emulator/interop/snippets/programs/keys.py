# Writes to both stand-ins of `feedscale emulate`, and reads back.
import os

from azure.cosmos import CosmosClient
from azure.servicebus import ServiceBusClient, ServiceBusMessage

shop = CosmosClient.from_connection_string(os.environ["COSMOS"]).get_database_client("shop")
orders = shop.get_container_client("orders")
orders.upsert_item({"id": "1", "customerId": "a"})
for order in orders.query_items_change_feed(start_time="Beginning"):
    print("changed", order["id"])

with ServiceBusClient.from_connection_string(os.environ["SERVICEBUS"]) as bus:
    with bus.get_queue_sender("scale-events") as sender:
        sender.send_messages(ServiceBusMessage("hello"))
    with bus.get_queue_receiver("scale-events", max_wait_time=5) as receiver:
        for message in receiver.receive_messages():
            print("received", message)
            receiver.complete_message(message)
