package changefeed

// Family is a family of SDKs that write leases of their own format. Two of them under one prefix are
// two processors that read the same changes.
type Family string

// The families.
const (
	FamilyAny    Family = ""       // whatever is found
	FamilyDotNet Family = "dotnet" // the .NET v3 SDK, the legacy V2 library and Azure Functions triggers
	FamilyJava   Family = "java"
)
