// A virtual network with a subnet for the app and one for private endpoints, and the private DNS zones of those; main.bicep runs it.

@description('Name of the virtual network.')
param name string

@description('Azure region.')
param location string

@description('Tags of all resources.')
param tags { *: string }

@description('Address space, /24 or larger. The subnets are the first two /26 of it.')
param addressPrefix string

@description('Hosting plan of the app, which decides whom the subnet is delegated to.')
@allowed([
  'flex'
  'premium'
])
param plan string

@description('Private DNS zones, by the kind of endpoint (the group id of the private link) that they are for. Empty: none.')
param zones { *: string }

@description('Resource ids of private DNS zones that exist, by the same keys. They are neither made nor linked to the network.')
param existingZoneIds { *: string }

var made = filter(items(zones), item => !contains(existingZoneIds, item.key))

// It has only the default rules: traffic from the network may come in, everything may go out.
resource appGroup 'Microsoft.Network/networkSecurityGroups@2026-03-01' = {
  name: 'nsg-${name}-app'
  location: location
  tags: tags
  properties: {}
}

// HTTPS for storage and for the gateway of Cosmos DB, and AMQP over TLS for Service Bus, also from
// peered networks.
resource endpointGroup 'Microsoft.Network/networkSecurityGroups@2026-03-01' = {
  name: 'nsg-${name}-endpoints'
  location: location
  tags: tags
  properties: {
    securityRules: [
      {
        name: 'allow-https-and-amqps-from-networks'
        properties: {
          priority: 100
          direction: 'Inbound'
          access: 'Allow'
          protocol: 'Tcp'
          sourceAddressPrefix: 'VirtualNetwork'
          sourcePortRange: '*'
          destinationAddressPrefix: 'VirtualNetwork'
          destinationPortRanges: ['443', '5671']
        }
      }
      {
        name: 'deny-all-else'
        properties: {
          priority: 4096
          direction: 'Inbound'
          access: 'Deny'
          protocol: '*'
          sourceAddressPrefix: '*'
          sourcePortRange: '*'
          destinationAddressPrefix: '*'
          destinationPortRange: '*'
        }
      }
    ]
  }
}

// The property subnets is left out, so that subnets of others stay. The subnets below are separate
// resources.
resource vnet 'Microsoft.Network/virtualNetworks@2026-03-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    addressSpace: {
      addressPrefixes: [addressPrefix]
    }
  }
}

resource appSubnet 'Microsoft.Network/virtualNetworks/subnets@2026-03-01' = {
  parent: vnet
  name: 'app'
  properties: {
    addressPrefix: cidrSubnet(addressPrefix, 26, 0)
    // The app sends to Entra ID, Application Insights and accounts without a private endpoint. From 2025-07-01 on, the default is false.
    defaultOutboundAccess: true
    networkSecurityGroup: {
      id: appGroup.id
    }
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

resource endpointSubnet 'Microsoft.Network/virtualNetworks/subnets@2026-03-01' = {
  parent: vnet
  name: 'endpoints'
  properties: {
    addressPrefix: cidrSubnet(addressPrefix, 26, 1)
    // Private endpoints only answer.
    defaultOutboundAccess: false
    networkSecurityGroup: {
      id: endpointGroup.id
    }
    // Without this, the security group does not apply to private endpoints.
    privateEndpointNetworkPolicies: 'NetworkSecurityGroupEnabled'
  }
  // A network takes one change at a time.
  dependsOn: [
    appSubnet
  ]
}

resource zone 'Microsoft.Network/privateDnsZones@2024-06-01' = [
  for item in made: {
    name: item.value
    location: 'global'
    tags: tags
  }
]

resource link 'Microsoft.Network/privateDnsZones/virtualNetworkLinks@2024-06-01' = [
  for (item, i) in made: {
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
output appSubnetId string = appSubnet.id

@description('Resource id of the subnet of the private endpoints.')
output endpointSubnetId string = endpointSubnet.id

@description('Resource ids of the zones, by the same keys.')
output zoneIds { *: string } = union(
  toObject(made, item => item.key, item => resourceId('Microsoft.Network/privateDnsZones', item.value)),
  existingZoneIds
)
