// The Service Bus namespace and the queue of the scale events, or a topic with a subscription for each consumer, with identities only;
// main.bicep runs it.

@description('A consumer of the scale events: its subscription.')
@sealed()
type eventConsumer = {
  @description('Name of the subscription.')
  @minLength(1)
  @maxLength(50)
  name: string

  @description('Whether the subscription requires sessions. Left out: as requireSessions has it.')
  requireSessions: bool?
}

@description('Name of the namespace: 6 to 50 letters, digits and hyphens, unique in Azure.')
@minLength(6)
@maxLength(50)
param name string

@description('Azure region.')
param location string

@description('Tags of all resources.')
param tags { *: string }

@description('Name of the queue, which is made where there are no consumers.')
param queueName string

@description('Name of the topic, which is made where there are consumers.')
param topicName string

@description('The consumers that get each event, each with a subscription of its own.')
param consumers eventConsumer[]

@description('Names of the signal queues.')
param signalQueues string[]

@description('Name of the queue of shards. Empty: none.')
param shardQueueName string

@description('Whether the queue requires sessions, and each subscription that does not say so itself.')
param requireSessions bool

@description('How long an event waits at most before it is dropped: ISO 8601.')
param timeToLive string

@description('Whether to lock it against being deleted.')
param deleteLock bool

@description('Whether its resource logs go to the workspace.')
param resourceLogs bool

@description('Resource id of the workspace.')
param workspaceId string

@description('Whether the namespace is reached by a private endpoint only. That takes the Premium tier; otherwise it is Standard.')
param isPrivate bool

@description('Resource id of the subnet of the private endpoint. Unused where isPrivate is false.')
param endpointSubnetId string

@description('Resource ids of the private DNS zones, by group. Unused where isPrivate is false.')
param zoneIds { *: string }

var tier = isPrivate ? 'Premium' : 'Standard'

resource namespace 'Microsoft.ServiceBus/namespaces@2026-01-01' = {
  name: name
  location: location
  tags: tags
  sku: isPrivate
    ? {
        name: tier
        tier: tier
        capacity: 1
      }
    : {
        name: tier
        tier: tier
      }
  properties: {
    disableLocalAuth: true
    minimumTlsVersion: '1.2'
    publicNetworkAccess: isPrivate ? 'Disabled' : 'Enabled'
  }

  resource queue 'queues' = if (empty(consumers)) {
    name: queueName
    properties: {
      requiresDuplicateDetection: true
      // After a crash, the next start of the process publishes an event again with the same id, within
      // minutes.
      duplicateDetectionHistoryTimeWindow: 'PT10M'
      requiresSession: requireSessions
      defaultMessageTimeToLive: timeToLive
      // A later event replaces an expired one. Only events that nobody could act on become dead letters.
      deadLetteringOnMessageExpiration: false
      lockDuration: 'PT1M'
      maxDeliveryCount: 10
    }
  }

  resource topic 'topics' = if (!empty(consumers)) {
    name: topicName
    properties: {
      requiresDuplicateDetection: true
      duplicateDetectionHistoryTimeWindow: 'PT10M'
      defaultMessageTimeToLive: timeToLive
    }

    // A subscription without a rule gets the default rule, which takes every event.
    resource subscription 'subscriptions' = [
      for consumer in consumers: {
        name: consumer.name
        properties: {
          requiresSession: consumer.?requireSessions ?? requireSessions
          defaultMessageTimeToLive: timeToLive
          deadLetteringOnMessageExpiration: false
          lockDuration: 'PT1M'
          maxDeliveryCount: 10
        }
      }
    ]
  }

  // One message for each wanted replica. They never expire: only feedscale removes them.
  resource signals 'queues' = [
    for signalQueue in signalQueues: {
      name: signalQueue
      properties: {
        requiresDuplicateDetection: false
        requiresSession: false
        defaultMessageTimeToLive: 'P10675199DT2H48M5.4775807S'
        autoDeleteOnIdle: 'P10675199DT2H48M5.4775807S'
        deadLetteringOnMessageExpiration: false
        enablePartitioning: false
        lockDuration: 'PT5S'
        // Nobody should receive with a lock. If somebody does, the messages must not become dead letters.
        maxDeliveryCount: 2000
      }
    }
  ]

  // Parts of a tick. Each message sets its own time to live: a part that is not polled in time comes
  // again with the next tick.
  resource shards 'queues' = if (!empty(shardQueueName)) {
    name: shardQueueName
    properties: {
      requiresDuplicateDetection: true
      duplicateDetectionHistoryTimeWindow: 'PT1M'
      requiresSession: false
      defaultMessageTimeToLive: 'PT1H'
      deadLetteringOnMessageExpiration: false
      // The host renews the lock while it polls. If the instance is gone, the shard returns after this time.
      lockDuration: 'PT30S'
      // While a killed handler restarts, its host may try a message many times.
      maxDeliveryCount: 50
    }
  }
}

// Later versions are previews, too.
#disable-next-line use-recent-api-versions
resource logs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (resourceLogs) {
  name: 'feedscale'
  scope: namespace
  properties: {
    workspaceId: workspaceId
    logs: [
      {
        categoryGroup: 'allLogs'
        enabled: true
      }
    ]
  }
}

resource lock 'Microsoft.Authorization/locks@2020-05-01' = if (deleteLock) {
  name: 'feedscale'
  scope: namespace
  properties: {
    level: 'CanNotDelete'
    notes: 'Events that nobody took yet are in here.'
  }
}

module endpoint 'privateendpoint.bicep' = if (isPrivate) {
  name: '${name}-endpoint'
  params: {
    name: 'pep-${name}'
    location: location
    tags: tags
    subnetId: endpointSubnetId
    targetId: namespace.id
    group: 'namespace'
    zoneIds: zoneIds
  }
}

@description('Resource id of the namespace.')
output namespaceId string = namespace.id

@description('Name of the namespace.')
output name string = namespace.name

@description('Host of the namespace, without scheme and port.')
output hostName string = split(replace(namespace.properties.serviceBusEndpoint, 'https://', ''), ':')[0]
