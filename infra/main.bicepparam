// A sample of the parameters of main.bicep: watch the processors of processors.yaml, which read one Cosmos DB account.
// Run: COSMOS_ACCOUNT_ID=ID az deployment group create --resource-group RESOURCE_GROUP --parameters infra/main.bicepparam
using 'main.bicep'

param location = readEnvironmentVariable('AZURE_LOCATION', 'westeurope')

param tags = {
  'azd-env-name': readEnvironmentVariable('AZURE_ENV_NAME', 'feedscale')
}

param processors = loadYamlContent('processors.yaml')

param cosmosAccounts = [
  {
    name: 'COSMOS'
    accountId: readEnvironmentVariable(
      'COSMOS_ACCOUNT_ID',
      '/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/shop/providers/Microsoft.DocumentDB/databaseAccounts/shop'
    )
    databases: ['shop']
  }
]

param plan = 'flex'
param network = 'public'
