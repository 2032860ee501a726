// Roles at an Application Insights component; main.bicep runs it.

@description('Name of the component.')
param insightsName string

@description('Object id of the identity that gets the roles.')
param principalId string

@description('Ids of the roles.')
param roles string[]

resource insights 'Microsoft.Insights/components@2020-02-02' existing = {
  name: insightsName
}

resource assignment 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for role in roles: {
    name: guid(insights.id, principalId, role)
    scope: insights
    properties: {
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role)
      principalId: principalId
      principalType: 'ServicePrincipal'
    }
  }
]
