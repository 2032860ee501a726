package config

import (
	"slices"
	"strings"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// foreignFields says what to write instead of fields of other files: those of KEDA's ScaledObjects and
// their Cosmos DB triggers
// (https://keda.sh/docs/latest/scalers/azure-cosmosdb/ and
// https://github.com/kedacore/external-scaler-azure-cosmos-db), and those of the Cosmos DB trigger
// of Azure Functions
// (https://learn.microsoft.com/azure/azure-functions/functions-bindings-cosmosdb-v2-trigger).
var foreignFields = []struct{ of, names, instead string }{
	{keda, "pollingInterval", `FEEDSCALE_TIMER_SCHEDULE says when to poll all processors, and schedule or idleSchedule when to poll one, such as idleSchedule: "*/30 * * * * *"`},
	{keda, "idleReplicaCount", "minReplicaCount always holds; for a processor that may sleep write minReplicaCount: 0"},
	{keda, "initialCooldownPeriod", "cooldownPeriod counts from the last active poll, at the beginning too; leave it out"},
	{keda, "scaleTargetRef", "write target: {deployment: NAME, namespace: NAMESPACE}"},
	{keda, "triggers", "each trigger is an entry of processors, and feedscale import FILE makes them from a ScaledObject"},
	{keda, "advanced horizontalPodAutoscalerConfig", "write its behavior as behavior of the processor"},
	{keda, "restoreToOriginalReplicaCount", "a processor that leaves the file keeps the replicas it has; leave it out"},
	{keda, "scalingModifiers", "there are no formulas: a group gets the highest count that any of its members asks for; keep a ScaledObject that asks feedscale (https://github.com/feedscale/feedscale/blob/main/docs/act.md) where a formula is needed"},
	{keda, "authenticationRef", "connection names the setting that signs in (https://github.com/feedscale/feedscale/blob/main/docs/configure.md, Connections)"},
	{keda, "podIdentity", "an identity signs in where the setting NAME__accountEndpoint is there without NAME__accountKey, NAME being that of connection"},
	{keda, "connectionFromEnv", "write connection: NAME, NAME being a setting of feedscale with the connection string"},
	{keda, "leaseConnectionFromEnv", "write leaseConnection: NAME, NAME being a setting of feedscale with the connection string"},
	{keda, "endpoint", "write connection: NAME, and put the endpoint into the setting NAME__accountEndpoint"},
	{keda, "leaseEndpoint", "write leaseConnection: NAME, and put the endpoint into the setting NAME__accountEndpoint"},
	{keda, "cosmosDBKey cosmosDBKeyFromEnv", "put the key into the setting NAME__accountKey, NAME being that of connection"},
	{keda, "leaseCosmosDBKey leaseCosmosDBKeyFromEnv", "put the key into the setting NAME__accountKey, NAME being that of leaseConnection"},
	{keda, "tenantId", "put it into the setting NAME__tenantId, NAME being that of connection"},
	{keda, "clientId", "put it into the setting NAME__clientId, NAME being that of connection"},
	{keda, "clientSecret", "put it into the setting NAME__clientSecret, NAME being that of connection"},
	{keda, "cloud", "the endpoint of the account says which cloud it is in; outside of the public one set AZURE_AUTHORITY_HOST to its authority, such as https://login.microsoftonline.us/"},
	{keda, "cosmosDBResourceURL", "put it, with /.default after it, into the setting NAME__tokenScope, NAME being that of connection"},
	{keda, "activeDirectoryEndpoint", "put it into AZURE_AUTHORITY_HOST"},
	{keda, "lagThreshold", "write changeFeedLagThreshold, which counts changes and not partitions"},
	{keda, "activationLagThreshold", "write activationChangeFeedLagThreshold, which counts changes and not partitions"},
	{keda, "maxActiveLeasesPerReplica", "write maxLeasesPerReplica, which counts all leases while changes are pending, not only those with lag"},
	{keda, "enableHighAvailability", "write as minReplicaCount the number of leases divided by maxLeasesPerReplica"},
	{keda, "metricType", "lag is shared out over the replicas, as with AverageValue; leave it out"},
	{keda, "metricName", "no metric is registered with KEDA; leave it out"},
	{keda, "useCachedMetrics", "each poll is one measurement, however many ask for it; leave it out"},
	{keda, "scalerAddress", "no other scaler is asked; leave it out"},
	{functions, "databaseName", "write databaseId"},
	{functions, "containerName collectionName", "write containerId"},
	{functions, "connectionStringSetting", "write connection, with the same name of a setting"},
	{functions, "leaseConnectionStringSetting", "write leaseConnection, with the same name of a setting"},
	{functions, "leaseDatabaseName", "write leaseDatabaseId"},
	{functions, "leaseContainerName leaseCollectionName", "write leaseContainerId"},
	{functions, "leaseContainerPrefix leaseCollectionPrefix", "write processorName, with which the ids of the leases begin"},
	{functions, "startFromBeginning", "write startFrom: beginning"},
	{functions, "startFromTime", "write startFrom, with the same time"},
	{functions, "leaseExpirationInterval", "write leaseExpiration, as a duration such as 60s"},
	{functions, "maxItemsPerInvocation", "write changeFeedLagThreshold: as many items per replica are what the target-based scaling of Functions aims at"},
	{functions, "preferredLocations", "FEEDSCALE_REGION names the region to read in, for all processors"},
	{functions, "feedPollDelay", "it is the application's own, and feedscale polls by schedule; leave it out"},
	{functions, "leaseRenewInterval leaseAcquireInterval checkpointInterval checkpointDocumentCount useMultipleWriteLocations useDefaultJsonSerialization", "it is the application's own; leave it out"},
	{functions, "createLeaseContainerIfNotExists createLeaseCollectionIfNotExists", "feedscale writes to no account, and waits for the application to make its leases; leave it out"},
	{functions, "leasesContainerThroughput leasesCollectionThroughput", "feedscale writes to no account; leave it out"},
	{functions, "changeFeedMode", "each lease says itself in which mode it is read; leave it out"},
}

const (
	keda      = "KEDA"
	functions = "Azure Functions"
)

// Instead returns what to write in place of a field of KEDA, or of the Cosmos DB trigger of Azure Functions;
// ok is false for any other field.
func Instead(field string) (text string, ok bool) {
	_, text = foreign(field)
	return text, text != ""
}

func foreign(field string) (of, instead string) {
	for _, f := range foreignFields {
		if slices.Contains(strings.Fields(f.names), field) {
			return f.of, f.instead
		}
	}
	return "", ""
}

// unknownField returns the sentence of a mistake about an unknown field.
func unknownField(name string, known []string) string {
	if of, instead := foreign(name); of != "" {
		return "is a field of " + of + "; " + instead
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
