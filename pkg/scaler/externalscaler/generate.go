// Package externalscaler is generated from the contract of KEDA's external scalers, which is beside
// it: go generate ./pkg/scaler/externalscaler makes it anew. Package scaler is what serves it.
//
// The package is internal to the program: its API may change in any release.
package externalscaler

//go:generate go run github.com/bufbuild/buf/cmd/buf@v1.75.0 generate
