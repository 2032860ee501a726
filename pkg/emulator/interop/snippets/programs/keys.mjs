// Writes to both stand-ins of `feedscale emulate`, and reads back.
import { ChangeFeedStartFrom, CosmosClient } from '@azure/cosmos'
import { ServiceBusClient } from '@azure/service-bus'

const orders = new CosmosClient(process.env.COSMOS).database('shop').container('orders')
await orders.items.upsert({ id: '1', customerId: 'a' })
const feed = orders.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning() })
for await (const page of feed.getAsyncIterator()) {
  if (page.statusCode === 304) break
  for (const order of page.result) console.log('changed', order.id)
}

const bus = new ServiceBusClient(process.env.SERVICEBUS)
await bus.createSender('scale-events').sendMessages({ body: 'hello' })
const receiver = bus.createReceiver('scale-events')
for (const message of await receiver.receiveMessages(1)) {
  console.log('received', message.body)
  await receiver.completeMessage(message)
}
await bus.close()
