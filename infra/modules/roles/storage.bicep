// Roles at a storage account, at its container of packages, and at its state table; main.bicep runs it.

@description('Name of the account.')
param accountName string

@description('Name of the container of the packages.')
param containerName string

@description('Name of the state table.')
param tableName string

@description('Object id of who gets the roles.')
param principalId string

@description('What the principal is. It has to be said of an identity that was just made; left out, Azure looks it up.')
param principalType string?

@description('Ids of the roles of the whole account.')
param accountRoles string[]

@description('Ids of the roles of the container.')
param containerRoles string[]

@description('Ids of the roles of the table.')
param tableRoles string[]

resource account 'Microsoft.Storage/storageAccounts@2026-06-01' existing = {
  name: accountName

  resource blobs 'blobServices' existing = {
    name: 'default'

    resource packages 'containers' existing = {
      name: containerName
    }
  }

  resource tables 'tableServices' existing = {
    name: 'default'

    resource state 'tables' existing = {
      name: tableName
    }
  }
}

resource ofAccount 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for role in accountRoles: {
    name: guid(account.id, principalId, role)
    scope: account
    properties: {
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
      principalId: principalId
      principalType: principalType
    }
  }
]

resource ofContainer 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for role in containerRoles: {
    name: guid(account::blobs::packages.id, principalId, role)
    scope: account::blobs::packages
    properties: {
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
      principalId: principalId
      principalType: principalType
    }
  }
]

resource ofTable 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for role in tableRoles: {
    name: guid(account::tables::state.id, principalId, role)
    scope: account::tables::state
    properties: {
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
      principalId: principalId
      principalType: principalType
    }
  }
]
