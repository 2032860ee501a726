// Roles at one Service Bus queue; main.bicep runs it, and containerapps/main.bicep.

@description('Name of the namespace.')
param namespaceName string

@description('Name of the queue.')
param queueName string

@description('Object id of who gets the roles.')
param principalId string

@description('What the principal is. It has to be said of an identity that was just made; left out, Azure looks it up.')
param principalType string?

@description('Ids of the roles.')
param roles string[]

resource namespace 'Microsoft.ServiceBus/namespaces@2026-01-01' existing = {
  name: namespaceName

  resource queue 'queues' existing = {
    name: queueName
  }
}

resource assignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for role in roles: {
    name: guid(namespace::queue.id, principalId, role)
    scope: namespace::queue
    properties: {
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
      principalId: principalId
      principalType: principalType
    }
  }
]
