// A private endpoint and its DNS records; other modules run it.

@description('Name of the endpoint.')
param name string

@description('Azure region.')
param location string

@description('Tags.')
param tags { *: string }

@description('Resource id of the subnet that the endpoint gets an address in.')
param subnetId string

@description('Resource id of what the endpoint leads to.')
param targetId string

@description('Group id of the private link.')
@allowed([
  'blob'
  'table'
  'namespace'
  'Sql'
])
param group string

@description('Resource ids of the private DNS zones, by group.')
param zoneIds { *: string }

resource endpoint 'Microsoft.Network/privateEndpoints@2026-03-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    subnet: {
      id: subnetId
    }
    privateLinkServiceConnections: [
      {
        name: group
        properties: {
          privateLinkServiceId: targetId
          groupIds: [group]
        }
      }
    ]
  }

  resource dns 'privateDnsZoneGroups' = {
    name: 'default'
    properties: {
      privateDnsZoneConfigs: [
        {
          name: group
          properties: {
            privateDnsZoneId: zoneIds[group]
          }
        }
      ]
    }
  }
}
