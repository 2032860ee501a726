package cosmos

// The headers of the protocol, in net/http's canonical form, which saves converting them for each
// request.
const (
	headerVersion      = "X-Ms-Version"
	headerDate         = "X-Ms-Date"
	headerCapabilities = "X-Ms-Cosmos-Sdk-Supportedcapabilities"
	headerMaxItemCount = "X-Ms-Max-Item-Count"
	headerRangeID      = "X-Ms-Documentdb-Partitionkeyrangeid"
	headerKeyType      = "X-Ms-Read-Key-Type"
	headerStartEPK     = "X-Ms-Start-Epk"
	headerEndEPK       = "X-Ms-End-Epk"
	headerWireFormat   = "X-Ms-Cosmos-Changefeed-Wire-Format-Version"
	headerSessionToken = "X-Ms-Session-Token"
	headerContentPath  = "X-Ms-Content-Path"
	headerSubstatus    = "X-Ms-Substatus"
	headerCharge       = "X-Ms-Request-Charge"
	headerIM           = "A-Im"
	headerETag         = "Etag"
	headerActivity     = "X-Ms-Activity-Id"
	headerConsistency  = "X-Ms-Consistency-Level"
	headerPriority     = "X-Ms-Cosmos-Priority-Level"
	headerBucket       = "X-Ms-Cosmos-Throughput-Bucket"
	headerContinuation = "X-Ms-Continuation"
)

// headersOfRequest is as many as a request has, so that their map need not grow.
const headersOfRequest = 14
