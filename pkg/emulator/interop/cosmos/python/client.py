"""Uses the account at COSMOS_ENDPOINT as any program would, through the official SDK, and fails on the first surprise."""

import os
from datetime import datetime, timedelta, timezone

from azure.cosmos import CosmosClient, PartitionKey, exceptions

client = CosmosClient(
    os.environ["COSMOS_ENDPOINT"],
    os.environ["COSMOS_KEY"],
    connection_verify=os.environ.get("COSMOS_CA", True),
)


def ask(line):
    print(line, flush=True)
    return input().split()


def fails(status, run):
    try:
        run()
    except exceptions.CosmosHttpResponseError as error:
        assert error.status_code == status, error
        return
    raise AssertionError(f"expected status {status}")


def same(got, want):
    assert got == want, f"got {got}, want {want}"


def databases_and_containers():
    database = client.create_database_if_not_exists("py")
    client.create_database_if_not_exists("py")
    same([d["id"] for d in client.list_databases()], ["py"])
    container = database.create_container_if_not_exists("orders", PartitionKey("/customer"), offer_throughput=20000)
    same(container.get_throughput().offer_throughput, 20000)
    container.replace_throughput(30000)
    same(container.get_throughput().offer_throughput, 30000)
    fails(400, lambda: container.replace_throughput(100))
    fails(400, lambda: container.replace_throughput(30050))
    same([c["id"] for c in database.query_containers("SELECT * FROM c WHERE c.id = 'orders'")], ["orders"])
    fails(404, lambda: database.get_container_client("nothing").read())
    same(len(list(container.read_feed_ranges())), 2)
    return database, container


def documents(container):
    for i in range(20):
        container.create_item({"id": f"o{i}", "customer": f"c{i % 5}", "total": i, "name": "Grüße"})
    fails(409, lambda: container.create_item({"id": "o1", "customer": "c1"}))
    item = container.read_item("o1", "c1")
    same(item["name"], "Grüße")
    item["total"] = 100
    from azure.core import MatchConditions

    changed = container.replace_item("o1", item, etag=item["_etag"], match_condition=MatchConditions.IfNotModified)
    fails(412, lambda: container.replace_item("o1", item, etag=item["_etag"], match_condition=MatchConditions.IfNotModified))
    same(changed["total"], 100)
    patched = container.patch_item(
        "o1", "c1", [{"op": "incr", "path": "/total", "value": 1}], filter_predicate="from c where c.total = 100"
    )
    same(patched["total"], 101)
    fails(412, lambda: container.patch_item("o1", "c1", [{"op": "remove", "path": "/total"}], filter_predicate="from c where c.total = 5"))
    container.upsert_item({"id": "new", "customer": "c9"})
    container.delete_item("new", "c9")
    fails(404, lambda: container.read_item("new", "c9"))
    fails(404, lambda: container.delete_item("new", "c9"))
    same(len(list(container.read_all_items(max_item_count=3))), 20)
    same(len(container.read_items([("o1", "c1"), ("o2", "c2"), ("nothing", "c3")])), 2)


def batches(container):
    results = container.execute_item_batch(
        [("create", ({"id": "b1", "customer": "batch"},)), ("upsert", ({"id": "b2", "customer": "batch"},)), ("read", ("b1",))], "batch"
    )
    same([r["statusCode"] for r in results], [201, 201, 200])
    try:
        container.execute_item_batch([("delete", ("b1",)), ("create", ({"id": "b2", "customer": "batch"},))], "batch")
        raise AssertionError("the batch succeeded")
    except exceptions.CosmosBatchOperationError as error:
        same([r["statusCode"] for r in error.operation_responses], [424, 409])
    container.read_item("b1", "batch")


def queries(container):
    def every(query, parameters=None, **options):
        return list(container.query_items(query, parameters=parameters, enable_cross_partition_query=True, **options))

    same(len(every("SELECT * FROM c", max_item_count=4)), 22)
    same(sorted(every("SELECT VALUE c.id FROM c WHERE c.customer = @c", [{"name": "@c", "value": "c2"}])), ["o12", "o17", "o2", "o7"])
    same(every("SELECT VALUE c.total FROM c WHERE c.total BETWEEN 5 AND 8 ORDER BY c.total DESC", max_item_count=2), [8, 7, 6, 5])
    same(every("SELECT c.id, c.total AS t FROM c WHERE c.total > 3 ORDER BY c.total OFFSET 1 LIMIT 2"), [{"id": "o5", "t": 5}, {"id": "o6", "t": 6}])
    same(every("SELECT VALUE COUNT(1) FROM c"), [22])
    same(every("SELECT VALUE SUM(c.total) FROM c WHERE c.total < 5"), [9])
    same(every("SELECT VALUE MIN(c.total) FROM c"), [0])
    same(every("SELECT VALUE AVG(c.total) FROM c WHERE c.total < 5"), [2.25])
    same(len(every("SELECT TOP 3 * FROM c")), 3)
    same(len(list(container.query_items("SELECT * FROM c", partition_key="c1"))), 4)
    fails(400, lambda: every("SELECT * FRM c"))


def change_feed(container):
    def drain(**options):
        pages = container.query_items_change_feed(max_item_count=4, **options)
        documents = [d for page in pages.by_page() for d in page]
        return documents, container.client_connection.last_response_headers["etag"]

    documents, continuation = drain(start_time="Beginning")
    same(len(documents), 22)
    children = ask("split py orders 0")
    same(len(children), 2)
    for i in range(20, 40):
        container.upsert_item({"id": f"o{i}", "customer": f"s{i}", "total": i})
    documents, continuation = drain(continuation=continuation)
    same(sorted(d["total"] for d in documents), list(range(20, 40)))
    # Before the merge: this client does not say that it understands a start time after one, and is refused then.
    same(drain(start_time=datetime.now(timezone.utc) + timedelta(hours=1))[0], [])
    ask("merge py orders " + " ".join(children))
    container.upsert_item({"id": "o20", "customer": "s20", "total": -1})
    documents, continuation = drain(continuation=continuation)
    same([d["total"] for d in documents], [-1])
    documents, _ = drain(start_time="Beginning", partition_key="s21")
    same([d["id"] for d in documents], ["o21"])
    for part in container.read_feed_ranges():
        assert drain(start_time="Beginning", feed_range=part)[0]

    same(drain(mode="AllVersionsAndDeletes")[0], [])
    continuation = container.client_connection.last_response_headers["etag"]
    container.create_item({"id": "v", "customer": "v"})
    container.delete_item("v", "v")
    documents, _ = drain(mode="AllVersionsAndDeletes", continuation=continuation)
    same([d["metadata"]["operationType"] for d in documents], ["create", "delete"])


def hierarchical_keys(database):
    container = database.create_container("tree", PartitionKey(["/tenant", "/user", "/id"], kind="MultiHash"))
    for i in range(6):
        container.create_item({"id": f"d{i}", "tenant": f"t{i % 2}", "user": f"u{i}"})
    same(container.read_item("d1", ["t1", "u1", "d1"])["user"], "u1")
    same(len(list(container.query_items("SELECT * FROM c", partition_key=["t1"]))), 3)


database, container = databases_and_containers()
documents(container)
batches(container)
queries(container)
change_feed(container)
hierarchical_keys(database)
client.delete_database("py")
print("done")
