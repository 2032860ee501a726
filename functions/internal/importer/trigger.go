package importer

import (
	"fmt"
	"strings"

	"github.com/feedscale/feedscale/pkg/yamltree"
)

// trigger is a trigger for Cosmos DB: KEDA's own
// (https://github.com/kedacore/keda, pkg/scalers/azure_cosmosdb_scaler.go), or the community's
// external scaler (https://github.com/kedacore/external-scaler-azure-cosmos-db,
// src/Scaler/Services/ScalerMetadata.cs).
type trigger struct {
	*yamltree.Node
	external       bool
	metadata       *yamltree.Node
	authentication authentication
}

func isExternal(kind string) bool { return kind == "external" || kind == "external-push" }

// processor makes the entry of a trigger, without the fields of the ScaledObject.
func (k *keda) processor(t trigger, group string) *entry {
	e, m := &entry{at: t.Node}, t.metadata
	e.setText("group", group, "", t.Node)
	k.rest(m.Fields, "KEDA's scaler for Cosmos DB does not read it, or it is for the way to that; nothing is written for it",
		"databaseId", "containerId", "leaseDatabaseId", "leaseContainerId", "processorName",
		"connection", "connectionFromEnv", "leaseConnection", "leaseConnectionFromEnv",
		"endpoint", "leaseEndpoint", "cosmosDBKey", "cosmosDBKeyFromEnv", "leaseCosmosDBKey", "leaseCosmosDBKeyFromEnv",
		"changeFeedLagThreshold", "activationChangeFeedLagThreshold", "maxActiveLeasesPerReplica", "enableHighAvailability",
		"tenantId", "tenantIdFromEnv", "clientId", "clientIdFromEnv", "clientSecret", "clientSecretFromEnv")
	k.rest(t.Fields, "nothing is written for it", "type", "name", "metadata", "authenticationRef", "useCachedMetrics")
	connection, at := k.connection(t, "connection", "endpoint", "cosmosDBKey")
	e.setText("connection", connection, "", at)
	lease, at := k.connection(t, "leaseConnection", "leaseEndpoint", "leaseCosmosDBKey")
	e.setText("leaseConnection", lease, connection, at)
	for _, f := range []struct{ name, implied string }{
		{"databaseId", ""}, {"containerId", ""}, {"leaseDatabaseId", m.Get("databaseId").Text()}, {"leaseContainerId", "leases"}, {"processorName", ""},
	} {
		e.setText(f.name, m.Get(f.name).Text(), f.implied, m.Get(f.name))
	}
	if v := m.Get("processorName"); v.Text() == "" {
		k.remark(v, "is missing, and KEDA counts nothing without it; the entry is for leases without a processor name, as Functions triggers write them")
	}
	k.sizing(e, t)
	return e
}

// sizing carries over the fields that size a workload.
func (k *keda) sizing(e *entry, t trigger) {
	m := t.metadata
	available := isTrue(m.Get("enableHighAvailability"))
	if t.external || !available {
		e.set("limitToPartitionsWithLag", true, t.Node) // KEDA caps by the leases with lag
	}
	if t.external {
		e.set("changeFeedLagThreshold", 1, t.Node) // one replica for each of them
		return
	}
	e.fields = append(e.fields, scalars(m, "changeFeedLagThreshold", "activationChangeFeedLagThreshold")...)
	if available {
		k.remark(m.Get("enableHighAvailability"), "no count is held for leases that are caught up; %s", instead("enableHighAvailability"))
	}
	if v := m.Get("maxActiveLeasesPerReplica"); v.Present() {
		e.set("maxLeasesPerReplica", plain(v.Text()), v)
		k.remark(v, "is carried over as maxLeasesPerReplica, which counts all leases, and only while changes are pending")
	}
}

func isTrue(v *yamltree.Node) bool { return strings.EqualFold(v.Text(), "true") }

// every is the schedule of an interval in seconds; "" if NCRONTAB has none below an hour.
func every(seconds int) string {
	switch minutes := seconds / 60; {
	case seconds > 0 && seconds < 60 && 60%seconds == 0:
		return fmt.Sprintf("*/%d * * * * *", seconds)
	case seconds%60 == 0 && minutes > 0 && minutes < 60 && 60%minutes == 0:
		return fmt.Sprintf("0 */%d * * * *", minutes)
	}
	return ""
}
