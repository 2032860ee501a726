package cosmos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/feedscale/feedscale/pkg/azurecli"
	"github.com/feedscale/feedscale/pkg/changefeed"
)

// RefusalKind is the cause of a refusal, in words.
type RefusalKind string

// The causes of a refusal.
const (
	Rejected         RefusalKind = "the request is rejected" // it is wrong for the service
	NotPermitted     RefusalKind = "not permitted"           // the identity lacks a role
	KeyRefused       RefusalKind = "the key is refused"      // it is wrong or was rotated
	KeysDisabled     RefusalKind = "keys are not accepted"   // the account accepts identities alone
	Firewall         RefusalKind = "the firewall"            // network rules, as the service's message says
	Forbidden        RefusalKind = "forbidden"               // with a key: network rules or a wrong clock, which the service does not distinguish
	Missing          RefusalKind = "not found"               // the database or the container
	Throttled        RefusalKind = "throttled"
	Unavailable      RefusalKind = "it cannot answer"  // at the moment
	Serverless       RefusalKind = "serverless"        // the account has no throughput to provision
	SharedThroughput RefusalKind = "shared throughput" // the container has none of its own, and shares that of its database
	NoThroughput     RefusalKind = "no throughput"     // neither has any
	NotAllowed       RefusalKind = "not allowed"       // the service does not allow that throughput
	Changed          RefusalKind = "changed"           // somebody else replaced the throughput since it was read
)

// Subject is what a request is about.
type Subject struct {
	Container Container // its ID is "" for a database, and both are for the account
	Leases    bool      // it is read as a lease container
	Doing     string    // to its throughput: read or replace; "" = nothing
}

// Refusal is the error of a request that the service answered with an error. Its text has the
// service's message, what it means, and what to do.
type Refusal struct {
	Subject
	Kind      RefusalKind
	Account   string // host of the account
	Setting   string // name of the setting with the connection
	Manager   bool   // Azure Resource Manager refused, rather than the account
	Status    int    // HTTP status; 0 where no single answer refused
	Substatus int    // x-ms-substatus; 0 where absent
	Route     string // how the request reached the account's firewall; "" where it does not say
	Address   string // the caller's IP address as the firewall saw it; "" where it does not say
	Words     string // the service's own message, on one line and at most 300 characters; "" where it had none

	scope string // resource id of the account; "" where it is not known
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

// refusal returns the Refusal of an error answer by its status and substatus alone.
func (a describer) refusal(about Subject, status, substatus int) *Refusal {
	r := &Refusal{Kind: Rejected, Subject: about, Account: a.host, Setting: a.setting, Manager: a.scope != "", Status: status, Substatus: substatus, scope: a.scope}
	denied := status == http.StatusUnauthorized || status == http.StatusForbidden
	switch {
	case denied && a.identity:
		r.Kind = NotPermitted
	case denied && substatus == substatusKeysDisabled:
		r.Kind = KeysDisabled
	case status == http.StatusUnauthorized:
		r.Kind = KeyRefused
	case status == http.StatusForbidden && substatus == substatusNoWrites:
		r.Kind = Unavailable
	case status == http.StatusForbidden:
		r.Kind = Forbidden
	case status == http.StatusPreconditionFailed && about.Doing == replacing:
		r.Kind = Changed
	case status == http.StatusNotFound && changefeed.OutcomeOf(status, substatus) == changefeed.Refused:
		r.Kind = Missing
	case status == http.StatusTooManyRequests:
		r.Kind = Throttled
	case status >= http.StatusInternalServerError || status == http.StatusGone || changefeed.OutcomeOf(status, substatus) == changefeed.Transient:
		r.Kind = Unavailable
	}
	return r
}

// The firewall's message names the route of a request, and may name the caller's address
// (https://learn.microsoft.com/azure/cosmos-db/nosql/troubleshoot-forbidden).
var (
	blockedRoute   = regexp.MustCompile(`(?i)originated from .{0,100}through (public internet|service endpoint|private endpoint)`)
	blockedAddress = regexp.MustCompile(`(?i)originated from (?:client )?IP ([0-9a-f.:]+)`)
)

// refused returns the Refusal of an error answer, with what its body says. Some refusals of throughput are a
// 400 that only the words tell apart (https://github.com/Azure/azure-sdk-for-java/issues/18776,
// https://github.com/microsoft/vscode-cosmosdb/issues/1865).
func (a describer) refused(about Subject, answer *http.Response) *Refusal {
	r := a.refusal(about, answer.StatusCode, substatus(answer))
	body, _ := runtime.Payload(answer) // one that breaks off says nothing
	r.Words = wordsOf(body)
	route, address := blockedRoute.FindSubmatch(body), blockedAddress.FindSubmatch(body)
	switch {
	case r.Doing != "" && strings.Contains(r.Words, "not supported for serverless accounts"):
		r.Kind = Serverless
	case r.Doing != "" && strings.Contains(r.Words, "valid throughput values"):
		r.Kind = NotAllowed
	case r.Status == http.StatusForbidden && route != nil:
		if r.Kind, r.Route = Firewall, string(route[1]); address != nil {
			r.Address = string(address[1])
		}
	case r.Kind == Missing && r.Words == "" && answer.Header.Get("X-Ms-Activity-Id") == "":
		r.Kind = Unavailable // that something does not exist is believed of the service alone: a proxy answers 404 too
	}
	return r
}

// maxWords is the maximum length of the service's message in a Refusal, in characters.
const maxWords = 300

// afterWords matches the details for support that the service appends to its messages.
var afterWords = regexp.MustCompile(`(?i)\s*,?\s*\b(ActivityId:|Request URI:|RequestStats:|Learn more:).*`)

// secret matches a signature, token or key, which is removed from a message in case one ever contains it.
var secret = regexp.MustCompile(`(?i)((?:sig(?:nature)?|[a-z]*key|code)(?:=|%3d)|bearer\s+)[^\s'",;&]+`)

// maxWrapped is how many messages may be in each other: that of Azure Resource Manager stands in an object
// error, it has the account's in its text, and that may have a list of them.
const maxWrapped = 4

// wordsOf returns the innermost message in an answer's body, without the details for support.
func wordsOf(body json.RawMessage) (words string) {
	for range maxWrapped {
		var answer struct {
			Message string
			Errors  []string
			Error   json.RawMessage
		}
		if json.Unmarshal(body, &answer) != nil {
			break
		}
		if len(answer.Errors) > 0 {
			answer.Message = answer.Errors[0]
		}
		words = cmp.Or(answer.Message, words)
		if body = answer.Error; body == nil {
			_, inner, ok := strings.Cut(answer.Message, "Message: {")
			if !ok || json.NewDecoder(strings.NewReader("{"+inner)).Decode(&body) != nil {
				break
			}
		}
	}
	words = strings.Join(strings.FieldsFunc(words, func(r rune) bool { return unicode.IsSpace(r) || unicode.In(r, unicode.Cc, unicode.Cf) }), " ")
	words = secret.ReplaceAllString(afterWords.ReplaceAllString(words, ""), "${1}REDACTED")
	if runes := []rune(words); len(runes) > maxWords {
		words = string(runes[:maxWords]) + "…"
	}
	return words
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

// explain returns what the refusal means, what to do about it, and the command of the Azure CLI for that; ""
// where there is none.
func (r *Refusal) explain() (meaning, advice, command string) {
	az := func(command string, args ...string) string { return azurecli.InGroup("cosmosdb "+command, args...) }
	it, do, c, name := r.named(), r.reading(), r.Container, azurecli.Cosmos.Resource(r.Account)
	letIn := az("update", "--name", name, "--ip-range-filter", "PRESENT_RANGES,"+cmp.Or(r.Address, azurecli.Address))
	switch r.Kind {
	case NotPermitted:
		meaning = "the identity is not permitted to " + do
		switch {
		case r.Manager:
			return meaning, "give it the role Cosmos DB Operator at the account, or read and write of Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/throughputSettings " + pageOfThroughput,
				azurecli.Assign("Cosmos DB Operator", cmp.Or(r.scope, azurecli.Cosmos.ID(r.Account)))
		case r.Doing != "":
			return meaning, "the data plane never lets an identity do this: set " + r.Setting + "__resourceId, to ask Azure Resource Manager " + pageOfThroughput, ""
		}
		return meaning, "give it the role Cosmos DB Built-in Data Reader there",
			az("sql role assignment create", "--account-name", name, "--scope", "/", "--principal-id", azurecli.Principal, "--role-definition-id", dataReader)
	case KeyRefused:
		return "the key in setting " + r.Setting + " is refused", "put a valid key into setting " + r.Setting,
			az("keys list", "--name", name, "--type", "connection-strings")
	case KeysDisabled:
		return "the account does not accept keys", "set " + r.Setting + "__accountEndpoint in place of the key, to use an identity", ""
	case Firewall:
		switch r.Route {
		case "service endpoint":
			letIn = az("network-rule add", "--name", name, "--virtual-network", "VNET", "--subnet", "SUBNET")
		case "private endpoint":
			letIn = az("private-endpoint-connection approve", "--account-name", name, "--name", "CONNECTION")
		}
		return "the account's firewall refuses " + cmp.Or(r.Address, "this network") + ", which comes through the " + r.Route,
			"let this network through the account's firewall", letIn
	case Forbidden:
		return "the account forbids to " + do + ": its firewall does, or this machine's clock is far off",
			"let this network through the account's firewall, and check the clock", letIn
	case Missing:
		switch {
		case r.Leases:
			return "there is no lease container " + c.ID + " in database " + c.Database, "correct leaseContainerId, or create it",
				az("sql container create", "--account-name", name, "--database-name", c.Database, "--name", c.ID, "--partition-key-path", "/id")
		case c.ID != "":
			return "there is no container " + c.ID + " in database " + c.Database, "correct databaseId and containerId",
				az("sql container list", "--account-name", name, "--database-name", c.Database, "--query", "[].name")
		case c.Database != "":
			return "there is no " + it + " in the account", "correct databaseId and containerId",
				az("sql database list", "--account-name", name, "--query", "[].name")
		}
		return "there is no such account", "correct databaseId and containerId", ""
	case Throttled:
		meaning, advice = "the account throttles: request units are used up, and it would not "+do, "raise its throughput, or poll less often"
		if r.Doing != "" {
			advice = "the next poll tries again"
		} else if c.ID != "" {
			command = az("sql container throughput update", "--account-name", name, "--database-name", c.Database, "--name", c.ID, "--throughput", "REQUEST_UNITS")
		}
		return meaning, advice, command
	case Unavailable:
		return "the account could not " + do, "the next poll tries again; if this lasts, look at the health of the account", ""
	case Serverless:
		return "the account is serverless: each request is billed, and nothing is provisioned", "leave throughput out for what is in this account", ""
	case SharedThroughput:
		return it + " has no throughput of its own, it shares that of database " + c.Database,
			"name the database alone, without the container, or give the container throughput of its own", ""
	case NoThroughput:
		if advice = "give it throughput of its own, or leave it out"; r.Manager {
			advice = "check " + r.Setting + "__resourceId and the names of database and container"
		}
		return it + " has no throughput, or does not exist", advice, ""
	case NotAllowed:
		return "the service does not allow that throughput for " + it, "keep min and max within what the service allows", ""
	case Changed:
		return "somebody else changed the throughput of " + it + " meanwhile", "it is left alone; the next poll reads it again", ""
	}
	return "the account rejects the request to " + do, "check databaseId, containerId and leaseContainerId, and that the leases there are those of this container", ""
}

// Advice returns what to do about it.
func (r *Refusal) Advice() string {
	_, advice, _ := r.explain()
	return advice
}

// Command returns the command of the Azure CLI for that; "" where there is none.
func (r *Refusal) Command() string {
	_, _, command := r.explain()
	return command
}

// Detail returns the service's own message, if there is one, and what it means, with the status. If something is
// missing, the message says no more than the meaning and is left out.
func (r *Refusal) Detail() string {
	meaning, _, _ := r.explain()
	switch {
	case r.Substatus != 0:
		meaning += fmt.Sprintf(" (%d/%d)", r.Status, r.Substatus)
	case r.Status != 0:
		meaning += fmt.Sprintf(" (%d)", r.Status)
	}
	if r.Words == "" || r.Kind == Missing {
		return meaning
	}
	return fmt.Sprintf("it says %q: %s", r.Words, meaning)
}

// Is reports that a container does not exist.
func (r *Refusal) Is(target error) bool { return target == ErrMissing && r.Kind == Missing }

// Error returns all of it in one sentence.
func (r *Refusal) Error() string {
	return "account " + r.Account + ": " + r.Detail() + ": " + r.Advice()
}

// effect is what any cause of an account keeps a processor from.
const effect = "could not be measured"

// Cause returns the account that refuses, or the container of it, and how.
func (r *Refusal) Cause() changefeed.Cause {
	c := changefeed.Cause{Of: "account " + r.Account, Effect: effect, Remedy: r.Advice(), Says: fmt.Sprintf("refuses (%s)", r.Kind)}
	if r.Container.Database != "" {
		c.Part = r.named()
	}
	if r.Status != 0 {
		c.Says = fmt.Sprintf("refuses (%d, %s)", r.Status, r.Kind)
	}
	if command := r.Command(); command != "" {
		c.Remedy += ": " + command
	}
	return c
}
