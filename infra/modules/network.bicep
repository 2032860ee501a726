// A virtual network with a subnet for the app and one for private endpoints, and the private DNS zones of those; main.bicep runs it.

@description('Name of the virtual network.')
param name string

@description('Azure region.')
param location string

@description('Tags of all resources.')
param tags object

@description('Address space, /24 or larger. The subnets are the first two /26 of it.')
param addressPrefix string

@description('Hosting plan of the app, which decides whom the subnet is delegated to.')
@allowed([
  'flex'
  'premium'
])
param plan string

@description('Private DNS zones, by the kind of endpoint (the group id of the private link) that they are for. Empty: none.')
param zones object

resource vnet 'Microsoft.Network/virtualNetworks@2025-01-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    addressSpace: {
      addressPrefixes: [addressPrefix]
    }
    subnets: [
      {
        name: 'app'
        properties: {
          addressPrefix: cidrSubnet(addressPrefix, 26, 0)
          delegations: [
            {
              name: 'app'
              properties: {
                serviceName: plan == 'flex' ? 'Microsoft.App/environments' : 'Microsoft.Web/serverFarms'
              }
            }
          ]
        }
      }
      {
        name: 'endpoints'
        properties: {
          addressPrefix: cidrSubnet(addressPrefix, 26, 1)
        }
      }
    ]
  }

  resource app 'subnets' existing = {
    name: 'app'
  }

  resource endpoints 'subnets' existing = {
    name: 'endpoints'
  }
}

resource zone 'Microsoft.Network/privateDnsZones@2024-06-01' = [
  for item in items(zones): {
    name: item.value
    location: 'global'
    tags: tags
  }
]

resource link 'Microsoft.Network/privateDnsZones/virtualNetworkLinks@2024-06-01' = [
  for (item, i) in items(zones): {
    parent: zone[i]
    name: name
    location: 'global'
    tags: tags
    properties: {
      registrationEnabled: false
      // Accounts whose private endpoints are elsewhere are still found by their public name.
      resolutionPolicy: 'NxDomainRedirect'
      virtualNetwork: {
        id: vnet.id
      }
    }
  }
]

@description('Resource id of the virtual network.')
output vnetId string = vnet.id

@description('Resource id of the subnet that the app sends through.')
output appSubnetId string = vnet::app.id

@description('Resource id of the subnet of the private endpoints.')
output endpointSubnetId string = vnet::endpoints.id

@description('Resource ids of the zones, by the same keys.')
output zoneIds object = toObject(
  items(zones),
  item => item.key,
  item => resourceId('Microsoft.Network/privateDnsZones', item.value)
)
