package cosmos

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"unicode"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/feedscale/feedscale/pkg/changefeed"
)

// RefusalKind is what a refusal means.
type RefusalKind int

// The kinds.
const (
	Rejected     RefusalKind = iota // the request itself is wrong for the service
	NotPermitted                    // the identity lacks a role
	KeyRefused                      // the key is not, or no longer, one of the account's
	KeysDisabled                    // the account takes identities alone
	Firewall                        // network rules, as the service says itself
	Forbidden                       // with a key: network rules or a clock that is off, which the service does not tell apart
	Missing                         // the database or the container does not exist
	Throttled
	Unavailable // the service cannot answer at the moment
)

// Refusal is the error of a request that the service answered and did not grant. Its text says what
// it means, what mends it, and what the service said itself.
type Refusal struct {
	Kind      RefusalKind
	Account   string    // host of the account
	Setting   string    // that connects to it
	Container Container // that was asked for; the ID is "" for its database, and both for the account
	Leases    bool      // it was asked for as a lease container
	Status    int       // of HTTP
	Substatus int       // x-ms-substatus; 0 where absent
	Route     Route     // by which the firewall saw the request come; "" where it does not say
	Address   string    // of this network, as the firewall saw it; "" where it does not say
	Words     string    // the service's own, on one line and bounded; "" where it had none
}

// Route is how a request reached an account, in the words of its firewall
// (https://learn.microsoft.com/azure/cosmos-db/nosql/troubleshoot-forbidden).
type Route string

// The routes.
const (
	PublicInternet  Route = "public internet"
	ServiceEndpoint Route = "service endpoint"
	PrivateEndpoint Route = "private endpoint"
)

// Substatus codes with 403.
const (
	substatusAccountNotFound = 1008 // the account is not in this region
	substatusKeysDisabled    = 5202 // only identities are accepted
)

// refusal is what an answer that is none of those asked for means.
func (a *Account) refusal(s subject, status, substatus int) *Refusal {
	r := &Refusal{
		Account: a.host, Setting: a.options.Setting, Container: s.container, Leases: s.leases,
		Status: status, Substatus: substatus,
	}
	identity := a.options.Key == ""
	switch {
	case (status == http.StatusUnauthorized || status == http.StatusForbidden) && identity:
		r.Kind = NotPermitted
	case status == http.StatusForbidden && substatus == substatusKeysDisabled:
		r.Kind = KeysDisabled
	case status == http.StatusUnauthorized:
		r.Kind = KeyRefused
	case status == http.StatusForbidden:
		r.Kind = Forbidden
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

// refused is the Refusal of an answer, with what its body says.
func (a *Account) refused(s subject, answer *http.Response) *Refusal {
	r := a.refusal(s, answer.StatusCode, substatus(answer))
	body, err := runtime.Payload(answer)
	if err != nil {
		return r
	}
	r.Words = wordsOf(body)
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

// maxWords bounds what is repeated of an answer, in characters.
const maxWords = 300

// afterWords begins what the service adds to its messages for its own support.
var afterWords = regexp.MustCompile(`(?i)\s*,?\s*\b(ActivityId:|Request URI:|RequestStats:|Learn more:).*`)

// signature is what a message must not repeat, should it ever.
var signature = regexp.MustCompile(`(?i)(sig(nature)?(=|%3d))[^\s'",;&]+`)

// wordsOf is the message of an answer's body, without what is for support alone.
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
	words = strings.Join(strings.FieldsFunc(words, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	words = signature.ReplaceAllString(afterWords.ReplaceAllString(words, ""), "$1REDACTED")
	if runes := []rune(words); len(runes) > maxWords {
		words = string(runes[:maxWords]) + "…"
	}
	return words
}

// subject is what a request was about, for messages.
type subject struct {
	container Container // its ID is "" for a database, and both for the account
	leases    bool      // it is read as a lease container
}

// reading is what was to be done.
func (s subject) reading() string {
	switch {
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

// Meaning says what the answer means, with its status.
func (r *Refusal) Meaning() string {
	code := fmt.Sprintf("(%d)", r.Status)
	if r.Substatus != 0 {
		code = fmt.Sprintf("(%d/%d)", r.Status, r.Substatus)
	}
	return r.meaning() + " " + code
}

func (r *Refusal) meaning() string {
	reading := subject{r.Container, r.Leases}.reading()
	switch r.Kind {
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

// Advice says what mends it; "" where waiting does.
func (r *Refusal) Advice() string {
	switch r.Kind {
	case NotPermitted:
		return "give it the role Cosmos DB Built-in Data Reader there (az cosmosdb sql role assignment create)"
	case KeyRefused:
		return "put a valid key there (az cosmosdb keys list)"
	case KeysDisabled:
		return fmt.Sprintf("set %s__accountEndpoint in place of the key, to use an identity", r.Setting)
	case Firewall, Forbidden:
		return "let this network through the account's firewall"
	case Missing:
		return "correct databaseId and containerId"
	case Throttled:
		return "raise its throughput, or poll less often"
	case Unavailable:
		return "the next poll tries again; if it stays so, look at the health of the account"
	default:
		return "check databaseId, containerId and leaseContainerId, and that the leases there are those of this container"
	}
}

// Detail is what the service said itself, where it said something, and then what that means.
func (r *Refusal) Detail() string {
	if r.Words == "" {
		return r.Meaning()
	}
	return fmt.Sprintf("it says %q: %s", r.Words, r.Meaning())
}

// Error is all of it in one sentence.
func (r *Refusal) Error() string {
	return "account " + r.Account + ": " + r.Detail() + ": " + r.Advice()
}
