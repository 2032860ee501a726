// Package tablestore is a state.Store in one table of Azure Table storage, for any number of
// processes (docs/operate.md, State).
//
// It knows the Table service, its limits and its answers, and nothing of what a State means. A
// processor is a partition of the table; its State is the row `state`, each event of its outbox a
// row `outbox-<sequence>`, and each hour of its history a row `history-<hour>`. Start with store.go
// (the operations). row.go and history.go have the layout, chunks.go the values that do not fit
// into one property, open.go the ways to sign in, refusal.go the errors of the service.
//
// The package is internal to the program: its API may change in any release.
package tablestore
