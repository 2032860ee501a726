package cosmos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/tidwall/gjson"

	"github.com/feedscale/feedscale/pkg/azurecli"
	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/refusal"
)

// The causes of a refusal.
const (
	Rejected     refusal.Kind = "the request is rejected" // it is wrong for the service
	NotPermitted refusal.Kind = "not permitted"           // the identity lacks a role
	KeyRefused   refusal.Kind = "the key is refused"      // it is wrong or was rotated
	KeysDisabled refusal.Kind = "keys are not accepted"   // the account accepts identities alone
	Firewall     refusal.Kind = "the firewall"            // network rules, as the service's message says
	Forbidden    refusal.Kind = "forbidden"               // with a key: network rules or a wrong clock, which the service does not distinguish
	Missing      refusal.Kind = "not found"               // the database or the container
	Throttled    refusal.Kind = "throttled"
	Unavailable  refusal.Kind = "it cannot answer" // at the moment
	Serverless   refusal.Kind = "serverless"       // the account has no throughput to provision
	NoThroughput refusal.Kind = "no throughput"    // it has none of its own
	NotAllowed   refusal.Kind = "not allowed"      // the service does not allow that throughput
	Changed      refusal.Kind = "changed"          // somebody else replaced the throughput since it was read
)

// Subject is what a request is about.
type Subject struct {
	Container Container // its ID is "" for a database, and both are for the account
	Leases    bool      // it is read as a lease container
	Doing     string    // to its throughput: read or replace; "" = nothing
}

// What may be done to throughput.
const (
	reading   = "read"
	replacing = "replace"
)

// Values of x-ms-substatus with a 403.
const (
	substatusNoWrites        = 3    // the region takes no writes
	substatusAccountNotFound = 1008 // the account is not in this region
	substatusKeysDisabled    = 5202 // only identities are accepted
)

// blocked matches the firewall's message. It has the route of a request, and may have the caller's address
// (https://learn.microsoft.com/azure/cosmos-db/nosql/troubleshoot-forbidden).
var blocked = regexp.MustCompile(`(?i)originated from (?:client )?(?:IP ([0-9a-f.:]+)|.{0,100}?) through (public internet|service endpoint|private endpoint)`)

// refused returns the error of an answer that is one.
func (a describer) refused(about Subject, answer *http.Response) *refusal.Error {
	body, _ := runtime.Payload(answer) // one that breaks off says nothing
	words := wordsOf(body)
	r := a.refusal(about, a.kindOf(about, answer, words), words)
	r.Status, r.Given = answer.StatusCode, strings.TrimSuffix(fmt.Sprintf("%d/%d", answer.StatusCode, substatus(answer)), "/0")
	return r
}

// kindOf returns the cause of an error answer. Some refusals of throughput are a 400 that only the words
// tell apart (https://github.com/Azure/azure-sdk-for-java/issues/18776,
// https://github.com/microsoft/vscode-cosmosdb/issues/1865).
func (a describer) kindOf(about Subject, answer *http.Response, words string) refusal.Kind {
	status, substatus, manager := answer.StatusCode, substatus(answer), a.scope != ""
	denied := status == http.StatusUnauthorized || status == http.StatusForbidden
	switch {
	case about.Doing != "" && strings.Contains(words, "not supported for serverless accounts"):
		return Serverless
	case about.Doing != "" && strings.Contains(words, "valid throughput values"):
		return NotAllowed
	case status == http.StatusForbidden && blocked.MatchString(words):
		return Firewall
	case denied && a.identity:
		return NotPermitted
	case denied && substatus == substatusKeysDisabled:
		return KeysDisabled
	case status == http.StatusUnauthorized:
		return KeyRefused
	case status == http.StatusForbidden && substatus == substatusNoWrites:
		return Unavailable
	case denied:
		return Forbidden
	case status == http.StatusPreconditionFailed && about.Doing == replacing, status == http.StatusConflict && manager:
		return Changed
	case status == http.StatusTooManyRequests:
		return Throttled
	case status >= http.StatusInternalServerError || status == http.StatusGone || changefeed.OutcomeOf(status, substatus) == changefeed.Transient:
		return Unavailable
	case status == http.StatusNotFound && manager:
		return NoThroughput
	case status == http.StatusNotFound && words == "" && answer.Header.Get("X-Ms-Activity-Id") == "":
		return Unavailable // that something does not exist is believed of the service alone: a proxy answers 404 too
	case status == http.StatusNotFound:
		return Missing
	}
	return Rejected
}

// afterWords matches the details for support that the service appends to its messages.
var afterWords = regexp.MustCompile(`(?is)\s*,?\s*\b(ActivityId:|Request URI:|RequestStats:|Learn more:).*`)

// maxWrapped is how many messages may be in each other: that of Azure Resource Manager stands in an object
// error, it has the account's in its text, and that may have a list of them.
const maxWrapped = 4

// wordsOf returns the innermost message in an answer's body, without the details for support.
func wordsOf(body []byte) (words string) {
	if !json.Valid(body) {
		return ""
	}
	answer := gjson.ParseBytes(body)
	for range maxWrapped {
		message := cmp.Or(answer.Get("Errors.0").Str, answer.Get("message").Str)
		words = cmp.Or(message, words)
		if inner := answer.Get("error"); inner.Exists() {
			answer = inner
		} else {
			_, text, _ := strings.Cut(message, "Message: {")
			answer = gjson.Parse("{" + text)
		}
	}
	return refusal.Words(afterWords.ReplaceAllString(words, ""))
}

// reading returns what was to be done, as an infinitive.
func (s Subject) reading() string {
	switch {
	case s.Doing != "":
		return s.Doing + " the throughput of " + s.named()
	case s.Leases:
		return "query the leases in " + s.Container.String()
	case s.Container.Database != "":
		return "read " + s.named()
	default:
		return "read the account's metadata"
	}
}

// named names a container or a database.
func (s Subject) named() string {
	if s.Container.ID == "" {
		return "database " + s.Container.Database
	}
	return "container " + s.Container.String()
}

const (
	// pageOfThroughput is what an identity needs to read and replace throughput.
	pageOfThroughput = "(https://github.com/feedscale/feedscale/blob/main/docs/throughput.md)"
	// dataReader is the id of the role Cosmos DB Built-in Data Reader, the same in every account.
	dataReader = "00000000-0000-0000-0000-000000000001"
)

// refusal returns the error of a cause, with the service's own message.
func (a describer) refusal(about Subject, kind refusal.Kind, words string) *refusal.Error {
	r := &refusal.Error{Kind: kind, Of: "account " + a.host, Effect: effect}
	if about.Container.Database != "" {
		r.Part = about.named()
	}
	if kind != Missing { // of that they say no more than the meaning
		r.Words = words
	}
	// Azure Resource Manager does not tell a missing container from a wrong id of the account.
	if kind == Missing || a.scope == "" && kind == NoThroughput {
		r.Sentinel = ErrMissing
	}
	r.Meaning, r.Remedy, r.Command = a.explain(about, kind, words)
	return r
}

// explain returns what a refusal means, what to do about it, and the command of the Azure CLI for that; "" if
// there is none.
func (a describer) explain(about Subject, kind refusal.Kind, words string) (meaning, remedy, command string) {
	var address, route string
	if from := blocked.FindStringSubmatch(words); from != nil {
		address, route = from[1], from[2]
	}
	az := func(command string, args ...string) string { return azurecli.InGroup("cosmosdb "+command, args...) }
	it, do, c, name := about.named(), about.reading(), about.Container, azurecli.Cosmos.Resource(a.host)
	letIn := az("update", "--name", name, "--ip-range-filter", "PRESENT_RANGES,"+cmp.Or(address, azurecli.Address))
	switch kind {
	case NotPermitted:
		meaning = "the identity is not permitted to " + do
		switch {
		case a.scope != "":
			return meaning, "give it the role Cosmos DB Operator at the account, or read and write of Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/throughputSettings " + pageOfThroughput,
				azurecli.Assign("Cosmos DB Operator", a.scope)
		case about.Doing != "":
			return meaning, "the data plane never lets an identity do this: set " + a.setting + "__resourceId, to ask Azure Resource Manager " + pageOfThroughput, ""
		}
		return meaning, "give it the role Cosmos DB Built-in Data Reader there",
			az("sql role assignment create", "--account-name", name, "--scope", "/", "--principal-id", azurecli.Principal, "--role-definition-id", dataReader)
	case KeyRefused:
		return "the key in setting " + a.setting + " is refused", "put a valid key into setting " + a.setting,
			az("keys list", "--name", name, "--type", "connection-strings")
	case KeysDisabled:
		return "the account does not accept keys", "set " + a.setting + "__accountEndpoint in place of the key, to use an identity", ""
	case Firewall:
		switch route {
		case "service endpoint":
			letIn = az("network-rule add", "--name", name, "--virtual-network", "VNET", "--subnet", "SUBNET")
		case "private endpoint":
			letIn = az("private-endpoint-connection approve", "--account-name", name, "--name", "CONNECTION")
		}
		return "the account's firewall refuses " + cmp.Or(address, "this network") + ", which comes through the " + route,
			"let this network through the account's firewall", letIn
	case Forbidden:
		return "the account forbids to " + do + ": its firewall does, or this machine's clock is far off",
			"let this network through the account's firewall, and check the clock", letIn
	case Missing:
		switch {
		case about.Leases:
			return "there is no lease container " + c.ID + " in database " + c.Database, "correct leaseContainerId, or create it",
				az("sql container create", "--account-name", name, "--database-name", c.Database, "--name", c.ID, "--partition-key-path", "/id")
		case c.ID != "":
			return "there is no container " + c.ID + " in database " + c.Database, "correct databaseId and containerId",
				az("sql container list", "--account-name", name, "--database-name", c.Database, "--query", "[].name")
		case c.Database != "":
			return "there is no " + it + " in the account", "correct databaseId and containerId",
				az("sql database list", "--account-name", name, "--query", "[].name")
		}
	case Throttled:
		if about.Doing == "" && c.ID != "" {
			command = az("sql container throughput update", "--account-name", name, "--database-name", c.Database, "--name", c.ID, "--throughput", "REQUEST_UNITS")
		}
		return "the account throttles: request units are used up, and it would not " + do, "raise its throughput, or poll less often", command
	case Unavailable:
		return "the account could not " + do, "the next poll tries again; if this lasts, look at the health of the account", ""
	case Serverless:
		return "the account is serverless: each request is billed, and nothing is provisioned", "leave throughput out for what is in this account", ""
	case NoThroughput:
		remedy = "give it throughput of its own, name the database alone if it shares that, or leave it out"
		if a.scope != "" {
			remedy = "check " + a.setting + "__resourceId and the names, " + remedy
		}
		return it + " has no throughput of its own (a container may share that of its database), or does not exist", remedy, ""
	case NotAllowed:
		return "the service does not allow that throughput for " + it, "keep min and max within what the service allows", ""
	case Changed:
		return "somebody else changed the throughput of " + it + " meanwhile", "it is left alone; the next poll reads it again", ""
	}
	return "the account rejects the request to " + do, "check databaseId, containerId and leaseContainerId, and that the leases there are those of this container", ""
}

// effect is what any cause of an account keeps a processor from.
const effect = "could not be measured"
