// A sample: on Container Apps, a processor that is scaled by what feedscale measures, and a consumer of scale events that wakes from zero.
// Run: az deployment group create --resource-group RESOURCE_GROUP --template-file infra/containerapps/main.bicep --parameters ...
// with the names that infra/main.bicep put out, after the function app was deployed. A processor needs only one of the two.
targetScope = 'resourceGroup'

@description('Azure region.')
param location string = resourceGroup().location

@description('Resource id of the Container Apps environment.')
param environmentId string

@description('Name of feedscale\'s function app (output functionAppName), in this resource group.')
param functionAppName string

@description('Name of its Service Bus namespace (output serviceBusName), in this resource group.')
param serviceBusName string

@description('Queue of the scale events (output queueName).')
param queueName string = 'scale-events'

@description('Name of the processor, as the processors file has it; the app gets it, too: 2 to 32 lower-case letters, digits and hyphens.')
@minLength(2)
@maxLength(32)
param processor string = 'orders'

@description('Image of the application that runs the processor.')
param processorImage string

@description('Lag that one replica is to carry, in pending transactions: the processor\'s changeFeedLagThreshold.')
@minValue(1)
param changeFeedLagThreshold int = 100

@description('Lag above which the processor wakes from zero: its activationChangeFeedLagThreshold.')
@minValue(0)
param activationChangeFeedLagThreshold int = 0

@description('Most replicas of the processor: its maxReplicaCount, and no more than it has partitions.')
@minValue(1)
@maxValue(1000)
param maxReplicas int = 8

@description('Image of the consumer, whose entry point is the feedscale executable, or your own.')
param consumerImage string

@description('Arguments of the consumer: what it does with an event.')
param consumerArguments string[] = ['consume', '--action', 'stdout']

@description('Events that wait for one replica of the consumer.')
@minValue(1)
param messageCount int = 5

@description('Tags of all resources.')
param tags object = {}

resource functionApp 'Microsoft.Web/sites@2025-03-01' existing = {
  name: functionAppName
}

resource serviceBus 'Microsoft.ServiceBus/namespaces@2024-01-01' existing = {
  name: serviceBusName

  resource queue 'queues' existing = {
    name: queueName
  }
}

resource processorApp 'Microsoft.App/containerApps@2025-07-01' = {
  name: processor
  location: location
  tags: tags
  properties: {
    environmentId: environmentId
    configuration: {
      secrets: [
        {
          // The key of this one function, which opens nothing else.
          name: 'function-key'
          value: listKeys(resourceId('Microsoft.Web/sites/functions', functionAppName, 'processors'), '2025-03-01').default
        }
      ]
    }
    template: {
      containers: [
        {
          name: processor
          image: processorImage
          resources: {
            cpu: json('0.5')
            memory: '1Gi'
          }
        }
      ]
      scale: {
        minReplicas: 0
        maxReplicas: maxReplicas
        pollingInterval: 30
        cooldownPeriod: 300
        rules: [
          {
            name: 'lag'
            custom: {
              type: 'metrics-api'
              metadata: {
                url: 'https://${functionApp.properties.defaultHostName}/api/processors/${processor}'
                valueLocation: 'metricValue'
                targetValue: string(changeFeedLagThreshold)
                activationTargetValue: string(activationChangeFeedLagThreshold)
                authMode: 'apiKey'
                method: 'header'
                keyParamName: 'x-functions-key'
              }
              auth: [
                {
                  secretRef: 'function-key'
                  triggerParameter: 'apiKey'
                }
              ]
            }
          }
        ]
      }
    }
  }
}

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: 'id-scale-consumer-${uniqueString(resourceGroup().id, functionAppName)}'
  location: location
  tags: tags
}

// Azure Service Bus Data Owner, of this queue only: to read how many messages wait counts as managing it.
var ownerRole = '090c5cfd-751d-490a-894a-3ce6f1109419'

resource owner 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(serviceBus::queue.id, identity.id, ownerRole)
  scope: serviceBus::queue
  properties: {
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', ownerRole)
    principalId: identity.properties.principalId
    principalType: 'ServicePrincipal'
  }
}

resource consumerApp 'Microsoft.App/containerApps@2025-07-01' = {
  name: 'scale-consumer'
  location: location
  tags: tags
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identity.id}': {}
    }
  }
  properties: {
    environmentId: environmentId
    template: {
      containers: [
        {
          name: 'scale-consumer'
          image: consumerImage
          args: consumerArguments
          resources: {
            cpu: json('0.25')
            memory: '0.5Gi'
          }
          env: [
            {
              name: 'SERVICEBUS__fullyQualifiedNamespace'
              value: split(replace(serviceBus.properties.serviceBusEndpoint, 'https://', ''), ':')[0]
            }
            {
              name: 'SERVICEBUS__credential'
              value: 'managedidentity'
            }
            {
              name: 'SERVICEBUS__clientId'
              value: identity.properties.clientId
            }
            {
              // For --action containerapp, which signs in with the environment's identity.
              name: 'AZURE_CLIENT_ID'
              value: identity.properties.clientId
            }
            {
              name: 'FEEDSCALE_EVENTS'
              value: 'servicebus:SERVICEBUS/${queueName}'
            }
          ]
        }
      ]
      scale: {
        minReplicas: 0
        maxReplicas: 1
        pollingInterval: 30
        cooldownPeriod: 300
        rules: [
          {
            name: 'scale-events'
            custom: {
              type: 'azure-servicebus'
              identity: identity.id
              metadata: {
                namespace: serviceBusName
                queueName: queueName
                messageCount: string(messageCount)
                activationMessageCount: '0'
              }
            }
          }
        ]
      }
    }
  }
  dependsOn: [
    owner
  ]
}

@description('Resource id of the processor\'s app.')
output processorAppId string = processorApp.id

@description('Resource id of the consumer\'s app.')
output consumerAppId string = consumerApp.id
