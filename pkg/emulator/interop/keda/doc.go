// Package keda has KEDA itself act on what feedscale decides: its scale handler, its scalers and
// its executor, as libraries, over a double of the Kubernetes API. There is no HPA: a test asks for
// KEDA's metrics instead. Each scaler has a file; operator_test.go starts KEDA, and
// feedscale_test.go starts feedscale. ways_test.go compares all ways of acting, also those without
// KEDA, on the many processors of fleet_test.go.
//
// It is a module of its own, so that what KEDA depends on is none of feedscale's. run-keda.sh, in
// the folder above, runs it. It must not link package scaler, whose contract is KEDA's own and can
// be registered once in a process: feedscale is a process here.
package keda
