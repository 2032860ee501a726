// Roles of a consumer's identity at its subscription of a Service Bus topic; containerapps/main.bicep runs it.

@description('Name of the namespace.')
param namespaceName string

@description('Name of the topic.')
param topicName string

@description('Name of the subscription.')
param subscriptionName string

@description('Object id of the identity that gets the roles.')
param principalId string

@description('Ids of the roles.')
param roles string[]

resource namespace 'Microsoft.ServiceBus/namespaces@2026-01-01' existing = {
  name: namespaceName

  resource topic 'topics' existing = {
    name: topicName

    resource consumer 'subscriptions' existing = {
      name: subscriptionName
    }
  }
}

resource assignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for role in roles: {
    name: guid(namespace::topic::consumer.id, principalId, role)
    scope: namespace::topic::consumer
    properties: {
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
      principalId: principalId
      principalType: 'ServicePrincipal'
    }
  }
]
