// A sample for Container Apps: a processor that follows feedscale's decisions, and a consumer of
// scale events that starts from zero.
// Run: az deployment group create --resource-group RESOURCE_GROUP --template-file infra/containerapps/main.bicep --parameters ...
// with the names that infra/main.bicep output, after the function app was deployed. A processor needs only one of the two.
//
// Each app has its own identity. The processor's may only pull its image: grant it what the
// application needs in Cosmos DB (output processorPrincipalId). The consumer's may only receive events.
targetScope = 'resourceGroup'

@description('Azure region.')
param location string = resourceGroup().location

@description('Resource id of the Container Apps environment.')
param environmentId string

@description('Name of feedscale\'s function app (output functionAppName), in this resource group.')
param functionAppName string

@description('Name of its Service Bus namespace (output serviceBusName), in this resource group.')
param serviceBusName string

@description('Queue of the scale events (output queueName). Unused with a subscription.')
param queueName string = 'scale-events'

@description('The consumer\'s subscription, where events go to a topic: a name out of consumers. Empty: they go to the queue.')
param subscriptionName string = ''

@description('Topic of the scale events (output topicName). Unused without a subscription.')
param topicName string = 'scale-decisions'

@description('Name of the processor, as the processors file has it; the app gets it, too: 2 to 32 lower-case letters, digits and hyphens.')
@minLength(2)
@maxLength(32)
param processor string = 'orders'

@description('Image of the application that runs the processor.')
param processorImage string

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

@description('Resource id of the Azure container registry that the images are in. Empty: they are public.')
param registryId string = ''

@description('Tags of all resources.')
param tags { *: string } = {}

var token = uniqueString(resourceGroup().id, functionAppName)
var receiverRole = '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0' // Azure Service Bus Data Receiver
var ownerRole = '090c5cfd-751d-490a-894a-3ce6f1109419' // Azure Service Bus Data Owner

resource functionApp 'Microsoft.Web/sites@2025-03-01' existing = {
  name: functionAppName
}

resource serviceBus 'Microsoft.ServiceBus/namespaces@2026-01-01' existing = {
  name: serviceBusName
}

resource processorIdentity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: 'id-${processor}-${token}'
  location: location
  tags: tags
}

resource consumerIdentity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: 'id-scale-consumer-${token}'
  location: location
  tags: tags
}

// The scale rule counts messages with this identity, which needs the right to manage the queue or
// subscription. The application cannot sign in with it.
resource consumerRuleIdentity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: 'id-scale-consumer-rule-${token}'
  location: location
  tags: tags
}

// Modules, since the names of role assignments contain the object id. An identity that is deleted and
// created again has a new one, and Azure refuses to change the principal of an assignment.
module queueRole '../modules/roles/queue.bicep' = if (empty(subscriptionName)) {
  name: 'scale-consumer-queue-role'
  params: {
    namespaceName: serviceBusName
    queueName: queueName
    #disable-next-line what-if-short-circuiting
    principalId: consumerIdentity.properties.principalId
    principalType: 'ServicePrincipal'
    roles: [receiverRole]
  }
}

module queueRuleRole '../modules/roles/queue.bicep' = if (empty(subscriptionName)) {
  name: 'scale-consumer-queue-rule-role'
  params: {
    namespaceName: serviceBusName
    queueName: queueName
    #disable-next-line what-if-short-circuiting
    principalId: consumerRuleIdentity.properties.principalId
    principalType: 'ServicePrincipal'
    roles: [ownerRole]
  }
}

module subscriptionRole '../modules/roles/subscription.bicep' = if (!empty(subscriptionName)) {
  name: 'scale-consumer-subscription-role'
  params: {
    namespaceName: serviceBusName
    topicName: topicName
    subscriptionName: subscriptionName
    #disable-next-line what-if-short-circuiting
    principalId: consumerIdentity.properties.principalId
    roles: [receiverRole]
  }
}

module subscriptionRuleRole '../modules/roles/subscription.bicep' = if (!empty(subscriptionName)) {
  name: 'scale-consumer-subscription-rule-role'
  params: {
    namespaceName: serviceBusName
    topicName: topicName
    subscriptionName: subscriptionName
    #disable-next-line what-if-short-circuiting
    principalId: consumerRuleIdentity.properties.principalId
    roles: [ownerRole]
  }
}

module pullRole '../modules/roles/registry.bicep' = if (!empty(registryId)) {
  name: 'scale-consumer-registry-role'
  scope: resourceGroup(
    empty(registryId) ? subscription().subscriptionId : split(registryId, '/')[2],
    empty(registryId) ? resourceGroup().name : split(registryId, '/')[4]
  )
  params: {
    registryName: last(split(registryId, '/'))
    #disable-next-line what-if-short-circuiting
    principalIds: [processorIdentity.properties.principalId, consumerIdentity.properties.principalId]
  }
}

resource processorApp 'Microsoft.App/containerApps@2026-07-01' = {
  name: processor
  location: location
  tags: tags
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${processorIdentity.id}': {}
    }
  }
  properties: {
    environmentId: environmentId
    configuration: {
      registries: empty(registryId)
        ? []
        : [
            {
              server: pullRole!.outputs.loginServer
              identity: processorIdentity.id
            }
          ]
      secrets: [
        {
          // The key of this function, which is valid for no other.
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
          env: [
            {
              // The identity with which the application signs in, for example to Cosmos DB.
              name: 'AZURE_CLIENT_ID'
              value: processorIdentity.properties.clientId
            }
          ]
        }
      ]
      scale: {
        minReplicas: 0
        maxReplicas: maxReplicas
        pollingInterval: 10 // the answer comes from the state, and costs no request units
        cooldownPeriod: 10 // feedscale's own has passed where it asks for 0
        rules: [
          {
            name: 'lag'
            custom: {
              type: 'metrics-api'
              metadata: {
                url: 'https://${functionApp.properties.defaultHostName}/api/processors/${processor}'
                valueLocation: 'desiredReplicas'
                targetValue: '1'
                activationTargetValue: '0'
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

resource consumerApp 'Microsoft.App/containerApps@2026-07-01' = {
  name: 'scale-consumer'
  location: location
  tags: tags
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${consumerIdentity.id}': {}
      '${consumerRuleIdentity.id}': {}
    }
  }
  properties: {
    environmentId: environmentId
    configuration: {
      identitySettings: [
        {
          identity: consumerRuleIdentity.id
          lifecycle: 'None'
        }
      ]
      registries: empty(registryId)
        ? []
        : [
            {
              server: pullRole!.outputs.loginServer
              identity: consumerIdentity.id
            }
          ]
    }
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
              value: consumerIdentity.properties.clientId
            }
            {
              // For --action containerapp, which signs in with the environment's identity.
              name: 'AZURE_CLIENT_ID'
              value: consumerIdentity.properties.clientId
            }
            {
              name: 'FEEDSCALE_EVENTS'
              value: 'servicebus:SERVICEBUS/${empty(subscriptionName) ? queueName : '${topicName}/Subscriptions/${subscriptionName}'}'
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
              identity: consumerRuleIdentity.id
              metadata: union(
                {
                  namespace: serviceBusName
                  messageCount: string(messageCount)
                  activationMessageCount: '0'
                },
                empty(subscriptionName)
                  ? {
                      queueName: queueName
                    }
                  : {
                      topicName: topicName
                      subscriptionName: subscriptionName
                    }
              )
            }
          }
        ]
      }
    }
  }
  dependsOn: [
    queueRole
    queueRuleRole
    subscriptionRole
    subscriptionRuleRole
  ]
}

@description('Resource id of the processor\'s app.')
output processorAppId string = processorApp.id

@description('Resource id of the consumer\'s app.')
output consumerAppId string = consumerApp.id

@description('Object id of the identity that the processor runs as, to be granted what it reads and writes.')
output processorPrincipalId string = processorIdentity.properties.principalId

@description('Object id of the identity that the consumer runs as, to be granted what its action does.')
output consumerPrincipalId string = consumerIdentity.properties.principalId
