// Alerts on what feedscale logs and on dead-lettered events; main.bicep runs it.

@description('Ending of the names of the alerts.')
param name string

@description('Azure region.')
param location string

@description('Tags of all resources.')
param tags { *: string }

@description('Resource id of the Application Insights component.')
param insightsId string

@description('Resource id of the Service Bus namespace.')
param namespaceId string

@description('Queue of the scale events.')
param queueName string

@description('No completed poll for so long raises an alert: ISO 8601.')
param silentAfter string

@description('Resource ids of the action groups to call.')
param actionGroupIds string[]

// The handler's log is JSON lines, one trace each. A trace has the severity that the host gives it by the stream and the words it came in, so
// that the rules read the line itself. The host records only invocations that failed as requests (host.json).
var rules = [
  {
    name: 'poll-failing'
    description: 'A poll failed, or an error was logged: the state cannot be written, or an event cannot be published. The log says which.'
    severity: 1
    window: 'PT5M'
    autoMitigate: true
    operator: 'GreaterThan'
    threshold: 0
    query: '''
union
  (requests | where operation_Name == 'poll' and success == false | project timestamp),
  (traces | where message contains '"level":"ERROR"' | project timestamp)
'''
    dimensions: []
  }
  {
    // Needs FEEDSCALE_LOG_LEVEL info, the default.
    name: 'poll-silent'
    description: 'No poll was completed for ${silentAfter}: the timer does not fire, or the process ends at its start. Read the host\'s log.'
    severity: 1
    window: silentAfter
    autoMitigate: true
    operator: 'LessThan'
    threshold: 1
    query: '''
traces
| where message contains '"msg":"tick"'
'''
    dimensions: []
  }
  {
    // One line for each processor that becomes stalled, so there is nothing to tell that it has recovered.
    name: 'processor-stalled'
    description: 'A processor has changes to read and owners, but makes no checkpoint. Look at the application that runs it.'
    severity: 2
    window: 'PT5M'
    autoMitigate: false
    operator: 'GreaterThan'
    threshold: 0
    query: '''
traces
| where message contains '"msg":"a processor is stalled"'
| extend processor = tostring(parse_json(message).processor)
'''
    dimensions: [
      {
        name: 'processor'
        operator: 'Include'
        values: ['*']
      }
    ]
  }
]

resource logAlert 'Microsoft.Insights/scheduledQueryRules@2026-03-01' = [
  for rule in rules: {
    name: 'alert-${rule.name}-${name}'
    location: location
    tags: tags
    kind: 'LogAlert'
    properties: {
      displayName: 'feedscale: ${rule.name}'
      description: rule.description
      enabled: true
      severity: rule.severity
      scopes: [insightsId]
      evaluationFrequency: 'PT5M'
      windowSize: rule.window
      autoMitigate: rule.autoMitigate
      criteria: {
        allOf: [
          {
            query: rule.query
            timeAggregation: 'Count'
            operator: rule.operator
            threshold: rule.threshold
            dimensions: rule.dimensions
            failingPeriods: {
              numberOfEvaluationPeriods: 1
              minFailingPeriodsToAlert: 1
            }
          }
        ]
      }
      actions: {
        actionGroups: actionGroupIds
      }
    }
  }
]

resource deadLetters 'Microsoft.Insights/metricAlerts@2026-01-01' = {
  name: 'alert-dead-letters-${name}'
  location: 'global'
  tags: tags
  properties: {
    description: 'Events are in the dead-letter queue: nobody consumed them in time, or the consumer gave up. Read their reason there.'
    enabled: true
    severity: 2
    scopes: [namespaceId]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT15M'
    autoMitigate: true
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
      allOf: [
        {
          criterionType: 'StaticThresholdCriterion'
          name: 'dead-letters'
          metricNamespace: 'Microsoft.ServiceBus/namespaces'
          metricName: 'DeadletteredMessages'
          dimensions: [
            {
              name: 'EntityName'
              operator: 'Include'
              values: [queueName]
            }
          ]
          timeAggregation: 'Maximum'
          operator: 'GreaterThan'
          threshold: 0
        }
      ]
    }
    actions: [
      for id in actionGroupIds: {
        actionGroupId: id
      }
    ]
  }
}
