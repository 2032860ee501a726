// The right to pull images from a container registry; containerapps/main.bicep runs it in the registry's resource group.

@description('Name of the registry.')
param registryName string

@description('Object ids of the identities that pull.')
param principalIds string[]

resource registry 'Microsoft.ContainerRegistry/registries@2025-11-01' existing = {
  name: registryName
}

// AcrPull
var pullRole = '7f951dda-4ed3-4680-a7ca-43fe172d538d'

resource pull 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for principalId in principalIds: {
    name: guid(registry.id, principalId, pullRole)
    scope: registry
    properties: {
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', pullRole)
      principalId: principalId
      principalType: 'ServicePrincipal'
    }
  }
]

@description('Host of the registry.')
output loginServer string = registry.properties.loginServer
