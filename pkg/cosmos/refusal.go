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

// Subject is what a request is about.
type Subject struct {
	Container Container // its ID is "" for a database, and both are for the account
	Leases    bool      // it is read as a lease container
	Doing     string    // to its throughput: read or replace; "" = nothing
}

// What may be done to throughput.
const (
	Reading   = "read"
	Replacing = "replace"
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
	r := a.explained(about, answer, words)
	if r.Kind != missing { // of that the service says no more than the meaning
		r.Words = words
	}
	r.Status, r.Given = answer.StatusCode, strings.TrimSuffix(fmt.Sprintf("%d/%d", answer.StatusCode, substatus(answer)), "/0")
	return r
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
		return s.Doing + " the throughput of " + s.Named()
	case s.Leases:
		return "query the leases in " + s.Container.String()
	case s.Container.Database != "":
		return "read " + s.Named()
	default:
		return "read the account's metadata"
	}
}

// Named names a container or a database.
func (s Subject) Named() string {
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

// missing is the kind of a refusal since there is no such database or container.
const missing refusal.Kind = "not found"

// explained returns what an error answer means, what to do about it, and the command of the Azure CLI for that.
// Some refusals of throughput are a 400 that only the words tell apart
// (https://github.com/Azure/azure-sdk-for-java/issues/18776, https://github.com/microsoft/vscode-cosmosdb/issues/1865).
func (a describer) explained(about Subject, answer *http.Response, words string) *refusal.Error {
	say := func(kind refusal.Kind, meaning, remedy, command string) *refusal.Error {
		return a.refusal(about, kind, meaning, remedy, command)
	}
	az := func(command string, args ...string) string { return azurecli.InGroup("cosmosdb "+command, args...) }
	do, c, name := about.reading(), about.Container, azurecli.Cosmos.Resource(a.host)
	status, substatus, manager := answer.StatusCode, substatus(answer), a.scope != ""
	denied := status == http.StatusUnauthorized || status == http.StatusForbidden
	letIn := func(address string) string {
		return az("update", "--name", name, "--ip-range-filter", "PRESENT_RANGES,"+cmp.Or(address, azurecli.Address))
	}
	switch {
	case about.Doing != "" && strings.Contains(words, "not supported for serverless accounts"):
		return say("serverless", "the account is serverless: each request is billed, and nothing is provisioned", "leave throughput out for what is in this account", "")
	case about.Doing != "" && strings.Contains(words, "valid throughput values"):
		return say("not allowed", "the service does not allow that throughput for "+about.Named(), "keep min and max within what the service allows", "")
	case status == http.StatusForbidden && blocked.MatchString(words):
		from := blocked.FindStringSubmatch(words)
		command := letIn(from[1])
		switch from[2] {
		case "service endpoint":
			command = az("network-rule add", "--name", name, "--virtual-network", "VNET", "--subnet", "SUBNET")
		case "private endpoint":
			command = az("private-endpoint-connection approve", "--account-name", name, "--name", "CONNECTION")
		}
		return say("the firewall", "the account's firewall refuses "+cmp.Or(from[1], "this network")+", which comes through the "+from[2],
			"let this network through the account's firewall", command)
	case denied && manager:
		return say("not permitted", "the identity is not permitted to "+do,
			"give it the role Cosmos DB Operator at the account, or read and write of Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/throughputSettings "+pageOfThroughput,
			azurecli.Assign("Cosmos DB Operator", a.scope))
	case denied && a.identity && about.Doing != "":
		return say("not permitted", "the identity is not permitted to "+do,
			"the data plane never lets an identity do this: set "+a.setting+"__resourceId, to ask Azure Resource Manager "+pageOfThroughput, "")
	case denied && a.identity:
		return say("not permitted", "the identity is not permitted to "+do, "give it the role Cosmos DB Built-in Data Reader there",
			az("sql role assignment create", "--account-name", name, "--scope", "/", "--principal-id", azurecli.Principal, "--role-definition-id", dataReader))
	case denied && substatus == substatusKeysDisabled:
		return say("keys are not accepted", "the account does not accept keys", "set "+a.setting+"__accountEndpoint in place of the key, to use an identity", "")
	case status == http.StatusUnauthorized: // the key is wrong, or was rotated
		return say("the key is refused", "the key in setting "+a.setting+" is refused", "put a valid key into setting "+a.setting,
			az("keys list", "--name", name, "--type", "connection-strings"))
	case status == http.StatusForbidden && substatus != substatusNoWrites: // the service does not distinguish these two
		return say("forbidden", "the account forbids to "+do+": its firewall does, or this machine's clock is far off",
			"let this network through the account's firewall, and check the clock", letIn(""))
	case status == http.StatusPreconditionFailed && about.Doing == Replacing, status == http.StatusConflict && manager:
		return a.changed(about)
	case status == http.StatusNotFound && manager:
		return a.noThroughput(about)
	case status == http.StatusTooManyRequests:
		command := ""
		if about.Doing == "" && c.ID != "" {
			command = az("sql container throughput update", "--account-name", name, "--database-name", c.Database, "--name", c.ID, "--throughput", "REQUEST_UNITS")
		}
		return say("throttled", "the account throttles: request units are used up, and it would not "+do, "raise its throughput, or poll less often", command)
	case status >= http.StatusInternalServerError, status == http.StatusGone, denied, changefeed.OutcomeOf(status, substatus) == changefeed.Transient,
		// A proxy answers 404 as well, and knows nothing of containers.
		status == http.StatusNotFound && words == "" && answer.Header.Get("X-Ms-Activity-Id") == "":
		return say("it cannot answer", "the account could not "+do, "the next poll tries again; if this lasts, look at the health of the account", "")
	case status == http.StatusNotFound && about.Leases:
		return say(missing, "there is no lease container "+c.ID+" in database "+c.Database, "correct leaseContainerId, or create it",
			az("sql container create", "--account-name", name, "--database-name", c.Database, "--name", c.ID, "--partition-key-path", "/id"))
	case status == http.StatusNotFound && c.ID != "":
		return say(missing, "there is no container "+c.ID+" in database "+c.Database, "correct databaseId and containerId",
			az("sql container list", "--account-name", name, "--database-name", c.Database, "--query", "[].name"))
	case status == http.StatusNotFound && c.Database != "":
		return say(missing, "there is no "+about.Named()+" in the account", "correct databaseId and containerId",
			az("sql database list", "--account-name", name, "--query", "[].name"))
	}
	return say("the request is rejected", "the account rejects the request to "+do,
		"check databaseId, containerId and leaseContainerId, and that the leases there are those of this container", "")
}

// noThroughput says that a container or a database has none of its own.
func (a describer) noThroughput(about Subject) *refusal.Error {
	remedy := "give it throughput of its own, name the database alone if it shares that, or leave it out"
	if a.scope != "" { // Azure Resource Manager does not tell a missing container from a wrong id of the account
		remedy = "check " + a.setting + "__resourceId and the names, " + remedy
	}
	r := a.refusal(about, "no throughput", about.Named()+" has no throughput of its own (a container may share that of its database), or does not exist", remedy, "")
	if a.scope == "" {
		r.Sentinel = ErrMissing
	}
	return r
}

// changed says that somebody else replaced a throughput since it was read.
func (a describer) changed(about Subject) *refusal.Error {
	return a.refusal(about, "changed", "somebody else changed the throughput of "+about.Named()+" meanwhile", "it is left alone; the next poll reads it again", "")
}

// refusal returns the error of a kind.
func (a describer) refusal(about Subject, kind refusal.Kind, meaning, remedy, command string) *refusal.Error {
	r := &refusal.Error{Kind: kind, Meaning: meaning, Remedy: remedy, Command: command, Of: "account " + a.host, Effect: effect}
	if about.Container.Database != "" {
		r.Part = about.Named()
	}
	if kind == missing {
		r.Sentinel = ErrMissing
	}
	return r
}

// effect is what any cause of an account keeps a processor from.
const effect = "could not be measured"
