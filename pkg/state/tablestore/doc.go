// Package tablestore keeps the state in a table of Azure Table storage, for any
// number of processes (DESIGN 8).
//
// It knows the Table service, its limits and its answers, and nothing of what
// the State means. A processor is a partition of the table; its State is the
// row `state`, each waiting event a row `outbox-<sequence>`, and each hour of
// its history a row `history-<hour>`. Start with store.go (the operations);
// row.go and history.go have the layout, chunks.go what does not fit into one
// property, open.go and connection.go the ways in, answer.go and explain.go what
// the service's refusals mean.
package tablestore
