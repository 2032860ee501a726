// The right to read an existing Cosmos DB account, granted in its data plane; main.bicep runs it in the account's resource group.

@description('Name of the account.')
param accountName string

@description('Databases to be read, those of the leases among them. Empty: the whole account.')
param databases string[]

@description('Object id of the identity that reads.')
param principalId string

resource account 'Microsoft.DocumentDB/databaseAccounts@2025-10-15' existing = {
  name: accountName
}

// Cosmos DB Built-in Data Reader: metadata, queries and change feeds; it writes nothing.
var readerRole = '00000000-0000-0000-0000-000000000001'
var scopes = empty(databases) ? [account.id] : map(databases, database => '${account.id}/dbs/${database}')

// One after another: the account refuses assignments that are made at once.
@batchSize(1)
resource reader 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2025-10-15' = [
  for scope in scopes: {
    parent: account
    name: guid(scope, principalId, readerRole)
    properties: {
      roleDefinitionId: '${account.id}/sqlRoleDefinitions/${readerRole}'
      principalId: principalId
      scope: scope
    }
  }
]

@description('Address of the account.')
output endpoint string = account.properties.documentEndpoint
