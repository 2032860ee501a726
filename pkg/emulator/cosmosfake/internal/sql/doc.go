// Package sql reads and evaluates the part of Cosmos DB's query language that clients of a change
// feed, and people with a shell, use: projections, filters, ORDER BY, TOP, OFFSET LIMIT and
// aggregates over the documents of one container.
//
// It knows documents only as decoded JSON, and neither partitions nor requests: what a gateway or a
// client must do with a query that spans partitions is told by Query.Plan. Start reading at Parse,
// then expression.go.
//
// The package is internal to the program: its API may change in any release.
package sql
