// Package check_test holds the checks of infra/ and azure.yaml: the syntax and the symbols of the
// Bicep templates, the Kubernetes and KEDA samples, and that the samples agree with each other and
// with the program. With the build tag azuretypes, which `make interop` sets, it also compares
// properties and literals with Azure's own types. The Bicep compiler does more: `make infra` runs
// it. Start with TestTheTemplatesAreSound; symbols_test.go and types_test.go explain the findings.
package check_test
