package cosmosfake

import (
	"fmt"
	"strings"
)

// The answers below use the service's own words, for control functions that script a refusal. Each
// names its source.

// FirewallForbids is the answer to a client whose address the account's firewall does not let in
// (https://github.com/microsoft/azure-tools-for-java/issues/7123).
func FirewallForbids(ip string) Answer {
	return Answer{Status: 403, Message: fmt.Sprintf("Request originated from IP %s through public internet. This is blocked by your Cosmos DB account firewall settings. More info: https://aka.ms/cosmosdb-tsg-forbidden", ip)}
}

// RoleForbids is the answer to an identity without a role that permits an action such as
// Microsoft.DocumentDB/databaseAccounts/readMetadata, which is asked for before everything else
// (https://github.com/microsoft/vscode-cosmosdb/issues/3073). The substatus tells what kind of
// request it was: of metadata, by names, or by RIDs (azure-cosmos-dotnet-v3, SubStatusCodes: 5301,
// 5302, 5303).
func RoleForbids(substatus int, action, resource string) Answer {
	return Answer{Status: 403, Substatus: substatus, Message: fmt.Sprintf("Request blocked by Auth %s : Request is blocked because principal [00000000-0000-0000-0000-000000000000] does not have required RBAC permissions to perform action [%s] on resource [%s]. Learn more: https://aka.ms/cosmos-native-rbac.", accountName, action, resource)}
}

// IdentityForbids is the answer to an identity that asks for what needs a key, such as POST /dbs or
// GET /offers (https://github.com/dotnet/efcore/issues/32197).
func IdentityForbids(method, path string) Answer {
	return Answer{Status: 403, Substatus: substatusIdentityForbidden, Message: fmt.Sprintf("Request blocked by Auth %s : The given request [%s /%s] cannot be authorized by AAD token in data plane. Learn more: https://aka.ms/cosmos-native-rbac.", accountName, method, path)}
}

// AudienceRefused is the answer to a token for another audience
// (https://github.com/Azure/azure-sdk-for-java/issues/42800).
func AudienceRefused(given string) Answer {
	return Answer{Status: 401, Substatus: 5008, Message: fmt.Sprintf("Request blocked by Auth %[1]s : Provided AAD token is intended for [%[2]s]. This database account accepts tokens intended for [https://%[1]s.documents.azure.com, https://%[1]s.sql.cosmos.azure.com, https://%[1]s.sqlx.cosmos.azure.com, https://cosmos.azure.com].", accountName, given)}
}

// IssuerRefused is the answer to a token of another tenant
// (https://github.com/Azure/azure-sdk-for-js/issues/32391).
func IssuerRefused(issuer, tenant string) Answer {
	return Answer{Status: 401, Substatus: 5007, Message: fmt.Sprintf("Request blocked by Auth %s : Provided AAD token was issued by the authority [%s] which is not trusted by this database account. Please ensure the token has been issued by the AAD tenant(s) %s.", accountName, issuer, tenant)}
}

// KeysRefused is the answer to a key where the account takes identities only
// (https://github.com/microsoft/TWL300-AI-Apps-and-agents/issues/19).
func KeysRefused() Answer {
	return Answer{Status: 401, Substatus: 5202, Message: "Local Authorization is disabled. Use an AAD token to authorize all requests."}
}

// StartTimeRefused is the answer to a start time where the account has several write regions,
// spelled as the service spells it (https://github.com/Azure/azure-cosmos-dotnet-v3/issues/938).
func StartTimeRefused() Answer {
	return Answer{Status: 400, Message: `StartTime/IfMofifiedSince is not currently supported when EnableMultipleWriteLocations is set.`, inErrors: true}
}

// RangeGone is the answer to a range that was split or merged (410 with 1002), RangeSplitting and
// RangeMigrating those to one that is being split (1007) or moved (1008); NameStale says that a
// name now belongs to another resource (1000). See
// https://learn.microsoft.com/rest/api/cosmos-db/http-status-codes-for-cosmosdb and the SDKs'
// SubStatusCodes.
func RangeGone() Answer { return gone(substatusRangeGone) }

// RangeSplitting: see RangeGone.
func RangeSplitting() Answer { return gone(substatusCompletingSplit) }

// RangeMigrating: see RangeGone.
func RangeMigrating() Answer { return gone(substatusCompletingMigration) }

// NameStale: see RangeGone.
func NameStale() Answer { return gone(substatusNameStale) }

func gone(substatus int) Answer {
	return Answer{Status: 410, Substatus: substatus, Message: "The requested resource is no longer available at the server.", inErrors: true}
}

// fault returns the scripted refusal of the answer.
func (a *Answer) fault() *fault {
	f := &fault{status: a.Status, substatus: a.Substatus, message: a.Message, plain: !a.inErrors && a.Message != ""}
	if f.message == "" {
		f.message = "scripted answer"
	}
	return f
}

// actions of the data plane, as roles name them; see
// https://learn.microsoft.com/azure/cosmos-db/reference-data-plane-actions.
func (k Kind) action() string {
	const items = "sqlDatabases/containers/"
	action := "readMetadata"
	switch k {
	case CreateDocument, ExecuteBatch:
		action = items + "items/create"
	case UpsertDocument:
		action = items + "items/upsert"
	case ReadDocument:
		action = items + "items/read"
	case ReplaceDocument, PatchDocument:
		action = items + "items/replace"
	case DeleteDocument:
		action = items + "items/delete"
	case QueryDocuments, PlanQuery, ListDocuments:
		action = items + "executeQuery"
	case ReadChangeFeed:
		action = items + "readChangeFeed"
	}
	return "Microsoft.DocumentDB/databaseAccounts/" + action
}

// roleForbids is the refusal of an identity without a role for what it asks.
func (c *call) roleForbids() *fault {
	substatus, resource := substatusMetadataForbidden, "/"
	if !strings.HasSuffix(c.Kind.action(), "readMetadata") {
		substatus, resource = substatusDataForbidden, strings.Join([]string{"dbs", c.Database, "colls", c.Container}, "/")
	}
	a := RoleForbids(substatus, c.Kind.action(), resource)
	return a.fault()
}
