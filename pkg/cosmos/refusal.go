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

// RefusalKind is the cause of a refusal.
type RefusalKind int

// The causes of a refusal.
const (
	Rejected     RefusalKind = iota // the request itself is wrong for the service
	NotPermitted                    // the identity lacks a role
	KeyRefused                      // the key is wrong or was rotated
	KeysDisabled                    // the account accepts identities alone
	Firewall                        // network rules, as the service's message says
	Forbidden                       // with a key: network rules or a wrong clock, which the service does not distinguish
	Missing                         // the database or the container does not exist
	Throttled
	Unavailable      // the service cannot answer at the moment
	Serverless       // the account has no throughput to provision
	SharedThroughput // the container has none of its own, and shares that of its database
	NoThroughput     // neither has any
	NotAllowed       // the service does not allow that throughput
	Changed          // somebody else replaced the throughput since it was read
)

// Refusal is the error of a request that the service answered with an error. Its text has the
// service's message, what it means, and what to do.
type Refusal struct {
	Kind      RefusalKind
	Account   string    // host of the account
	Setting   string    // name of the setting with the connection
	Container Container // what was asked for; the ID is "" for a database, and both are for the account
	Leases    bool      // whether it was asked for as a lease container
	Doing     Doing     // what was to be done to its throughput; "" = nothing
	Manager   bool      // Azure Resource Manager refused, rather than the account
	Status    int       // HTTP status; 0 where no single answer refused
	Substatus int       // x-ms-substatus; 0 where absent
	Route     Route     // how the request reached the account's firewall; "" where it does not say
	Address   string    // the caller's IP address as the firewall saw it; "" where it does not say
	Words     string    // the service's own message, on one line and at most 300 characters; "" where it had none

	scope string // resource id of the account; "" where it is not known
}

// Route is how a request reached an account, in the words of the firewall's message
// (https://learn.microsoft.com/azure/cosmos-db/nosql/troubleshoot-forbidden).
type Route string

// The routes that the firewall's message names.
const (
	PublicInternet  Route = "public internet"
	ServiceEndpoint Route = "service endpoint"
	PrivateEndpoint Route = "private endpoint"
)

// Values of x-ms-substatus with a 403.
const (
	substatusNoWrites        = 3    // the region takes no writes
	substatusAccountNotFound = 1008 // the account is not in this region
	substatusKeysDisabled    = 5202 // only identities are accepted
)

// refusal returns the Refusal of an error answer by its status and substatus alone.
func (a describer) refusal(s subject, status, substatus int) *Refusal {
	r := &Refusal{
		Account: a.host, Setting: a.setting, Container: s.container, Leases: s.leases, Doing: s.doing,
		Status: status, Substatus: substatus,
	}
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
	case status == http.StatusPreconditionFailed && s.doing == Replacing:
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

var (
	blockedRoute   = regexp.MustCompile(`(?i)originated from .{0,100}through (public internet|service endpoint|private endpoint)`)
	blockedAddress = regexp.MustCompile(`(?i)originated from (?:client )?IP ([0-9a-f.:]+)`)
)

// refused returns the Refusal of an error answer, with what its body says.
func (a describer) refused(s subject, answer *http.Response) *Refusal {
	r := a.refusal(s, answer.StatusCode, substatus(answer))
	body, err := runtime.Payload(answer)
	if err != nil {
		return r
	}
	r.Words = wordsOf(body)
	r.aboutThroughput()
	// That something does not exist is believed of the service alone: a proxy answers 404 too.
	if r.Kind == Missing && r.Words == "" && answer.Header.Get("X-Ms-Activity-Id") == "" {
		r.Kind = Unavailable
	}
	if r.Status != http.StatusForbidden {
		return r
	}
	if route := blockedRoute.FindSubmatch(body); route != nil {
		r.Kind, r.Route = Firewall, Route(route[1])
		if address := blockedAddress.FindSubmatch(body); address != nil {
			r.Address = string(address[1])
		}
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

// subject names what a request was about, for messages.
type subject struct {
	container Container // its ID is "" for a database, and both for the account
	leases    bool      // whether it is read as a lease container
	doing     Doing     // to its throughput; "" = nothing
}

// Doing is what is done to the throughput of a container or database.
type Doing string

// What can be done to it.
const (
	Reading   Doing = "read"
	Replacing Doing = "replace"
)

// reading returns what was to be done, as an infinitive.
func (s subject) reading() string {
	switch {
	case s.doing != "":
		return string(s.doing) + " the throughput of " + s.named()
	case s.leases:
		return "query the leases in " + s.container.String()
	case s.container.Database != "":
		return "read " + s.named()
	default:
		return "read the account's metadata"
	}
}

// named names a container or a database.
func (s subject) named() string {
	if s.container.ID == "" {
		return "database " + s.container.Database
	}
	return "container " + s.container.String()
}

// missing names what was asked for, and where it should be.
func (s subject) missing() string {
	kind := "container "
	if s.leases {
		kind = "lease container "
	}
	switch {
	case s.container.ID != "":
		return kind + s.container.ID + " in database " + s.container.Database
	case s.container.Database != "":
		return s.named() + " in the account"
	}
	return "such account"
}

// sentences are what a kind of refusal is called in a Cause, what it means, and what to do about it. What is
// in braces differs: sentence has a list.
type sentences struct{ word, meaning, advice string }

var sentencesOf = map[RefusalKind]sentences{
	Rejected: {
		"the request is rejected", "the account rejects the request to {do}",
		"check databaseId, containerId and leaseContainerId, and that the leases there are those of this container",
	},
	NotPermitted: {"not permitted", "the identity is not permitted to {do}", "give it the role Cosmos DB Built-in Data Reader there"},
	KeyRefused:   {"the key is refused", "the key in setting {setting} is refused", "put a valid key into setting {setting}"},
	KeysDisabled: {"keys are not accepted", "the account does not accept keys", "set {setting}__accountEndpoint in place of the key, to use an identity"},
	Firewall: {
		"the firewall", "the account's firewall refuses {network}, which comes through the {route}",
		"let this network through the account's firewall",
	},
	Forbidden: {
		"forbidden", "the account forbids to {do}: its firewall does, or this machine's clock is far off",
		"let this network through the account's firewall, and check the clock",
	},
	Missing:     {"not found", "there is no {missing}", "correct databaseId and containerId"},
	Throttled:   {"throttled", "the account throttles: request units are used up, and it would not {do}", "raise its throughput, or poll less often"},
	Unavailable: {"it cannot answer", "the account could not {do}", "the next poll tries again; if this lasts, look at the health of the account"},
	Serverless: {
		"serverless", "the account is serverless: each request is billed, and nothing is provisioned",
		"leave throughput out for what is in this account",
	},
	SharedThroughput: {
		"shared throughput", "{it} has no throughput of its own, it shares that of database {database}",
		"name the database alone, without the container, or give the container throughput of its own",
	},
	NoThroughput: {"no throughput", "{it} has no throughput, or does not exist", "give it throughput of its own, or leave it out"},
	NotAllowed:   {"not allowed", "the service does not allow that throughput for {it}", "keep min and max within what the service allows"},
	Changed:      {"changed", "somebody else changed the throughput of {it} meanwhile", "it is left alone; the next poll reads it again"},
}

// sentence fills in what a sentence leaves open.
func (r *Refusal) sentence(text string) string {
	about := subject{r.Container, r.Leases, r.Doing}
	return strings.NewReplacer(
		"{it}", about.named(), "{missing}", about.missing(), "{do}", about.reading(), "{setting}", r.Setting, "{database}", r.Container.Database,
		"{network}", cmp.Or(r.Address, "this network"), "{route}", string(r.Route),
	).Replace(text)
}

// Meaning returns what the answer means, with its status.
func (r *Refusal) Meaning() string {
	meaning := r.sentence(sentencesOf[r.Kind].meaning)
	switch {
	case r.Status == 0:
		return meaning
	case r.Substatus == 0:
		return fmt.Sprintf("%s (%d)", meaning, r.Status)
	}
	return fmt.Sprintf("%s (%d/%d)", meaning, r.Status, r.Substatus)
}

// pageOfThroughput is what an identity needs to read and replace throughput.
const pageOfThroughput = "(https://github.com/feedscale/feedscale/blob/main/docs/throughput.md)"

// Advice returns what to do about it.
func (r *Refusal) Advice() string {
	switch {
	case r.Kind == NotPermitted && r.Manager:
		return "give it the role Cosmos DB Operator at the account, or read and write of Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/throughputSettings " + pageOfThroughput
	case r.Kind == NotPermitted && r.Doing != "":
		return "the data plane never lets an identity do this: set " + r.Setting + "__resourceId, to ask Azure Resource Manager " + pageOfThroughput
	case r.Kind == NoThroughput && r.Manager:
		return "check " + r.Setting + "__resourceId and the names of database and container"
	case r.Kind == Missing && r.Leases:
		return "correct leaseContainerId, or create it"
	case r.Kind == Throttled && r.Doing != "":
		return "the next poll tries again"
	}
	return r.sentence(sentencesOf[r.Kind].advice)
}

// dataReader is the id of the role Cosmos DB Built-in Data Reader, the same in every account.
const dataReader = "00000000-0000-0000-0000-000000000001"

// Command returns the command of the Azure CLI for that; "" where there is none.
func (r *Refusal) Command() string {
	c, name := r.Container, azurecli.Cosmos.Resource(r.Account)
	inDatabase := func(command string, args ...string) string {
		return azurecli.InGroup(command, append([]string{"--account-name", name, "--database-name", c.Database}, args...)...)
	}
	switch {
	case r.Kind == NotPermitted && r.Manager:
		return azurecli.Assign("Cosmos DB Operator", cmp.Or(r.scope, azurecli.Cosmos.ID(r.Account)))
	case r.Kind == NotPermitted && r.Doing == "":
		return azurecli.InGroup("cosmosdb sql role assignment create", "--account-name", name, "--scope", "/",
			"--principal-id", azurecli.Principal, "--role-definition-id", dataReader)
	case r.Kind == KeyRefused:
		return azurecli.InGroup("cosmosdb keys list", "--name", name, "--type", "connection-strings")
	case r.Route == ServiceEndpoint:
		return azurecli.InGroup("cosmosdb network-rule add", "--name", name, "--virtual-network", "VNET", "--subnet", "SUBNET")
	case r.Route == PrivateEndpoint:
		return azurecli.InGroup("cosmosdb private-endpoint-connection approve", "--account-name", name, "--name", "CONNECTION")
	case r.Kind == Firewall || r.Kind == Forbidden:
		return azurecli.InGroup("cosmosdb update", "--name", name, "--ip-range-filter", "PRESENT_RANGES,"+cmp.Or(r.Address, azurecli.Address))
	case r.Kind == Missing && r.Leases:
		return inDatabase("cosmosdb sql container create", "--name", c.ID, "--partition-key-path", "/id")
	case r.Kind == Missing && c.ID != "":
		return inDatabase("cosmosdb sql container list", "--query", "[].name")
	case r.Kind == Missing && c.Database != "":
		return azurecli.InGroup("cosmosdb sql database list", "--account-name", name, "--query", "[].name")
	case r.Kind == Throttled && r.Doing == "" && c.ID != "":
		return inDatabase("cosmosdb sql container throughput update", "--name", c.ID, "--throughput", "REQUEST_UNITS")
	}
	return ""
}

// Detail returns the service's own message, if there is one, and what it means. If something is missing,
// the message says no more than the meaning and is left out.
func (r *Refusal) Detail() string {
	if r.Words == "" || r.Kind == Missing {
		return r.Meaning()
	}
	return fmt.Sprintf("it says %q: %s", r.Words, r.Meaning())
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
	c := changefeed.Cause{Of: "account " + r.Account, Effect: effect, Remedy: r.Advice(), Says: "refuses (" + sentencesOf[r.Kind].word + ")"}
	if r.Container.Database != "" {
		c.Part = subject{container: r.Container}.named()
	}
	if r.Status != 0 {
		c.Says = fmt.Sprintf("refuses (%d, %s)", r.Status, sentencesOf[r.Kind].word)
	}
	if command := r.Command(); command != "" {
		c.Remedy += ": " + command
	}
	return c
}
