// A sample for Container Apps: a processor whose replicas follow its signal queue. The scale rule
// counts messages in Service Bus with a managed identity, so it needs no key and no public endpoint
// of feedscale.
// Run: az deployment group create --resource-group RESOURCE_GROUP --template-file infra/containerapps/signalqueue.bicep --parameters ...
// with the names that infra/main.bicep output, after it was run with signalQueues=['orders-replicas'] and the processor has
// signalQueue: orders-replicas in the processors file.
//
// Only the scale rule can use the identity that counts. Grant the application's identity what it needs
// in Cosmos DB (output processorPrincipalId).
targetScope = 'resourceGroup'

@description('Azure region.')
param location string = resourceGroup().location

@description('Resource id of the Container Apps environment.')
param environmentId string

@description('Name of feedscale\'s Service Bus namespace (output serviceBusName), in this resource group.')
param serviceBusName string

@description('Name of the processor, as the processors file has it; the app gets it, too: 2 to 32 lower-case letters, digits and hyphens.')
@minLength(2)
@maxLength(32)
param processor string = 'orders'

@description('Its signalQueue.')
param signalQueue string = '${processor}-replicas'

@description('Image of the application that runs the processor.')
param processorImage string

@description('Most replicas: no fewer than the processor\'s maxReplicaCount.')
@minValue(1)
@maxValue(1000)
param maxReplicas int = 8

@description('Resource id of the Azure container registry that the image is in. Empty: it is public.')
param registryId string = ''

@description('Tags of all resources.')
param tags { *: string } = {}

var token = uniqueString(resourceGroup().id, serviceBusName)

resource processorIdentity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: 'id-${processor}-${token}'
  location: location
  tags: tags
}

resource ruleIdentity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: 'id-${processor}-rule-${token}'
  location: location
  tags: tags
}

module ruleRole '../modules/roles/queue.bicep' = {
  name: '${processor}-signal-queue-role'
  params: {
    namespaceName: serviceBusName
    queueName: signalQueue
    #disable-next-line what-if-short-circuiting
    principalId: ruleIdentity.properties.principalId
    principalType: 'ServicePrincipal'
    // Azure Service Bus Data Owner, only on this queue: reading the number of messages needs the right
    // to manage it.
    roles: ['090c5cfd-751d-490a-894a-3ce6f1109419']
  }
}

module pullRole '../modules/roles/registry.bicep' = if (!empty(registryId)) {
  name: '${processor}-registry-role'
  scope: resourceGroup(
    empty(registryId) ? subscription().subscriptionId : split(registryId, '/')[2],
    empty(registryId) ? resourceGroup().name : split(registryId, '/')[4]
  )
  params: {
    registryName: last(split(registryId, '/'))
    #disable-next-line what-if-short-circuiting
    principalIds: [processorIdentity.properties.principalId]
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
      '${ruleIdentity.id}': {}
    }
  }
  properties: {
    environmentId: environmentId
    configuration: {
      identitySettings: [
        {
          identity: ruleIdentity.id
          lifecycle: 'None'
        }
      ]
      registries: empty(registryId)
        ? []
        : [
            {
              server: pullRole!.outputs.loginServer
              identity: processorIdentity.id
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
        pollingInterval: 10
        // feedscale has already waited: it empties the queue only after its cooldownPeriod.
        cooldownPeriod: 30
        rules: [
          {
            name: 'replicas'
            custom: {
              type: 'azure-servicebus'
              identity: ruleIdentity.id
              metadata: {
                namespace: serviceBusName
                queueName: signalQueue
                messageCount: '1'
                activationMessageCount: '0'
              }
            }
          }
        ]
      }
    }
  }
  dependsOn: [
    ruleRole
  ]
}

@description('Resource id of the processor\'s app.')
output processorAppId string = processorApp.id

@description('Object id of the identity that the processor runs as, to be granted what it reads and writes.')
output processorPrincipalId string = processorIdentity.properties.principalId
