// Alerts on what feedscale logs and on dead-lettered messages; main.bicep runs it.

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

@description('Queues and topics whose dead-letter queues are to stay empty.')
param entityNames string[]

@description('No completed poll for so long raises an alert: ISO 8601.')
param silentAfter string

@description('Address of the dashboard, to which each alert leads.')
param page string

@description('Resource ids of the action groups to call.')
param actionGroupIds string[]

@description('A processor whose oldest pending change is older than this raises an alert: seconds.')
@minValue(1)
param behindAfterSeconds int

@description('A processor that is not polled for so long, while others are, raises an alert: minutes.')
@minValue(10)
param unpolledAfterMinutes int

// The handler's log is JSON lines, one trace each. The host sets the severity of a trace by its
// stream and words, so the rules read the line itself. The host records only failed invocations as
// requests (host.json). docs/monitor.md has the queries.
// All but the first need FEEDSCALE_LOG_LEVEL info, and those that read samples FEEDSCALE_SAMPLES of 5 minutes or less: the defaults.
var polls = [
  {
    name: 'poll-failing'
    runbook: 'troubleshooting.md#by-message'
    description: 'A poll failed, or an error was logged: the state cannot be written, or an event cannot be published. The log says which.'
    severity: 1
    window: 'PT5M'
    autoMitigate: true
    operator: 'GreaterThan'
    threshold: 0
    query: loadTextContent('../kql/failing.kql')
    dimensions: []
  }
  {
    name: 'poll-silent'
    runbook: 'troubleshooting.md#at-the-start'
    description: 'No poll was completed for ${silentAfter}: the timer does not fire, or the process ends at its start. Read the host\'s log.'
    severity: 1
    window: silentAfter
    autoMitigate: true
    operator: 'LessThan'
    threshold: 1
    query: loadTextContent('../kql/silent.kql')
    dimensions: []
  }
]

// Rules on the samples of a processor. A window of 15 minutes has at least two samples, unless the
// processor is polled less often.
var states = [
  {
    name: 'processor-behind'
    runbook: 'status.md#lagging'
    window: 'PT15M'
    description: 'The oldest change that a processor has not processed is older than ${behindAfterSeconds} s.'
    query: replace(loadTextContent('../kql/behind.kql'), '> 600', '> ${behindAfterSeconds}')
  }
  {
    name: 'processor-unknown'
    runbook: 'status.md#unknown'
    window: 'PT15M'
    description: 'Nothing, or not everything, of a processor could be measured for 15 minutes. Its error is in the log and in the API.'
    query: loadTextContent('../kql/unknown.kql')
  }
  {
    name: 'processor-unpolled'
    runbook: 'status.md#stale'
    window: 'P1D' // an alert resolves itself once the last sample has left the window
    description: 'Polls are completed, but for ${unpolledAfterMinutes} minutes none of this processor. Read the log for its name, and whether its account answers.'
    query: replace(loadTextContent('../kql/unpolled.kql'), '- 15m', '- ${unpolledAfterMinutes}m')
  }
]

// Rules on the conditions of partitions. A line is logged when more partitions of a processor are in a
// condition than before. No line says that they recovered. docs/lag.md says what to do about each.
var conditions = [
  {
    name: 'processor-stalled'
    runbook: 'status.md#stalled'
    message: 'a processor is stalled'
    description: 'A processor has changes to read, but makes no checkpoint: kind hung is a handler that does not return, flapping one that throws.'
    severity: 2
  }
  {
    name: 'changes-expiring'
    runbook: 'status.md#expiring'
    message: 'changes of a processor are about to expire'
    description: 'Changes leave the retention of their container before they are read: they will be lost. See that the processor runs.'
    severity: 1
  }
  {
    name: 'positions-ahead'
    runbook: 'status.md#ahead'
    message: 'positions of a processor are ahead of the feed'
    description: 'Leases come from another account, region or container: changes up to their positions are skipped. See docs/status.md.'
    severity: 1
  }
  {
    name: 'keys-uncovered'
    runbook: 'status.md#uncovered'
    message: 'keys of a processor are uncovered'
    description: 'No lease covers some keys, so that no replica reads their changes. docs/status.md says how to create the lease again.'
    severity: 1
  }
  {
    name: 'partitions-unclaimed'
    runbook: 'status.md#unclaimed'
    message: 'partitions of a processor are unclaimed'
    description: 'Changes are pending, and no replica takes the lease. See that replicas start, and may write to the lease container.'
    severity: 2
  }
  {
    name: 'leases-left-over'
    runbook: 'status.md#leftover'
    message: 'leases of a processor are left over'
    description: 'Leases that others have replaced were not deleted. They are not counted; delete them while no replica runs.'
    severity: 3
  }
  {
    name: 'position-rewound'
    runbook: 'status.md#rewound'
    message: 'a position of a processor went backwards'
    description: 'A lease was restored, reset or deleted: changes are processed again.'
    severity: 3
  }
]

var stateRules = map(states, rule => {
  name: rule.name
  runbook: rule.runbook
  description: rule.description
  severity: 2
  window: rule.window
  autoMitigate: true
  operator: 'GreaterThan'
  threshold: 0
  query: rule.query
  dimensions: map(['processor'], dimension => {
    name: dimension
    operator: 'Include'
    values: ['*']
  })
})

var conditionRules = map(conditions, condition => {
  name: condition.name
  runbook: condition.runbook
  description: condition.description
  severity: condition.severity
  window: 'PT5M'
  autoMitigate: false
  operator: 'GreaterThan'
  threshold: 0
  query: replace(loadTextContent('../kql/condition.kql'), 'a processor is stalled', condition.message)
  dimensions: map(['processor', 'condition'], dimension => {
    name: dimension
    operator: 'Include'
    values: ['*']
  })
})

resource logAlert 'Microsoft.Insights/scheduledQueryRules@2026-03-01' = [
  for rule in concat(polls, stateRules, conditionRules): {
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
        customProperties: {
          runbook: 'https://github.com/feedscale/feedscale/blob/main/docs/${rule.runbook}'
          page: page
        }
      }
    }
  }
]

resource deadLetters 'Microsoft.Insights/metricAlerts@2026-01-01' = {
  name: 'alert-dead-letters-${name}'
  location: 'global'
  tags: tags
  properties: {
    description: 'A dead-letter queue holds messages: their receiver gave up on them. Read their reason there.'
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
              values: entityNames
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
