package config

import (
	"slices"
	"strings"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// foreignFields says what to write instead of fields of other files, FIELD being the field itself.
// They are in https://keda.sh/docs/latest/scalers/azure-cosmosdb/,
// https://github.com/kedacore/external-scaler-azure-cosmos-db and
// https://learn.microsoft.com/azure/azure-functions/functions-bindings-cosmosdb-v2-trigger.
var foreignFields = map[string][]struct{ names, instead string }{
	"KEDA": {
		{"pollingInterval", `FEEDSCALE_TIMER_SCHEDULE says when to poll all processors, and schedule or idleSchedule when to poll one, such as idleSchedule: "*/30 * * * * *"`},
		{"idleReplicaCount", "minReplicaCount always holds; for a processor that may sleep write minReplicaCount: 0"},
		{"initialCooldownPeriod", "cooldownPeriod counts from the last active poll, at the beginning too; leave it out"},
		{"scaleTargetRef", "write target: {deployment: NAME, namespace: NAMESPACE}"},
		{"triggers", "each trigger is an entry of processors, and feedscale import FILE makes them from a ScaledObject"},
		{"advanced horizontalPodAutoscalerConfig", "write its behavior as behavior of the processor"},
		{"restoreToOriginalReplicaCount", "a processor that leaves the file keeps the replicas it has; leave it out"},
		{"scalingModifiers", "there are no formulas: a group gets the highest count that any of its members asks for; keep a ScaledObject that asks feedscale (https://github.com/feedscale/feedscale/blob/main/docs/act.md) where a formula is needed"},
		{"authenticationRef", "connection names the setting that signs in (https://github.com/feedscale/feedscale/blob/main/docs/configure.md, Connections)"},
		{"podIdentity", "an identity signs in where the setting NAME__accountEndpoint is there without NAME__accountKey, NAME being that of connection"},
		{"connectionFromEnv leaseConnectionFromEnv", "write connection or leaseConnection: NAME, NAME being a setting of feedscale with the connection string"},
		{"endpoint leaseEndpoint", "write connection or leaseConnection: NAME, and put the endpoint into the setting NAME__accountEndpoint"},
		{"cosmosDBKey cosmosDBKeyFromEnv leaseCosmosDBKey leaseCosmosDBKeyFromEnv", "put the key into the setting NAME__accountKey, NAME being that of connection or leaseConnection"},
		{"tenantId clientId clientSecret", "put it into the setting NAME__FIELD, NAME being that of connection"},
		{"cloud activeDirectoryEndpoint", "the endpoint of the account says which cloud it is in; outside of the public one set AZURE_AUTHORITY_HOST to its authority, such as https://login.microsoftonline.us/"},
		{"cosmosDBResourceURL", "put it, with /.default after it, into the setting NAME__tokenScope, NAME being that of connection"},
		{"lagThreshold activationLagThreshold", "write changeFeedLagThreshold or activationChangeFeedLagThreshold, which count changes and not partitions"},
		{"maxActiveLeasesPerReplica", "write maxLeasesPerReplica, which counts all leases while changes are pending, not only those with lag"},
		{"enableHighAvailability", "write as minReplicaCount the number of leases divided by maxLeasesPerReplica"},
		{"metricType metricName useCachedMetrics scalerAddress", "it is about how KEDA asks a scaler; leave it out"},
	},
	"Azure Functions": {
		{"databaseName containerName leaseDatabaseName leaseContainerName", "write it with Id in place of Name, as in databaseId"},
		{"leaseContainerPrefix", "write processorName, with which the ids of the leases begin"},
		{"startFromBeginning startFromTime", "write startFrom, with beginning or the same time"},
		{"leaseExpirationInterval", "write leaseExpiration, as a duration such as 60s"},
		{"maxItemsPerInvocation", "write changeFeedLagThreshold: as many items per replica are what the target-based scaling of Functions aims at"},
		{"preferredLocations", "FEEDSCALE_REGION names the region to read in, for all processors"},
		{"feedPollDelay leaseRenewInterval leaseAcquireInterval", "it is the application's own; leave it out"},
		{"createLeaseContainerIfNotExists leasesContainerThroughput", "feedscale writes to no account, and waits for the application to make its leases; leave it out"},
		{"changeFeedMode", "each lease says itself in which mode it is read; leave it out"},
	},
}

// Instead returns what to write in place of a field of KEDA, or of the Cosmos DB trigger of Azure
// Functions, and which of the two has it; "" for any other field.
func Instead(field string) (of, text string) {
	for of, fields := range foreignFields {
		for _, f := range fields {
			if slices.Contains(strings.Fields(f.names), field) {
				return of, strings.ReplaceAll(f.instead, "FIELD", field)
			}
		}
	}
	return "", ""
}

// unknownField returns the sentence of a mistake about an unknown field.
func unknownField(name string, known []string) string {
	if of, instead := Instead(name); of != "" {
		return "is a field of " + of + "; " + instead
	}
	return unknown("field", name, known)
}

// foreignDocument says that a document is one of KEDA or Functions; "" for any other.
func foreignDocument(root *yamltree.Node) string {
	what := "a " + yamltree.QuoteName(root.Get("kind").Text())
	switch {
	case root.Get("processors").Present():
		return ""
	case root.Get("bindings").Present():
		what = "the function.json of an Azure Function"
	case !root.Get("kind").Present() || !root.Get("apiVersion").Present():
		return ""
	}
	return "this is " + what + "; allowed is a processors file, which feedscale import FILE makes from ScaledObjects and function.json"
}
