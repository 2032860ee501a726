// Package imports makes a processors file (docs/configure.md) from files that already describe change
// feed processors: KEDA's ScaledObjects with their TriggerAuthentications, and the function.json and
// host.json of Azure Functions. What has no equivalent it says line by line (docs/import.md).
//
// It reads no file and no environment by itself, knows neither KEDA's nor Kubernetes' packages, and
// repeats no secret that it comes across. What a processors file allows it leaves to package config:
// a field that config refuses is left out, and said.
//
// Start with Convert. keda.go and functions.go say what becomes of each field.
//
// The package is internal to the program: its API may change in any release.
package imports
