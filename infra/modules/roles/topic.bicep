// Roles at one Service Bus topic, and so at its subscriptions; main.bicep runs it.

@description('Name of the namespace.')
param namespaceName string

@description('Name of the topic.')
param topicName string

@description('Object id of who gets the roles.')
param principalId string

@description('What the principal is. It has to be said of an identity that was just made; left out, Azure looks it up.')
param principalType string?

@description('Ids of the roles.')
param roles string[]

resource namespace 'Microsoft.ServiceBus/namespaces@2026-01-01' existing = {
  name: namespaceName

  resource topic 'topics' existing = {
    name: topicName
  }
}

resource assignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for role in roles: {
    name: guid(namespace::topic.id, principalId, role)
    scope: namespace::topic
    properties: {
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
      principalId: principalId
      principalType: principalType
    }
  }
]
