// The Service Bus namespace and the queue of the scale events, with identities only; main.bicep runs it.

@description('Name of the namespace: 6 to 50 letters, digits and hyphens, unique in Azure.')
@minLength(6)
@maxLength(50)
param name string

@description('Azure region.')
param location string

@description('Tags of all resources.')
param tags object

@description('Name of the queue.')
param queueName string

@description('Whether the queue requires sessions.')
param requireSessions bool

@description('How long an event waits before it is dead-lettered: ISO 8601.')
param timeToLive string

@description('Object id of the identity that sends the events.')
param principalId string

@description('Whether the namespace is reached by a private endpoint only. That takes the Premium tier; otherwise it is Standard.')
param isPrivate bool

@description('Resource id of the subnet of the private endpoint. Unused where isPrivate is false.')
param endpointSubnetId string

@description('Resource ids of the private DNS zones, by group. Unused where isPrivate is false.')
param zoneIds object

var tier = isPrivate ? 'Premium' : 'Standard'

resource namespace 'Microsoft.ServiceBus/namespaces@2024-01-01' = {
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

  resource queue 'queues' = {
    name: queueName
    properties: {
      requiresDuplicateDetection: true
      // An event is repeated after a crash, with the same id: at the next start of the process, so within minutes.
      duplicateDetectionHistoryTimeWindow: 'PT10M'
      requiresSession: requireSessions
      defaultMessageTimeToLive: timeToLive
      deadLetteringOnMessageExpiration: true
      lockDuration: 'PT1M'
      maxDeliveryCount: 10
    }
  }
}

// Azure Service Bus Data Sender
var senderRole = '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39'

resource sender 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(namespace::queue.id, principalId, senderRole)
  scope: namespace::queue
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', senderRole)
    principalId: principalId
    principalType: 'ServicePrincipal'
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
