// The right to read an existing Cosmos DB account, granted in its data plane; main.bicep runs it in the account's resource group.

@description('Name of the account.')
param accountName string

@description('Databases to be read, those of the leases among them. Empty: the whole account.')
param databases string[]

@description('Object ids of who reads.')
param principalIds string[]

resource account 'Microsoft.DocumentDB/databaseAccounts@2026-03-15' existing = {
  name: accountName
}

// Cosmos DB Built-in Data Reader: reads metadata, queries and change feeds, and writes nothing.
var readerRole = '00000000-0000-0000-0000-000000000001'
var scopes = empty(databases) ? [account.id] : map(databases, database => '${account.id}/dbs/${database}')
var grants = flatten(map(scopes, scope => map(principalIds, id => { scope: scope, principalId: id })))

// One after another: the account refuses assignments that are made at once.
@batchSize(1)
resource reader 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2026-03-15' = [
  for grant in grants: {
    parent: account
    name: guid(grant.scope, grant.principalId, readerRole)
    properties: {
      roleDefinitionId: '${account.id}/sqlRoleDefinitions/${readerRole}'
      principalId: grant.principalId
      scope: grant.scope
    }
  }
]

@description('Address of the account.')
output endpoint string = account.properties.documentEndpoint
