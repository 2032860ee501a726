// Signs in to `feedscale emulate --any-token` without a key, and writes to both services.
import { CosmosClient } from '@azure/cosmos'
import { DefaultAzureCredential } from '@azure/identity'
import { ServiceBusClient } from '@azure/service-bus'

const me = new DefaultAzureCredential()
const cosmos = new CosmosClient({ endpoint: process.env.COSMOS__accountEndpoint, aadCredentials: me })
await cosmos.database('shop').container('orders').items.upsert({ id: '1', customerId: 'a' })
const bus = new ServiceBusClient(process.env.SERVICEBUS__fullyQualifiedNamespace, me)
await bus.createSender('scale-events').sendMessages({ body: 'hello' })
await bus.close()
console.log('signed in')
