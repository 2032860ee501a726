// The right to read and replace the throughput of a Cosmos DB account, by a custom role; main.bicep runs it in the account's resource
// group.

@description('Name of the account.')
param accountName string

@description('Object id of the identity that gets the role.')
param principalId string

resource account 'Microsoft.DocumentDB/databaseAccounts@2026-03-15' existing = {
  name: accountName
}

var scope = resourceGroup().id

// The role can read no key and no document.
resource role 'Microsoft.Authorization/roleDefinitions@2022-04-01' = {
  name: guid(account.id, 'feedscale throughput')
  properties: {
    roleName: 'feedscale throughput of ${accountName} (${uniqueString(account.id)})'
    description: 'Read and replace the request units of databases and containers.'
    type: 'CustomRole'
    assignableScopes: [scope]
    permissions: [
      {
        actions: [
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/throughputSettings/read'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/throughputSettings/write'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/throughputSettings/operationResults/read'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/throughputSettings/read'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/throughputSettings/write'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/throughputSettings/operationResults/read'
        ]
      }
    ]
  }
}

resource assignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(account.id, principalId, role.id)
  scope: account
  properties: {
    roleDefinitionId: role.id
    principalId: principalId
    principalType: 'ServicePrincipal'
  }
}
