// Application Insights over a Log Analytics workspace, both with Entra ID only; main.bicep runs it.

@description('Name of the workspace.')
param workspaceName string

@description('Name of the Application Insights component.')
param insightsName string

@description('Azure region.')
param location string

@description('Tags of all resources.')
param tags { *: string }

@description('How long logs are kept, in days: 30 to 730.')
@minValue(30)
@maxValue(730)
param retentionDays int

resource workspace 'Microsoft.OperationalInsights/workspaces@2026-03-01' = {
  name: workspaceName
  location: location
  tags: tags
  properties: {
    sku: {
      name: 'PerGB2018'
    }
    retentionInDays: retentionDays
    features: {
      disableLocalAuth: true
    }
  }
}

resource insights 'Microsoft.Insights/components@2020-02-02' = {
  name: insightsName
  location: location
  tags: tags
  kind: 'web'
  properties: {
    Application_Type: 'web'
    WorkspaceResourceId: workspace.id
    DisableLocalAuth: true
  }
}

@description('Resource id of the workspace.')
output workspaceId string = workspace.id

@description('Resource id of the Application Insights component.')
output insightsId string = insights.id

@description('Name of the component.')
output insightsName string = insights.name

@description('Where telemetry goes to. No secret: the component takes tokens only.')
output insightsConnection string = insights.properties.ConnectionString
