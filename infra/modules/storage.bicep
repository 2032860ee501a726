// The storage account: the host's locks, the package, and the state table, with identities only; main.bicep runs it.

@description('Name of the account: 3 to 24 lower-case letters and digits, unique in Azure.')
@minLength(3)
@maxLength(24)
param name string

@description('Azure region.')
param location string

@description('Tags of all resources.')
param tags { *: string }

@description('Name of the state table.')
param tableName string

@description('Name of the container of the packages.')
param containerName string

@description('Whether to keep copies in three availability zones (Standard_ZRS) rather than in one (Standard_LRS).')
param zoneRedundant bool

@description('Whether to lock it against being deleted.')
param deleteLock bool

@description('Whether its resource logs go to the workspace.')
param resourceLogs bool

@description('Resource id of the workspace.')
param workspaceId string

@description('Whether the account is reached by private endpoints only.')
param isPrivate bool

@description('Resource id of the subnet of the private endpoints. Unused where isPrivate is false.')
param endpointSubnetId string

@description('Resource ids of the private DNS zones, by group. Unused where isPrivate is false.')
param zoneIds { *: string }

resource account 'Microsoft.Storage/storageAccounts@2026-06-01' = {
  name: name
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: {
    name: zoneRedundant ? 'Standard_ZRS' : 'Standard_LRS'
  }
  properties: {
    allowBlobPublicAccess: false
    allowSharedKeyAccess: false
    defaultToOAuthAuthentication: true
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    publicNetworkAccess: isPrivate ? 'Disabled' : 'Enabled'
    networkAcls: {
      bypass: 'None'
      defaultAction: isPrivate ? 'Deny' : 'Allow'
    }
  }

  resource blobs 'blobServices' = {
    name: 'default'

    resource packages 'containers' = {
      name: containerName
      properties: {
        publicAccess: 'None'
      }
    }
  }

  resource tables 'tableServices' = {
    name: 'default'

    resource state 'tables' = {
      name: tableName
    }
  }
}

// Later versions are previews, too.
#disable-next-line use-recent-api-versions
resource blobLogs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (resourceLogs) {
  name: 'feedscale'
  scope: account::blobs
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

// Later versions are previews, too.
#disable-next-line use-recent-api-versions
resource tableLogs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (resourceLogs) {
  name: 'feedscale'
  scope: account::tables
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
  scope: account
  properties: {
    level: 'CanNotDelete'
    notes: 'What feedscale knows of its processors is in here.'
  }
}

// One after another: an account refuses a second change while one is under way.
@batchSize(1)
module endpoints 'privateendpoint.bicep' = [
  for group in ['blob', 'table']: if (isPrivate) {
    name: '${name}-${group}-endpoint'
    params: {
      name: 'pep-${name}-${group}'
      location: location
      tags: tags
      subnetId: endpointSubnetId
      targetId: account.id
      group: group
      zoneIds: zoneIds
    }
  }
]

@description('Name of the account.')
output name string = account.name

@description('Address of the blobs.')
output blobServiceUri string = account.properties.primaryEndpoints.blob

@description('Address of the container of the packages.')
output packageContainerUrl string = '${account.properties.primaryEndpoints.blob}${containerName}'

@description('FEEDSCALE_STATE: the address of the state table.')
output stateUrl string = '${account.properties.primaryEndpoints.table}${tableName}'
