// Package check_test holds the checks of infra/ and azure.yaml: the syntax and
// the symbols of the Bicep templates, the KEDA samples, and that the samples
// agree with each other and with the program. It knows no resource schema: the
// Bicep compiler does. Start with TestTheTemplatesAreSound; what a finding
// means is in symbols_test.go.
package check_test
