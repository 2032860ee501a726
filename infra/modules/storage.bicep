// The storage account: the host's locks, the package, and the state table, with identities only; main.bicep runs it.

@description('Name of the account: 3 to 24 lower-case letters and digits, unique in Azure.')
@minLength(3)
@maxLength(24)
param name string

@description('Azure region.')
param location string

@description('Tags of all resources.')
param tags object

@description('Redundancy.')
@allowed([
  'Standard_LRS'
  'Standard_ZRS'
])
param sku string

@description('Object id of the identity that feedscale runs as.')
param principalId string

@description('Object id of who uploads packages. Empty: nobody.')
param deployerPrincipalId string

@description('What deployerPrincipalId is.')
@allowed([
  'User'
  'Group'
  'ServicePrincipal'
])
param deployerPrincipalType string

@description('Whether the account is reached by private endpoints only.')
param isPrivate bool

@description('Resource id of the subnet of the private endpoints. Unused where isPrivate is false.')
param endpointSubnetId string

@description('Resource ids of the private DNS zones, by group. Unused where isPrivate is false.')
param zoneIds object

var containerName = 'packages'
var tableName = 'feedscale'

resource account 'Microsoft.Storage/storageAccounts@2025-06-01' = {
  name: name
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: {
    name: sku
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

// Storage Blob Data Owner, Storage Blob Data Contributor, Storage Table Data Contributor
var blobOwnerRole = 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b'
var blobContributorRole = 'ba92f5b4-2d11-453d-a403-e96b0029c9fe'
var tableContributorRole = '0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3'

// Of the account, since the Functions host makes the containers of its locks and keys itself.
resource hostBlobs 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(account.id, principalId, blobOwnerRole)
  scope: account
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', blobOwnerRole)
    principalId: principalId
    principalType: 'ServicePrincipal'
  }
}

resource stateTable 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(account::tables::state.id, principalId, tableContributorRole)
  scope: account::tables::state
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', tableContributorRole)
    principalId: principalId
    principalType: 'ServicePrincipal'
  }
}

resource deployer 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(deployerPrincipalId)) {
  name: guid(account::blobs::packages.id, deployerPrincipalId, blobContributorRole)
  scope: account::blobs::packages
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', blobContributorRole)
    principalId: deployerPrincipalId
    principalType: deployerPrincipalType
  }
}

module endpoints 'privateendpoint.bicep' = [
  for group in ['blob', 'queue', 'table']: if (isPrivate) {
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

@description('Address of the container of the packages.')
output packageContainerUrl string = '${account.properties.primaryEndpoints.blob}${containerName}'

@description('FEEDSCALE_STATE: the address of the state table.')
output stateUrl string = '${account.properties.primaryEndpoints.table}${tableName}'
