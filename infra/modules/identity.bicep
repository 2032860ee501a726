// The identity that feedscale runs as; main.bicep runs it.

@description('Name of the identity.')
param name string

@description('Azure region.')
param location string

@description('Tags of all resources.')
param tags { *: string }

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: name
  location: location
  tags: tags
}

@description('Resource id.')
output id string = identity.id

@description('Object id, which roles are granted to.')
output principalId string = identity.properties.principalId

@description('Client id, by which a program chooses it.')
output clientId string = identity.properties.clientId
