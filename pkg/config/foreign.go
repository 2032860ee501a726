package config

import "github.com/feedscale/feedscale/pkg/yamltree"

// foreignFields says what to write instead of fields of other files: those of KEDA's ScaledObjects and
// their Cosmos DB triggers
// (https://keda.sh/docs/latest/scalers/azure-cosmosdb/ and
// https://github.com/kedacore/external-scaler-azure-cosmos-db), and those of the Cosmos DB trigger
// of Azure Functions
// (https://learn.microsoft.com/azure/azure-functions/functions-bindings-cosmosdb-v2-trigger).
var foreignFields = map[string]struct{ of, instead string }{
	"pollingInterval":                  {keda, `FEEDSCALE_TIMER_SCHEDULE says when to poll all processors, and schedule or idleSchedule when to poll one, such as idleSchedule: "*/30 * * * * *"`},
	"idleReplicaCount":                 {keda, "minReplicaCount always holds; for a processor that may sleep write minReplicaCount: 0"},
	"initialCooldownPeriod":            {keda, "cooldownPeriod counts from the last active poll, at the beginning too; leave it out"},
	"scaleTargetRef":                   {keda, "write target: {deployment: NAME, namespace: NAMESPACE}"},
	"triggers":                         {keda, "each trigger is an entry of processors, and feedscale import FILE makes them from a ScaledObject"},
	"advanced":                         {keda, "write its behavior as behavior of the processor"},
	"horizontalPodAutoscalerConfig":    {keda, "write its behavior as behavior of the processor"},
	"restoreToOriginalReplicaCount":    {keda, "a processor that leaves the file keeps the replicas it has; leave it out"},
	"scalingModifiers":                 {keda, "there are no formulas: a group gets the highest count that any of its members asks for; keep a ScaledObject that asks feedscale (https://github.com/feedscale/feedscale/blob/main/docs/act.md) where a formula is needed"},
	"authenticationRef":                {keda, "connection names the setting that signs in (https://github.com/feedscale/feedscale/blob/main/docs/configure.md, Connections)"},
	"podIdentity":                      {keda, "an identity signs in where the setting NAME__accountEndpoint is there without NAME__accountKey, NAME being that of connection"},
	"connectionFromEnv":                {keda, "write connection: NAME, NAME being a setting of feedscale with the connection string"},
	"leaseConnectionFromEnv":           {keda, "write leaseConnection: NAME, NAME being a setting of feedscale with the connection string"},
	"endpoint":                         {keda, "write connection: NAME, and put the endpoint into the setting NAME__accountEndpoint"},
	"leaseEndpoint":                    {keda, "write leaseConnection: NAME, and put the endpoint into the setting NAME__accountEndpoint"},
	"cosmosDBKey":                      {keda, "put the key into the setting NAME__accountKey, NAME being that of connection"},
	"cosmosDBKeyFromEnv":               {keda, "put the key into the setting NAME__accountKey, NAME being that of connection"},
	"leaseCosmosDBKey":                 {keda, "put the key into the setting NAME__accountKey, NAME being that of leaseConnection"},
	"leaseCosmosDBKeyFromEnv":          {keda, "put the key into the setting NAME__accountKey, NAME being that of leaseConnection"},
	"tenantId":                         {keda, "put it into the setting NAME__tenantId, NAME being that of connection"},
	"clientId":                         {keda, "put it into the setting NAME__clientId, NAME being that of connection"},
	"clientSecret":                     {keda, "put it into the setting NAME__clientSecret, NAME being that of connection"},
	"cloud":                            {keda, "the endpoint of the account says which cloud it is in; outside of the public one set AZURE_AUTHORITY_HOST to its authority, such as https://login.microsoftonline.us/"},
	"cosmosDBResourceURL":              {keda, "put it, with /.default after it, into the setting NAME__tokenScope, NAME being that of connection"},
	"activeDirectoryEndpoint":          {keda, "put it into AZURE_AUTHORITY_HOST"},
	"lagThreshold":                     {keda, "write changeFeedLagThreshold, which counts changes and not partitions"},
	"activationLagThreshold":           {keda, "write activationChangeFeedLagThreshold, which counts changes and not partitions"},
	"maxActiveLeasesPerReplica":        {keda, "write maxLeasesPerReplica, which counts all leases while changes are pending, not only those with lag"},
	"enableHighAvailability":           {keda, "write as minReplicaCount the number of leases divided by maxLeasesPerReplica"},
	"metricType":                       {keda, "lag is shared out over the replicas, as with AverageValue; leave it out"},
	"metricName":                       {keda, "no metric is registered with KEDA; leave it out"},
	"useCachedMetrics":                 {keda, "each poll is one measurement, however many ask for it; leave it out"},
	"scalerAddress":                    {keda, "no other scaler is asked; leave it out"},
	"databaseName":                     {functions, "write databaseId"},
	"containerName":                    {functions, "write containerId"},
	"collectionName":                   {functions, "write containerId"},
	"connectionStringSetting":          {functions, "write connection, with the same name of a setting"},
	"leaseConnectionStringSetting":     {functions, "write leaseConnection, with the same name of a setting"},
	"leaseDatabaseName":                {functions, "write leaseDatabaseId"},
	"leaseContainerName":               {functions, "write leaseContainerId"},
	"leaseCollectionName":              {functions, "write leaseContainerId"},
	"leaseContainerPrefix":             {functions, "write processorName, with which the ids of the leases begin"},
	"leaseCollectionPrefix":            {functions, "write processorName, with which the ids of the leases begin"},
	"startFromBeginning":               {functions, "write startFrom: beginning"},
	"startFromTime":                    {functions, "write startFrom, with the same time"},
	"leaseExpirationInterval":          {functions, "write leaseExpiration, as a duration such as 60s"},
	"maxItemsPerInvocation":            {functions, "write changeFeedLagThreshold: as many items per replica are what the target-based scaling of Functions aims at"},
	"preferredLocations":               {functions, "FEEDSCALE_REGION names the region to read in, for all processors"},
	"feedPollDelay":                    {functions, "it is the application's own, and feedscale polls by schedule; leave it out"},
	"leaseRenewInterval":               {functions, "it is the application's own; leave it out"},
	"leaseAcquireInterval":             {functions, "it is the application's own; leave it out"},
	"checkpointInterval":               {functions, "it is the application's own; leave it out"},
	"checkpointDocumentCount":          {functions, "it is the application's own; leave it out"},
	"createLeaseContainerIfNotExists":  {functions, "feedscale writes to no account, and waits for the application to make its leases; leave it out"},
	"createLeaseCollectionIfNotExists": {functions, "feedscale writes to no account, and waits for the application to make its leases; leave it out"},
	"leasesContainerThroughput":        {functions, "feedscale writes to no account; leave it out"},
	"leasesCollectionThroughput":       {functions, "feedscale writes to no account; leave it out"},
	"useMultipleWriteLocations":        {functions, "it is the application's own; leave it out"},
	"useDefaultJsonSerialization":      {functions, "it is the application's own; leave it out"},
	"changeFeedMode":                   {functions, "each lease says itself in which mode it is read; leave it out"},
}

const (
	keda      = "KEDA"
	functions = "Azure Functions"
)

// Instead returns what to write in place of a field of KEDA, or of the Cosmos DB trigger of Azure Functions;
// ok is false for any other field.
func Instead(field string) (text string, ok bool) {
	f, ok := foreignFields[field]
	return f.instead, ok
}

// unknownField returns the sentence of a mistake about an unknown field.
func unknownField(name string, known []string) string {
	if f, ok := foreignFields[name]; ok {
		return "is a field of " + f.of + "; " + f.instead
	}
	return unknown("field", name, known)
}

// foreignDocument returns the sentence of a mistake about a file of another kind; "" if it may be a
// processors file.
func foreignDocument(root *yamltree.Node) string {
	kind := root.Get("kind").Text()
	switch {
	case root.Get("processors").Present():
		return ""
	case kind != "" && root.Get("apiVersion").Present():
		switch kind {
		case "ScaledObject", "TriggerAuthentication", "ClusterTriggerAuthentication", "List", "ScaledObjectList":
			return "this is a " + kind + ": run feedscale import FILE, which makes a processors file from it"
		}
		return "this is a Kubernetes object, " + yamltree.QuoteName(kind) + "; allowed is a processors file, as in " + minimalDocument
	case root.Get("bindings").Present():
		return "this is the function.json of an Azure Function: run feedscale import FILE, which makes a processors file from it"
	}
	return ""
}
