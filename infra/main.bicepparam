// A sample of the parameters of main.bicep: watch the processors of processors.yaml, which read one Cosmos DB account.
// Run: COSMOS_ACCOUNT_ID=ID az deployment sub create --location REGION --parameters infra/main.bicepparam
// Without that variable it does not compile. The names of what is made come from AZURE_ENV_NAME, which azd sets.
using 'main.bicep'

param resourceGroupName = 'rg-${readEnvironmentVariable('AZURE_ENV_NAME', 'feedscale')}'

param tags = {
  'azd-env-name': readEnvironmentVariable('AZURE_ENV_NAME', 'feedscale')
}

param processors = loadYamlContent('processors.yaml')

param cosmosAccounts = [
  {
    name: 'COSMOS'
    accountId: readEnvironmentVariable('COSMOS_ACCOUNT_ID')
    databases: ['shop']
  }
]

param plan = 'flex'
param network = 'public'

// A developer runs feedscale's commands on a machine of their own; a workflow does not.
param grantDeployer = empty(readEnvironmentVariable('GITHUB_ACTIONS', ''))
