// feedscale in its own resource group, which is created unless it exists: the function app with its identity, state table, event queue, logs and alerts.
// Run: az deployment sub create --location REGION --parameters infra/main.bicepparam, or: azd up
//
// One user-assigned identity signs in to every service: no key, password or connection string is
// created, stored or output. modules/roles/ and modules/cosmos.bicep grant its roles, each at the
// narrowest scope possible. docs/deploy.md has the parameters, docs/permissions.md the roles,
// including those of the person who deploys.
//
// Role assignments are in modules of their own. Their names contain the object id of the identity,
// which is unknown before it exists, and what-if skips modules with unknown names.
targetScope = 'subscription'

metadata name = 'feedscale'
metadata description = 'Watches Cosmos DB change feed processors, decides their replicas and publishes the decisions.'

@description('A Cosmos DB account that feedscale reads, in any resource group or subscription of the tenant.')
type cosmosAccount = {
  @description('Name of the connection, as the processors have it in connection: or leaseConnection:. 1 to 24 letters and digits, a letter first.')
  @minLength(1)
  @maxLength(24)
  name: string

  @description('Resource id: /subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/Microsoft.DocumentDB/databaseAccounts/ACCOUNT')
  @minLength(60)
  accountId: string

  @description('Databases to be read, those of the leases among them. Left out: the whole account.')
  databases: string[]?

  @description('Whether to make a private endpoint to the account; only with network = private. Left out: false.')
  privateEndpoint: bool?

  @description('Whether feedscale may read and replace the request units of databases and containers, by a custom role that this makes. Left out: false.')
  throughput: bool?
}

@description('A consumer of the scale events, with a subscription of its own.')
@sealed()
type eventConsumer = {
  @description('Name of the subscription: 1 to 50 letters, digits, periods, hyphens and underscores.')
  @minLength(1)
  @maxLength(50)
  name: string

  @description('Whether the subscription requires sessions; it cannot be changed later. Left out: as requireSessions has it.')
  requireSessions: bool?
}

// The fields have their types in pkg/config/processors.schema.json; a duration is a string or a number there, and Bicep has no such type.
@description('The content of a processors file. `feedscale poll --dry-run` checks all of it.')
@sealed()
type processorsFile = {
  @description('Fields of every processor that does not set them itself.')
  #disable-next-line use-user-defined-types
  defaults: object?

  @description('The watched processors. Left out where a file beside the handler has them.')
  #disable-next-line use-user-defined-types
  processors: object[]?
}

@description('Prefix of the names of all resources: 2 to 20 lower-case letters, digits and hyphens.')
@minLength(2)
@maxLength(20)
param name string = 'feedscale'

@description('Name of the resource group.')
@minLength(1)
@maxLength(90)
param resourceGroupName string = 'rg-${name}'

@description('Whether the resource group exists. Then it keeps its tags; otherwise it is made, or its tags are replaced.')
param resourceGroupExists bool = false

@description('''
Azure region of all resources, that of the deployment by default. Best is that of the Cosmos DB accounts.
The plan flex is in some regions only: australiaeast, australiasoutheast, brazilsouth, canadacentral, centralindia,
centralus, eastasia, eastus, eastus2, francecentral, germanywestcentral, italynorth, japaneast, koreacentral,
northcentralus, northeurope, norwayeast, southafricanorth, southcentralus, southeastasia, southindia, spaincentral,
swedencentral, uaenorth, uksouth, ukwest, westcentralus, westeurope, westus, westus2, westus3. The regions of today:
az functionapp list-flexconsumption-locations
''')
param location string = deployment().location

@description('Tags of the resource group and all resources.')
param tags { *: string } = {}

@description('What to watch: the content of a processors file, such as loadYamlContent(\'processors.yaml\').')
param processors processorsFile

@description('The Cosmos DB accounts that the processors name as their connections.')
@minLength(1)
param cosmosAccounts cosmosAccount[]

@description('When to poll: NCRONTAB, six fields with seconds first, UTC.')
param timerSchedule string = '*/15 * * * * *'

@description('More FEEDSCALE_* settings by name, as text, such as { FEEDSCALE_RU_BUDGET: \'400\' }. They win over those set here.')
param settings { *: string } = {}

@description('More settings that are secrets, such as a connection string. They win over settings, and no record of the deployment has them.')
@secure()
param secretSettings { *: string } = {}

@description('Hosting plan. flex: Flex Consumption. premium: Elastic Premium (EP1), which runs the zip at the output packageUrl.')
@allowed([
  'flex'
  'premium'
])
param plan string = 'flex'

@description('Instances of the poll function that flex keeps warm, 0 or 1: the timer runs on one instance only.')
@minValue(0)
@maxValue(1)
param alwaysReady int = 1

@description('Instances that HTTP, and the shards of fanOut, may scale out to: 40 (the least that flex allows) to 1000. premium stays at 2.')
@minValue(40)
@maxValue(1000)
param maximumInstanceCount int = 40

@description('Memory of an instance of flex, in MB.')
@allowed([
  512
  2048
  4096
])
param instanceMemoryMB int = 512

@description('''
public: no virtual network. integrated: the app sends through a virtual network, to be peered with yours.
private: also, storage and Service Bus are reached by private endpoints only, which makes the namespace Premium.
A Standard namespace cannot become Premium: choose private at the first deployment, or delete the namespace.
''')
@allowed([
  'public'
  'integrated'
  'private'
])
param network string = 'public'

@description('Address space of the virtual network, /24 or larger, that overlaps with none it is peered with. Unused with network = public.')
param vnetAddressPrefix string = '10.100.0.0/24'

@description('Resource ids of private DNS zones that exist, for network = private: of blob, table, namespace and Sql. Those left out are made.')
param privateDnsZoneIds { *: string } = {}

@description('The consumers that each get every event. With any, events go to the topic scale-decisions, and each consumer has a subscription of it; without, to the queue scale-events.')
param consumers eventConsumer[] = []

@description('Whether the queue requires sessions, or each subscription that does not say so itself: one consumer at a time for a processor. It cannot be changed later.')
param requireSessions bool = false

@description('How long an event waits for a consumer at most before it is dropped: ISO 8601, PT1M to P14D. Events bring a time of their own, three heartbeats.')
param eventTimeToLive string = 'P1D'

@description('Signal queues to make: each a processor\'s or a group\'s signalQueue in the processors file.')
param signalQueues string[] = []

@description('Whether a large tick is handed over in shards to other instances: makes the queue of shards. The package has to be staged by make dist FANOUT=1.')
param fanOut bool = false

@description('Whether to spread over availability zones: the plan, the storage account (Standard_ZRS), and a Premium namespace by itself. Choose it at the first deployment.')
param zoneRedundant bool = false

@description('Whether to lock the storage account and the Service Bus namespace against being deleted. Who deploys may then need to be Owner.')
param deleteLock bool = false

@description('How long logs are kept, in days: 30 to 730.')
@minValue(30)
@maxValue(730)
param logRetentionDays int = 30

@description('Whether the resource logs of the function app, the storage account and the Service Bus namespace go to the workspace, too.')
param resourceLogs bool = false

@description('Resource ids of the action groups that alerts call. None: alerts only show in the portal.')
@maxLength(5)
param actionGroupIds string[] = []

@description('No completed poll for so long raises an alert: ISO 8601. Choose several intervals of timerSchedule.')
@allowed([
  'PT5M'
  'PT10M'
  'PT15M'
  'PT30M'
  'PT1H'
  'PT6H'
  'P1D'
])
param silentAfter string = 'PT15M'

@description('A processor whose oldest pending change is older than this raises an alert: seconds.')
@minValue(1)
param behindAfterSeconds int = 600

@description('A processor that is not polled for so long, while others are, raises an alert: minutes. Choose more than the longest schedule of a processor.')
@minValue(10)
param unpolledAfterMinutes int = 15

@description('Whether whoever deploys may upload the package of the plan premium, read the state and the Cosmos DB accounts, and receive events: for trying things from your own machine.')
param grantDeployer bool = false

// Names contain a hash of the group's id. The id is composed here, so that an existing group and a
// new one give the same names.
var token = uniqueString(subscriptionResourceId('Microsoft.Resources/resourceGroups', resourceGroupName), name)
var suffix = '${name}-${token}'
var functionAppName = 'func-${suffix}'
var storageName = 'st${token}'
var serviceBusName = 'sbns-${suffix}'
var insightsName = 'appi-${suffix}'
var queueName = 'scale-events'
// The name differs from the queue's, since a namespace may still have the queue.
var topicName = 'scale-decisions'
var shardQueueName = 'shards'
var eventsName = empty(consumers) ? queueName : topicName
var tableName = 'feedscale'
var containerName = 'packages'
var isPrivate = network == 'private'
var deployerId = deployer().objectId

// Mistakes that Azure would refuse late, or would misunderstand.
var letters = split('a b c d e f g h i j k l m n o p q r s t u v w x y z', ' ')
var digits = split('0 1 2 3 4 5 6 7 8 9', ' ')
var misnamed = filter([name], text => !empty(join(split(text, concat(letters, digits, ['-'])), '')))
var connections = map(cosmosAccounts, account => account.name)
var mixed = filter(connections, connection => !empty(join(split(toLower(connection), concat(letters, digits)), '')))
var numbered = filter(connections, connection => contains(digits, take(connection, 1)))
var taken = filter(signalQueues, queue => contains([queueName, topicName, shardQueueName], toLower(queue)))
var unreachable = isPrivate ? [] : filter(cosmosAccounts, account => account.?privateEndpoint ?? false)
var noZones = filter(items(privateDnsZoneIds), zone => !contains(['blob', 'table', 'namespace', 'Sql'], zone.key))
var mistakes = concat(
  map(misnamed, text => 'name: ${text} is not lower-case letters, digits and hyphens.'),
  map(union(mixed, numbered), connection => 'cosmosAccounts: ${connection} is not letters and digits, a letter first.'),
  map(taken, queue => 'signalQueues: ${queue} is the name of another queue or topic.'),
  map(unreachable, account => 'cosmosAccounts: privateEndpoint of ${account.name} takes network = private.'),
  map(noZones, zone => 'privateDnsZoneIds: ${zone.key} is none of blob, table, namespace and Sql.')
)
// Every resource has tags, so that a mistake ends the deployment before anything is made.
var allTags = empty(mistakes) ? tags : fail(join(mistakes, ' '))

// Hosts that environment() does not have, by the name of the cloud.
var hosts = {
  AzureCloud: {
    serviceBus: 'servicebus.windows.net'
    cosmos: 'documents.azure.com'
  }
  AzureUSGovernment: {
    serviceBus: 'servicebus.usgovcloudapi.net'
    cosmos: 'documents.azure.us'
  }
  AzureChinaCloud: {
    serviceBus: 'servicebus.chinacloudapi.cn'
    cosmos: 'documents.azure.cn'
  }
}

// Built-in roles, each with its scope. docs/permissions.md says what each is for.
var blobOwnerRole = 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b' // Storage Blob Data Owner, of the account
var blobContributorRole = 'ba92f5b4-2d11-453d-a403-e96b0029c9fe' // Storage Blob Data Contributor, of the container of packages
var tableContributorRole = '0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3' // Storage Table Data Contributor, of the state table
var tableReaderRole = '76199698-9eea-4c19-bc75-cec21354c6b6' // Storage Table Data Reader, of the state table
var senderRole = '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39' // Azure Service Bus Data Sender, of the queue or topic
var receiverRole = '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0' // Azure Service Bus Data Receiver, of the queue or topic
var busOwnerRole = '090c5cfd-751d-490a-894a-3ce6f1109419' // Azure Service Bus Data Owner, of the queue of shards
var publisherRole = '3913510d-42f4-4e42-8a64-420c390055eb' // Monitoring Metrics Publisher, of the component

resource group 'Microsoft.Resources/resourceGroups@2025-04-01' = if (!resourceGroupExists) {
  name: resourceGroupName
  location: location
  tags: allTags
}

module identity 'modules/identity.bicep' = {
  name: '${name}-identity'
  scope: resourceGroup(resourceGroupName)
  params: {
    name: 'id-${suffix}'
    location: location
    tags: allTags
  }
  dependsOn: [
    group
  ]
}

module vnet 'modules/network.bicep' = if (network != 'public') {
  name: '${name}-network'
  scope: resourceGroup(resourceGroupName)
  params: {
    name: 'vnet-${suffix}'
    location: location
    tags: allTags
    addressPrefix: vnetAddressPrefix
    plan: plan
    zones: isPrivate
      ? {
          blob: 'privatelink.blob.${environment().suffixes.storage}'
          table: 'privatelink.table.${environment().suffixes.storage}'
          namespace: 'privatelink.${hosts[environment().name].serviceBus}'
          Sql: 'privatelink.${hosts[environment().name].cosmos}'
        }
      : {}
    existingZoneIds: privateDnsZoneIds
  }
  dependsOn: [
    group
  ]
}

module monitoring 'modules/monitoring.bicep' = {
  name: '${name}-monitoring'
  scope: resourceGroup(resourceGroupName)
  params: {
    workspaceName: 'log-${suffix}'
    insightsName: insightsName
    location: location
    tags: allTags
    retentionDays: logRetentionDays
  }
  dependsOn: [
    group
  ]
}

module storage 'modules/storage.bicep' = {
  name: '${name}-storage'
  scope: resourceGroup(resourceGroupName)
  params: {
    name: storageName
    location: location
    tags: allTags
    tableName: tableName
    containerName: containerName
    zoneRedundant: zoneRedundant
    deleteLock: deleteLock
    resourceLogs: resourceLogs
    workspaceId: monitoring.outputs.workspaceId
    endpointSubnetId: isPrivate ? vnet!.outputs.endpointSubnetId : ''
    zoneIds: isPrivate ? vnet!.outputs.zoneIds : {}
    isPrivate: isPrivate
  }
}

module servicebus 'modules/servicebus.bicep' = {
  name: '${name}-servicebus'
  scope: resourceGroup(resourceGroupName)
  params: {
    name: serviceBusName
    location: location
    tags: allTags
    queueName: queueName
    topicName: topicName
    consumers: consumers
    signalQueues: signalQueues
    shardQueueName: fanOut ? shardQueueName : ''
    requireSessions: requireSessions
    timeToLive: eventTimeToLive
    deleteLock: deleteLock
    resourceLogs: resourceLogs
    workspaceId: monitoring.outputs.workspaceId
    endpointSubnetId: isPrivate ? vnet!.outputs.endpointSubnetId : ''
    zoneIds: isPrivate ? vnet!.outputs.zoneIds : {}
    isPrivate: isPrivate
  }
}

module insightsRoles 'modules/roles/insights.bicep' = {
  name: '${name}-insights-roles'
  scope: resourceGroup(resourceGroupName)
  params: {
    insightsName: insightsName
    #disable-next-line what-if-short-circuiting
    principalId: identity.outputs.principalId
    roles: [publisherRole]
  }
  dependsOn: [
    monitoring
  ]
}

module storageRoles 'modules/roles/storage.bicep' = {
  name: '${name}-storage-roles'
  scope: resourceGroup(resourceGroupName)
  params: {
    accountName: storageName
    containerName: containerName
    tableName: tableName
    #disable-next-line what-if-short-circuiting
    principalId: identity.outputs.principalId
    principalType: 'ServicePrincipal'
    // At the account, since the Functions host itself creates the containers of its locks and keys.
    accountRoles: [blobOwnerRole]
    containerRoles: []
    tableRoles: [tableContributorRole]
  }
  dependsOn: [
    storage
  ]
}

module queueRoles 'modules/roles/queue.bicep' = if (empty(consumers)) {
  name: '${name}-queue-roles'
  scope: resourceGroup(resourceGroupName)
  params: {
    namespaceName: serviceBusName
    queueName: queueName
    #disable-next-line what-if-short-circuiting
    principalId: identity.outputs.principalId
    principalType: 'ServicePrincipal'
    roles: [senderRole]
  }
  dependsOn: [
    servicebus
  ]
}

module topicRoles 'modules/roles/topic.bicep' = if (!empty(consumers)) {
  name: '${name}-topic-roles'
  scope: resourceGroup(resourceGroupName)
  params: {
    namespaceName: serviceBusName
    topicName: topicName
    #disable-next-line what-if-short-circuiting
    principalId: identity.outputs.principalId
    principalType: 'ServicePrincipal'
    roles: [senderRole]
  }
  dependsOn: [
    servicebus
  ]
}
module signalQueueRoles 'modules/roles/queue.bicep' = [
  for signalQueue in signalQueues: {
    name: '${name}-${uniqueString(signalQueue)}-signal-roles'
    scope: resourceGroup(resourceGroupName)
    params: {
      namespaceName: serviceBusName
      queueName: signalQueue
      #disable-next-line what-if-short-circuiting
      principalId: identity.outputs.principalId
      principalType: 'ServicePrincipal'
      // feedscale counts the messages by peeking, which needs the right to receive, and receives those
      // that are too many.
      roles: [senderRole, receiverRole]
    }
    dependsOn: [
      servicebus
    ]
  }
]

module shardQueueRoles 'modules/roles/queue.bicep' = if (fanOut) {
  name: '${name}-shard-roles'
  scope: resourceGroup(resourceGroupName)
  params: {
    namespaceName: serviceBusName
    queueName: shardQueueName
    #disable-next-line what-if-short-circuiting
    principalId: identity.outputs.principalId
    principalType: 'ServicePrincipal'
    // To send, to receive, and to count. Without the count, the platform adds instances regardless of
    // how many messages wait.
    roles: [busOwnerRole]
  }
  dependsOn: [
    servicebus
  ]
}

module deployerStorageRoles 'modules/roles/storage.bicep' = if (grantDeployer) {
  name: '${name}-deployer-storage-roles'
  scope: resourceGroup(resourceGroupName)
  params: {
    accountName: storageName
    containerName: containerName
    tableName: tableName
    principalId: deployerId
    accountRoles: []
    containerRoles: plan == 'premium' ? [blobContributorRole] : []
    tableRoles: [tableReaderRole]
  }
  dependsOn: [
    storage
  ]
}

module deployerQueueRoles 'modules/roles/queue.bicep' = if (grantDeployer && empty(consumers)) {
  name: '${name}-deployer-queue-roles'
  scope: resourceGroup(resourceGroupName)
  params: {
    namespaceName: serviceBusName
    queueName: queueName
    principalId: deployerId
    roles: [receiverRole]
  }
  dependsOn: [
    servicebus
  ]
}

module deployerTopicRoles 'modules/roles/topic.bicep' = if (grantDeployer && !empty(consumers)) {
  name: '${name}-deployer-topic-roles'
  scope: resourceGroup(resourceGroupName)
  params: {
    namespaceName: serviceBusName
    topicName: topicName
    principalId: deployerId
    roles: [receiverRole]
  }
  dependsOn: [
    servicebus
  ]
}

// One after another: an account refuses a change while another is under way.
@batchSize(1)
module cosmos 'modules/cosmos.bicep' = [
  for account in cosmosAccounts: {
    name: '${token}-cosmos-${account.name}'
    scope: resourceGroup(split(account.accountId, '/')[2], split(account.accountId, '/')[4])
    params: {
      accountName: last(split(account.accountId, '/'))
      databases: account.?databases ?? []
      #disable-next-line what-if-short-circuiting
      principalIds: grantDeployer ? [identity.outputs.principalId, deployerId] : [identity.outputs.principalId]
    }
    // This dependency only delays: Cosmos DB may not find an identity that was just created.
    dependsOn: [
      storage
      servicebus
    ]
  }
]

module throughputRoles 'modules/roles/throughput.bicep' = [
  for account in cosmosAccounts: if (account.?throughput ?? false) {
    name: '${token}-throughput-${account.name}'
    scope: resourceGroup(split(account.accountId, '/')[2], split(account.accountId, '/')[4])
    params: {
      accountName: last(split(account.accountId, '/'))
      #disable-next-line what-if-short-circuiting
      principalId: identity.outputs.principalId
    }
  }
]

@batchSize(1)
module cosmosEndpoints 'modules/privateendpoint.bicep' = [
  for account in cosmosAccounts: if (isPrivate && (account.?privateEndpoint ?? false)) {
    name: '${name}-cosmos-${account.name}-endpoint'
    scope: resourceGroup(resourceGroupName)
    params: {
      name: 'pep-${suffix}-${toLower(account.name)}'
      location: location
      tags: allTags
      subnetId: vnet!.outputs.endpointSubnetId
      targetId: account.accountId
      group: 'Sql'
      zoneIds: vnet!.outputs.zoneIds
    }
    dependsOn: [
      cosmos
    ]
  }
]

module app 'modules/functionapp.bicep' = {
  name: '${name}-app'
  scope: resourceGroup(resourceGroupName)
  params: {
    name: functionAppName
    planName: 'plan-${suffix}'
    location: location
    tags: allTags
    plan: plan
    alwaysReady: alwaysReady
    maximumInstanceCount: maximumInstanceCount
    instanceMemoryMB: instanceMemoryMB
    subnetId: network == 'public' ? '' : vnet!.outputs.appSubnetId
    identityId: identity.outputs.id
    clientId: identity.outputs.clientId
    zoneRedundant: zoneRedundant
    resourceLogs: resourceLogs
    workspaceId: monitoring.outputs.workspaceId
    blobServiceUri: storage.outputs.blobServiceUri
    packageContainerUrl: storage.outputs.packageContainerUrl
    insightsConnection: monitoring.outputs.insightsConnection
    cosmosConnections: [
      for (account, i) in cosmosAccounts: {
        name: account.name
        endpoint: cosmos[i].outputs.endpoint
        resourceId: (account.?throughput ?? false) ? account.accountId : ''
      }
    ]
    settings: union(
      {
        FEEDSCALE_PROCESSORS: string(processors)
        FEEDSCALE_TIMER_SCHEDULE: timerSchedule
        FEEDSCALE_STATE: storage.outputs.stateUrl
        FEEDSCALE_EVENTS: 'servicebus:SERVICEBUS/${eventsName}'
        SERVICEBUS__fullyQualifiedNamespace: servicebus.outputs.hostName
        SERVICEBUS__credential: 'managedidentity'
        SERVICEBUS__clientId: identity.outputs.clientId
      },
      fanOut
        ? {
            FEEDSCALE_SHARD_QUEUE: shardQueueName
            FEEDSCALE_SHARDS__fullyQualifiedNamespace: servicebus.outputs.hostName
            FEEDSCALE_SHARDS__credential: 'managedidentity'
            FEEDSCALE_SHARDS__clientId: identity.outputs.clientId
          }
        : {},
      settings
    )
    secretSettings: secretSettings
  }
  // Without its roles the host could not start.
  dependsOn: [
    insightsRoles
    storageRoles
    queueRoles
    shardQueueRoles
    topicRoles
  ]
}

module alerts 'modules/alerts.bicep' = {
  name: '${name}-alerts'
  scope: resourceGroup(resourceGroupName)
  params: {
    name: suffix
    location: location
    tags: allTags
    insightsId: monitoring.outputs.insightsId
    namespaceId: servicebus.outputs.namespaceId
    entityNames: fanOut ? [eventsName, shardQueueName] : [eventsName]
    silentAfter: silentAfter
    behindAfterSeconds: behindAfterSeconds
    unpolledAfterMinutes: unpolledAfterMinutes
    page: 'https://${app.outputs.hostName}/api/dashboard'
    actionGroupIds: actionGroupIds
  }
}

@description('Name of the resource group.')
output resourceGroupName string = resourceGroupName

@description('Name of the function app, for zip deployment and for reading its keys.')
output functionAppName string = app.outputs.name

@description('Address that KEDA and Container Apps ask: followed by /NAME, the answer for one processor.')
output processorsUrl string = 'https://${app.outputs.hostName}/api/processors'

@description('Where the zip of dist/ is uploaded to with the plan premium; empty with flex, whose deployment puts it in place.')
output packageUrl string = app.outputs.packageUrl

@description('Resource id of the identity that feedscale runs as.')
output identityId string = identity.outputs.id

@description('Object id of that identity, for roles granted elsewhere.')
output identityPrincipalId string = identity.outputs.principalId

@description('Storage account of the state table.')
output storageName string = storage.outputs.name

@description('Service Bus namespace, by its short name, as KEDA wants it.')
output serviceBusName string = servicebus.outputs.name

@description('Host of the Service Bus namespace, for a consumer\'s SERVICEBUS__fullyQualifiedNamespace.')
output serviceBusHostName string = servicebus.outputs.hostName

@description('Queue of the scale events; empty with consumers.')
output queueName string = empty(consumers) ? queueName : ''

@description('Topic of the scale events; empty without consumers.')
output topicName string = empty(consumers) ? '' : topicName

@description('What each consumer has as FEEDSCALE_EVENTS, with SERVICEBUS as its connection, in the order of consumers.')
output subscriptionEvents string[] = [
  for consumer in consumers: 'servicebus:SERVICEBUS/${topicName}/Subscriptions/${consumer.name}'
]

@description('Application Insights component that holds the logs.')
output insightsName string = monitoring.outputs.insightsName

@description('Resource id of the virtual network, to be peered; empty with network = public.')
output vnetId string = network == 'public' ? '' : vnet!.outputs.vnetId
