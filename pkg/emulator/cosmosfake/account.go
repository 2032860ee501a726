package cosmosfake

import (
	"net/http"
	"slices"
)

type location struct {
	Name     string `json:"name"`
	Endpoint string `json:"databaseAccountEndpoint"`
}

// queryEngine describes the limits of the query language; clients parse it as JSON.
const queryEngine = `{"maxSqlQueryInputLength":262144,"maxJoinsPerSqlQuery":10,"maxLogicalAndPerSqlQuery":2000,` +
	`"maxLogicalOrPerSqlQuery":2000,"maxUdfRefPerSqlQuery":10,"maxInExpressionItemsCount":16000,"queryMaxInMemorySortDocumentCount":500,` +
	`"maxQueryRequestTimeoutFraction":0.9,"sqlAllowNonFiniteNumbers":false,"sqlAllowAggregateFunctions":true,"sqlAllowSubQuery":true,` +
	`"sqlAllowScalarSubQuery":true,"allowNewKeywords":true,"sqlAllowLike":true,"sqlAllowGroupByClause":true,"maxSpatialQueryCells":12,` +
	`"spatialMaxGeometryPointCount":256,"sqlAllowTop":true,"enableSpatialIndexing":true}`

// accountName is what the account calls itself. It is not "localhost": some clients take that for
// the vendor's emulator and then ignore the regions.
const accountName = "feedscale"

// readAccount answers with the account's regions, by addresses that the client can reach, in the
// order of their priority.
func (c *call) readAccount() *reply {
	var all, writable []location
	for _, r := range c.server.regions {
		l := location{r.name, r.url(c.host)}
		if c.server.writes(r) {
			writable = append(writable, l)
		} else {
			all = append(all, l)
		}
	}
	all = append(slices.Clone(writable), all...)
	replicas := map[string]any{"asyncReplication": false, "minReplicaSetSize": 3, "maxReplicasetSize": 4}
	return jsonReply(http.StatusOK, map[string]any{
		"_self": "", "id": accountName, "_rid": accountName, "media": "//media/", "addresses": "//addresses/", "_dbs": "//dbs/",
		"writableLocations":              writable,
		"readableLocations":              all,
		"enableMultipleWriteLocations":   false,
		"continuousBackupEnabled":        c.server.retention > 0,
		"enableNRegionSynchronousCommit": false,
		"userReplicationPolicy":          replicas,
		"systemReplicationPolicy":        replicas,
		"readPolicy":                     map[string]any{"primaryReadCoefficient": 1, "secondaryReadCoefficient": 1},
		"userConsistencyPolicy":          map[string]any{"defaultConsistencyLevel": c.server.consistency},
		"queryEngineConfiguration":       queryEngine,
	}, 0)
}
