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
	identity := a.identity
	switch {
	case (status == http.StatusUnauthorized || status == http.StatusForbidden) && identity:
		r.Kind = NotPermitted
	case substatus == substatusKeysDisabled && (status == http.StatusUnauthorized || status == http.StatusForbidden):
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
	if r.Kind == Missing && r.Words == "" && answer.Header.Get(headerActivity) == "" {
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

// wordsOf returns the message in an answer's body, without the details for support.
func wordsOf(body []byte) string {
	var answer struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	words := answer.Message
	if _, inner, ok := strings.Cut(words, "Message: {"); ok { // some messages wrap a list of them
		var list struct{ Errors []string }
		if json.NewDecoder(strings.NewReader("{"+inner)).Decode(&list) == nil && len(list.Errors) > 0 {
			words = list.Errors[0]
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
	case s.container.ID != "":
		return "read container " + s.container.String()
	case s.container.Database != "":
		return "read database " + s.container.Database
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

// Meaning returns what the answer means, with its status.
func (r *Refusal) Meaning() string {
	if r.Status == 0 {
		return r.meaning()
	}
	code := fmt.Sprintf("(%d)", r.Status)
	if r.Substatus != 0 {
		code = fmt.Sprintf("(%d/%d)", r.Status, r.Substatus)
	}
	return r.meaning() + " " + code
}

func (r *Refusal) meaning() string {
	about := subject{r.Container, r.Leases, r.Doing}
	reading := about.reading()
	switch r.Kind {
	case Serverless:
		return "the account is serverless: each request is billed, and nothing is provisioned"
	case SharedThroughput:
		return fmt.Sprintf("%s has no throughput of its own, it shares that of database %s", about.named(), r.Container.Database)
	case NoThroughput:
		return about.named() + " has no throughput, or does not exist"
	case NotAllowed:
		return "the service does not allow that throughput for " + about.named()
	case Changed:
		return "somebody else changed the throughput of " + about.named() + " meanwhile"
	case NotPermitted:
		return "the identity is not permitted to " + reading
	case KeyRefused:
		return "the key in setting " + r.Setting + " is refused"
	case KeysDisabled:
		return "the account does not accept keys"
	case Firewall:
		network := "this network"
		if r.Address != "" {
			network = r.Address
		}
		return fmt.Sprintf("the account's firewall refuses %s, which comes through the %s", network, r.Route)
	case Forbidden:
		return fmt.Sprintf("the account forbids to %s: its firewall does, or this machine's clock is far off", reading)
	case Missing:
		switch {
		case r.Leases:
			return fmt.Sprintf("there is no lease container %s in database %s", r.Container.ID, r.Container.Database)
		case r.Container.ID != "":
			return fmt.Sprintf("there is no container %s in database %s", r.Container.ID, r.Container.Database)
		case r.Container.Database != "":
			return fmt.Sprintf("there is no database %s in the account", r.Container.Database)
		}
		return "there is no such account"
	case Throttled:
		return "the account throttles: request units are used up, and it would not " + reading
	case Unavailable:
		return "the account could not " + reading
	default:
		return "the account rejects the request to " + reading
	}
}

// Advice returns what to do about it.
func (r *Refusal) Advice() string {
	advice, _ := r.remedy()
	return advice
}

// Command returns the command of the Azure CLI for that; "" where there is none.
func (r *Refusal) Command() string {
	_, command := r.remedy()
	return command
}

// dataReader is the id of the role Cosmos DB Built-in Data Reader, the same in every account.
const dataReader = "00000000-0000-0000-0000-000000000001"

func (r *Refusal) remedy() (advice, command string) {
	c, name := r.Container, azurecli.Cosmos.Resource(r.Account)
	switch r.Kind {
	case NotPermitted:
		switch {
		case r.Manager:
			return "give it the role Cosmos DB Operator at the account, or read and write of Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/throughputSettings (https://github.com/feedscale/feedscale/blob/main/docs/throughput.md)",
				azurecli.Assign("Cosmos DB Operator", cmp.Or(r.scope, azurecli.Cosmos.ID(r.Account)))
		case r.Doing != "":
			return "the data plane never lets an identity do this: set " + r.Setting + "__resourceId, to ask Azure Resource Manager (https://github.com/feedscale/feedscale/blob/main/docs/throughput.md)", ""
		}
		return "give it the role Cosmos DB Built-in Data Reader there", azurecli.InGroup("cosmosdb sql role assignment create", "--account-name", name, "--scope", "/",
			"--principal-id", azurecli.Principal, "--role-definition-id", dataReader)
	case KeyRefused:
		return "put a valid key into setting " + r.Setting, azurecli.InGroup("cosmosdb keys list", "--name", name, "--type", "connection-strings")
	case KeysDisabled:
		return fmt.Sprintf("set %s__accountEndpoint in place of the key, to use an identity", r.Setting), ""
	case Firewall, Forbidden:
		advice = "let this network through the account's firewall"
		switch r.Route {
		case ServiceEndpoint:
			return advice, azurecli.InGroup("cosmosdb network-rule add", "--name", name, "--virtual-network", "VNET", "--subnet", "SUBNET")
		case PrivateEndpoint:
			return advice, azurecli.InGroup("cosmosdb private-endpoint-connection approve", "--account-name", name, "--name", "CONNECTION")
		}
		return advice, azurecli.InGroup("cosmosdb update", "--name", name, "--ip-range-filter", "PRESENT_RANGES,"+cmp.Or(r.Address, azurecli.Address))
	case Missing:
		switch {
		case r.Leases:
			return "correct leaseContainerId, or create it", azurecli.InGroup("cosmosdb sql container create", "--account-name", name, "--database-name", c.Database,
				"--name", c.ID, "--partition-key-path", "/id")
		case c.ID != "":
			command = azurecli.InGroup("cosmosdb sql container list", "--account-name", name, "--database-name", c.Database, "--query", "[].name")
		case c.Database != "":
			command = azurecli.InGroup("cosmosdb sql database list", "--account-name", name, "--query", "[].name")
		}
		return "correct databaseId and containerId", command
	case Throttled:
		if r.Doing != "" {
			return "the next poll tries again", ""
		}
		if c.ID != "" {
			command = azurecli.InGroup("cosmosdb sql container throughput update", "--account-name", name, "--database-name", c.Database, "--name", c.ID, "--throughput", "REQUEST_UNITS")
		}
		return "raise its throughput, or poll less often", command
	case Serverless:
		return "leave throughput out for what is in this account", ""
	case SharedThroughput:
		return "name the database alone, without the container, or give the container throughput of its own", ""
	case NoThroughput:
		if r.Manager {
			return "check " + r.Setting + "__resourceId and the names of database and container", ""
		}
		return "give it throughput of its own, or leave it out", ""
	case NotAllowed:
		return "keep min and max within what the service allows", ""
	case Changed:
		return "it is left alone; the next poll reads it again", ""
	case Unavailable:
		return "the next poll tries again; if it stays so, look at the health of the account", ""
	default:
		return "check databaseId, containerId and leaseContainerId, and that the leases there are those of this container", ""
	}
}

// Detail returns the service's own message, if there is one, and what it means.
func (r *Refusal) Detail() string {
	if r.Words == "" {
		return r.Meaning()
	}
	return fmt.Sprintf("it says %q: %s", r.Words, r.Meaning())
}

// Error returns all of it in one sentence.
func (r *Refusal) Error() string {
	return "account " + r.Account + ": " + r.Detail() + ": " + r.Advice()
}
