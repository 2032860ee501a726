// The function app and its plan, with the custom handler as runtime; main.bicep runs it.

@description('A connection of the processors.')
type cosmosConnection = {
  @description('Name of the connection.')
  name: string

  @description('Address of the account.')
  endpoint: string

  @description('Resource id of the account, for its throughput. Empty: that is left alone.')
  resourceId: string
}

@description('Name of the function app: 2 to 60 letters, digits and hyphens, unique in Azure.')
@minLength(2)
@maxLength(60)
param name string

@description('Name of the plan.')
param planName string

@description('Azure region.')
param location string

@description('Tags of all resources.')
param tags { *: string }

@description('Hosting plan: Flex Consumption, or Elastic Premium (EP1).')
@allowed([
  'flex'
  'premium'
])
param plan string

@description('Instances of the poll function that flex keeps warm.')
@minValue(0)
@maxValue(1)
param alwaysReady int

@description('Instances that flex may scale out to: 40 to 1000.')
@minValue(40)
@maxValue(1000)
param maximumInstanceCount int

@description('Memory of an instance of flex, in MB.')
@allowed([
  512
  2048
  4096
])
param instanceMemoryMB int

@description('Resource id of the subnet to send through. Empty: none.')
param subnetId string

@description('Resource id of the identity to run as.')
param identityId string

@description('Client id of that identity.')
param clientId string

@description('Address of the blobs of the host\'s storage account.')
param blobServiceUri string

@description('Address of the container of the packages.')
param packageContainerUrl string

@description('Connection string of Application Insights, which holds no secret.')
param insightsConnection string

@description('Connections of the processors.')
param cosmosConnections cosmosConnection[]

@description('Whether to spread the instances over availability zones.')
param zoneRedundant bool

@description('Whether its resource logs go to the workspace.')
param resourceLogs bool

@description('Resource id of the workspace.')
param workspaceId string

@description('Other app settings, by name.')
param settings { *: string }

@description('App settings that are secrets, by name. They win over the others.')
@secure()
param secretSettings { *: string }

var isFlex = plan == 'flex'
var packageUrl = isFlex ? '' : '${packageContainerUrl}/feedscale.zip'

var hostSettings = {
  // Only the blob service: with __accountName the host also tries a table, and logs a 403 (Azure/azure-functions-host#10995).
  AzureWebJobsStorage__blobServiceUri: blobServiceUri
  AzureWebJobsStorage__credential: 'managedidentity'
  AzureWebJobsStorage__clientId: clientId
  APPLICATIONINSIGHTS_CONNECTION_STRING: insightsConnection
  APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'ClientId=${clientId};Authorization=AAD'
  // FEEDSCALE_STATE is an address, so it uses the identity of the environment, set here.
  AZURE_CLIENT_ID: clientId
}

// Flex refuses these. Without account keys there is no file share for a zip deployment, so Premium
// runs the package from a URL.
var planSettings = isFlex
  ? {}
  : {
      FUNCTIONS_EXTENSION_VERSION: '~4'
      FUNCTIONS_WORKER_RUNTIME: 'custom'
      WEBSITE_RUN_FROM_PACKAGE: packageUrl
      WEBSITE_RUN_FROM_PACKAGE_BLOB_MI_RESOURCE_ID: identityId
    }

var settingsOfConnections = [
  for connection in cosmosConnections: union(
    {
      '${connection.name}__accountEndpoint': connection.endpoint
      '${connection.name}__credential': 'managedidentity'
      '${connection.name}__clientId': clientId
    },
    empty(connection.resourceId) ? {} : { '${connection.name}__resourceId': connection.resourceId }
  )
]

var cosmosSettings = reduce(settingsOfConnections, {}, (all, some) => union(all, some))
var allSettings = union(hostSettings, planSettings, cosmosSettings, settings, secretSettings)
var appSettings = map(items(allSettings), setting => {
  name: setting.key
  value: setting.value
})

resource serverFarm 'Microsoft.Web/serverfarms@2025-03-01' = {
  name: planName
  location: location
  tags: tags
  kind: isFlex ? 'functionapp' : 'elastic'
  sku: isFlex
    ? {
        name: 'FC1'
        tier: 'FlexConsumption'
      }
    : {
        name: 'EP1'
        tier: 'ElasticPremium'
        // Zone redundancy needs at least two instances.
        capacity: zoneRedundant ? 2 : 1
      }
  properties: isFlex
    ? {
        reserved: true
        zoneRedundant: zoneRedundant
      }
    : {
        reserved: true
        zoneRedundant: zoneRedundant
        maximumElasticWorkerCount: 2
      }
}

resource site 'Microsoft.Web/sites@2025-03-01' = {
  name: name
  location: location
  tags: union(tags, { 'azd-service-name': 'feedscale' })
  kind: 'functionapp,linux'
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityId}': {}
    }
  }
  properties: {
    serverFarmId: serverFarm.id
    reserved: true
    httpsOnly: true
    // This identity reads the key vault references of settings. The default is a system-assigned
    // identity, which the app does not have.
    keyVaultReferenceIdentity: identityId
    virtualNetworkSubnetId: empty(subnetId) ? null : subnetId
    outboundVnetRouting: isFlex || empty(subnetId)
      ? null
      : {
          allTraffic: true
        }
    functionAppConfig: isFlex
      ? {
          deployment: {
            storage: {
              type: 'blobContainer'
              value: packageContainerUrl
              authentication: {
                type: 'UserAssignedIdentity'
                userAssignedIdentityResourceId: identityId
              }
            }
          }
          runtime: {
            name: 'custom'
            version: '1.0'
          }
          scaleAndConcurrency: {
            maximumInstanceCount: maximumInstanceCount
            instanceMemoryMB: instanceMemoryMB
            alwaysReady: alwaysReady == 0
              ? []
              : [
                  {
                    name: 'function:poll'
                    instanceCount: alwaysReady
                  }
                ]
          }
        }
      : null
    // In newer regions Flex refuses ftpsState and linuxFxVersion, even as null.
    siteConfig: isFlex
      ? {
          minTlsVersion: '1.2'
          appSettings: appSettings
        }
      : {
          linuxFxVersion: ''
          ftpsState: 'Disabled'
          minTlsVersion: '1.2'
          appSettings: appSettings
        }
  }

  // No user name and password for deployments: az, azd and func sign in with Entra ID.
  resource ftp 'basicPublishingCredentialsPolicies' = {
    name: 'ftp'
    properties: {
      allow: false
    }
  }

  resource scm 'basicPublishingCredentialsPolicies' = {
    name: 'scm'
    properties: {
      allow: false
    }
  }
}

// Later versions are previews, too.
#disable-next-line use-recent-api-versions
resource logs 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (resourceLogs) {
  name: 'feedscale'
  scope: site
  properties: {
    workspaceId: workspaceId
    logs: [
      {
        categoryGroup: 'allLogs'
        enabled: true
      }
    ]
  }
}

@description('Name of the function app.')
output name string = site.name

@description('Host of the function app.')
output hostName string = site.properties.defaultHostName

@description('Where premium takes its package from; empty with flex.')
output packageUrl string = packageUrl
