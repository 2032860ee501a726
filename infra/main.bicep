// feedscale in a resource group of its own: the function app with its identity, state table, event queue, logs and alerts.
// Run: az deployment group create --resource-group RESOURCE_GROUP --parameters infra/main.bicepparam, or: azd up
targetScope = 'resourceGroup'

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
}

@description('Prefix of the names of all resources: 2 to 20 lower-case letters, digits and hyphens.')
@minLength(2)
@maxLength(20)
param name string = 'feedscale'

@description('Azure region of all resources. Best is that of the Cosmos DB accounts.')
param location string = resourceGroup().location

@description('Tags of all resources.')
param tags object = {}

@description('What to watch: the content of a processors file, with processors: and, optionally, defaults:.')
param processors object

@description('The Cosmos DB accounts that the processors name as their connections.')
@minLength(1)
param cosmosAccounts cosmosAccount[]

@description('When to poll: NCRONTAB, six fields with seconds first, UTC.')
param timerSchedule string = '*/30 * * * * *'

@description('More FEEDSCALE_* settings by name, as text, such as { FEEDSCALE_RU_BUDGET: \'400\' }. They win over those set here.')
param settings object = {}

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

@description('Instances that HTTP may scale out to: 40 (the least that flex allows) to 1000. premium stays at 2.')
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

@description('Whether the queue requires sessions: one consumer at a time for a processor. It cannot be changed later.')
param requireSessions bool = false

@description('How long an event waits for a consumer before it is dead-lettered: ISO 8601, PT1M to P14D.')
param eventTimeToLive string = 'P1D'

@description('Storage redundancy.')
@allowed([
  'Standard_LRS'
  'Standard_ZRS'
])
param storageSku string = 'Standard_LRS'

@description('How long logs are kept, in days: 30 to 730.')
@minValue(30)
@maxValue(730)
param logRetentionDays int = 30

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

@description('Object id of who uploads the package of the plan premium. Empty: nobody is granted that.')
param deployerPrincipalId string = ''

@description('What deployerPrincipalId is.')
@allowed([
  'User'
  'Group'
  'ServicePrincipal'
])
param deployerPrincipalType string = 'User'

var token = uniqueString(resourceGroup().id, name)
var suffix = '${name}-${token}'
var functionAppName = 'func-${suffix}'
var queueName = 'scale-events'
var isPrivate = network == 'private'

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: 'id-${suffix}'
  location: location
  tags: tags
}

module vnet 'modules/network.bicep' = if (network != 'public') {
  name: '${name}-network'
  params: {
    name: 'vnet-${suffix}'
    location: location
    tags: tags
    addressPrefix: vnetAddressPrefix
    plan: plan
    zones: isPrivate
      ? {
          blob: 'privatelink.blob.${environment().suffixes.storage}'
          queue: 'privatelink.queue.${environment().suffixes.storage}'
          table: 'privatelink.table.${environment().suffixes.storage}'
          namespace: 'privatelink.servicebus.windows.net'
          Sql: 'privatelink.documents.azure.com'
        }
      : {}
  }
}

module monitoring 'modules/monitoring.bicep' = {
  name: '${name}-monitoring'
  params: {
    workspaceName: 'log-${suffix}'
    insightsName: 'appi-${suffix}'
    location: location
    tags: tags
    retentionDays: logRetentionDays
    principalId: identity.properties.principalId
  }
}

module storage 'modules/storage.bicep' = {
  name: '${name}-storage'
  params: {
    name: 'st${token}'
    location: location
    tags: tags
    sku: storageSku
    principalId: identity.properties.principalId
    deployerPrincipalId: deployerPrincipalId
    deployerPrincipalType: deployerPrincipalType
    endpointSubnetId: isPrivate ? vnet!.outputs.endpointSubnetId : ''
    zoneIds: isPrivate ? vnet!.outputs.zoneIds : {}
    isPrivate: isPrivate
  }
}

module servicebus 'modules/servicebus.bicep' = {
  name: '${name}-servicebus'
  params: {
    name: 'sbns-${suffix}'
    location: location
    tags: tags
    queueName: queueName
    requireSessions: requireSessions
    timeToLive: eventTimeToLive
    principalId: identity.properties.principalId
    endpointSubnetId: isPrivate ? vnet!.outputs.endpointSubnetId : ''
    zoneIds: isPrivate ? vnet!.outputs.zoneIds : {}
    isPrivate: isPrivate
  }
}

// One after another: an account lets nobody change it while something else does.
@batchSize(1)
module cosmos 'modules/cosmos.bicep' = [
  for account in cosmosAccounts: {
    name: '${token}-cosmos-${account.name}'
    scope: resourceGroup(split(account.accountId, '/')[2], split(account.accountId, '/')[4])
    params: {
      accountName: last(split(account.accountId, '/'))
      databases: account.?databases ?? []
      principalId: identity.properties.principalId
    }
    // Only to be late: Cosmos DB looks the identity up, and may not find one that was made a moment ago.
    dependsOn: [
      storage
      servicebus
    ]
  }
]

@batchSize(1)
module cosmosEndpoints 'modules/privateendpoint.bicep' = [
  for account in cosmosAccounts: if (isPrivate && (account.?privateEndpoint ?? false)) {
    name: '${name}-cosmos-${account.name}-endpoint'
    params: {
      name: 'pep-${suffix}-${toLower(account.name)}'
      location: location
      tags: tags
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
  params: {
    name: functionAppName
    planName: 'plan-${suffix}'
    location: location
    tags: tags
    plan: plan
    alwaysReady: alwaysReady
    maximumInstanceCount: maximumInstanceCount
    instanceMemoryMB: instanceMemoryMB
    subnetId: network == 'public' ? '' : vnet!.outputs.appSubnetId
    identityId: identity.id
    clientId: identity.properties.clientId
    storageName: storage.outputs.name
    packageContainerUrl: storage.outputs.packageContainerUrl
    insightsConnection: monitoring.outputs.insightsConnection
    cosmosConnections: [
      for (account, i) in cosmosAccounts: {
        name: account.name
        endpoint: cosmos[i].outputs.endpoint
      }
    ]
    settings: union(
      {
        FEEDSCALE_PROCESSORS: string(processors)
        FEEDSCALE_TIMER_SCHEDULE: timerSchedule
        FEEDSCALE_STATE: storage.outputs.stateUrl
        FEEDSCALE_EVENTS: 'servicebus:SERVICEBUS/${queueName}'
        SERVICEBUS__fullyQualifiedNamespace: servicebus.outputs.hostName
        SERVICEBUS__credential: 'managedidentity'
        SERVICEBUS__clientId: identity.properties.clientId
      },
      settings
    )
  }
}

module alerts 'modules/alerts.bicep' = {
  name: '${name}-alerts'
  params: {
    name: suffix
    location: location
    tags: tags
    insightsId: monitoring.outputs.insightsId
    namespaceId: servicebus.outputs.namespaceId
    queueName: queueName
    silentAfter: silentAfter
    actionGroupIds: actionGroupIds
  }
}

@description('Name of the function app, for zip deployment and for reading its keys.')
output functionAppName string = app.outputs.name

@description('Address that KEDA and Container Apps ask: followed by /NAME, the answer for one processor.')
output processorsUrl string = 'https://${app.outputs.hostName}/api/processors'

@description('Where the zip of dist/ is uploaded to with the plan premium; empty with flex, whose deployment puts it in place.')
output packageUrl string = app.outputs.packageUrl

@description('Resource id of the identity that feedscale runs as.')
output identityId string = identity.id

@description('Object id of that identity, for roles granted elsewhere.')
output identityPrincipalId string = identity.properties.principalId

@description('Storage account of the state table.')
output storageName string = storage.outputs.name

@description('Service Bus namespace, by its short name, as KEDA wants it.')
output serviceBusName string = servicebus.outputs.name

@description('Host of the Service Bus namespace, for a consumer\'s SERVICEBUS__fullyQualifiedNamespace.')
output serviceBusHostName string = servicebus.outputs.hostName

@description('Queue of the scale events.')
output queueName string = queueName

@description('Application Insights component that holds the logs.')
output insightsName string = monitoring.outputs.insightsName

@description('Resource id of the virtual network, to be peered; empty with network = public.')
output vnetId string = network == 'public' ? '' : vnet!.outputs.vnetId
