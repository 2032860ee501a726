// Package keda has KEDA itself act on what feedscale decides: its scale handler, its scalers and its
// executor, as libraries, over a double of the Kubernetes API. Only the HPA is not there: a test asks
// KEDA's metrics in its place. A file for each scaler; operator_test.go starts KEDA, and
// feedscale_test.go feedscale. ways_test.go compares all ways of acting, those without KEDA, too, over
// the many processors of fleet_test.go.
//
// It is a module of its own, so that what KEDA depends on is none of feedscale's. run-keda.sh, in the
// folder above, runs it. It must not link package scaler, whose contract is KEDA's own and can be
// registered once in a process: feedscale is a process here.
package keda
