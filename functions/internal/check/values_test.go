package check

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/feedscale/feedscale/pkg/azurecli"
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/refusal"
)

// What the commands of the tool never meet where everything runs on one machine: hosts of Azure, and
// platforms.

const objectID = "11111111-2222-3333-4444-555555555555"

func TestATokenTellsWhoseItIs(t *testing.T) {
	t.Parallel()
	claims := func(text string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(text)) + ".c2lnbmF0dXJl"
	}
	for _, c := range []struct {
		rule, token string
		want        principal
	}{
		{"as oid", claims(`{"oid":"` + objectID + `","appid":"x"}`), objectID},
		{"what is no GUID is not repeated", claims(`{"oid":"$(reboot)","appid":"x"}`), ""},
		{"claims that are no JSON", claims(`oid`), ""},
		{"claims that are no base64", "e30.%%%.c2lnbmF0dXJl", ""},
		{"a token without parts", "opaque", ""},
	} {
		if got := principalOf(c.token); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.rule, got, c.want)
		}
	}
}

func TestAFailureToSignInRepeatsNoAnswer(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		rule string
		ctx  context.Context
		err  error
		want string
	}{
		{"a code of Microsoft Entra", t.Context(), errors.New(`{"error":"AADSTS700016: the application of eyJ0 was not found"}`), " (AADSTS700016)"},
		{"anything else", t.Context(), errors.New("eyJ0"), ""},
		{"no time", ended, errors.New("eyJ0"), " in time"},
	} {
		if got := tokenReason(c.ctx, c.err); got != c.want {
			t.Errorf("%s: got %q, want %q", c.rule, got, c.want)
		}
	}
}

func TestClocksMayDifferByAMinute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ahead  time.Duration
		status Status
		says   string
	}{
		{0, OK, "as the service's"},
		{-time.Second, OK, "as the service's"},
		{2 * time.Second, OK, "2s ahead of the service's"},
		{-time.Minute, OK, "1m0s behind the service's"},
		{time.Minute + 400*time.Millisecond, OK, "1m0s ahead of the service's"},
		{61 * time.Second, Fail, "this machine's clock is 1m1s ahead of the service's: "},
		{-time.Hour, Fail, "this machine's clock is 1h0m0s behind the service's: "},
	} {
		if got := clockFinding(c.ahead); got.status != c.status || !strings.HasPrefix(got.detail, c.says) || (got.fix != "") != (c.status == Fail) {
			t.Errorf("%s: got %+v, want %s, %s", c.ahead, got, c.status, c.says)
		}
	}
}

func TestAnEndpointHasThePortsAndTheNameOfItsService(t *testing.T) {
	t.Parallel()
	web := func(address string) serviceEndpoint { return httpEndpoint(address, "SETTING") }
	bus := func(namespace, connectionString string) serviceEndpoint {
		return busEndpoint(config.ServiceBusConnection{Setting: "SERVICEBUS", Namespace: namespace, ConnectionString: config.NewSecret(connectionString)})
	}
	for _, c := range []struct {
		rule       string
		endpoint   serviceEndpoint
		port, name string
		tls        bool
	}{
		{"an account in Azure", web("https://shop.documents.azure.com/"), "443", "shop.documents.azure.com", true},
		{"in another cloud", web("https://shop.documents.azure.us:443/"), "443", "shop.documents.azure.us", true},
		{"a stand-in", web("http://127.0.0.1:8081/"), "8081", "127.0.0.1:8081", false},
		{"plain text at its usual port", web("http://storage/"), "80", "storage", false},
		{"a namespace", bus("shop.servicebus.windows.net", "Endpoint=sb://shop.servicebus.windows.net/"), "5671", "shop.servicebus.windows.net", true},
		{"an emulator of one", bus("localhost", "Endpoint=sb://localhost/;UseDevelopmentEmulator=true"), "5672", "localhost:5672", false},
		{"at a port of its own", bus("127.0.0.1:4444", "Endpoint=sb://127.0.0.1:4444/;UseDevelopmentEmulator=true"), "4444", "127.0.0.1:4444", false},
	} {
		e := c.endpoint
		if e.port != c.port || e.name() != c.name || e.tls != c.tls {
			t.Errorf("%s: got %+v, called %s", c.rule, e, e.name())
		}
	}
}

func TestAnEndpointThatIsNotReachedIsFixedWhereTheServiceIs(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://shop.documents.azure.com/": "start what is to listen at shop.documents.azure.com:443, open it in the firewalls and security groups between, or correct setting COSMOS",
		"http://localhost:8081/":            "start what is to listen at localhost:8081, open it in the firewalls and security groups between, or correct setting COSMOS",
	} {
		if got := httpEndpoint(address, "COSMOS").unreached(errors.New("no route to host")); got.status != Fail || got.fix != want {
			t.Errorf("got  %+v\nwant %q", got, want)
		}
	}
}

func TestWhoAskedIsNamedInTheFixOfARefusal(t *testing.T) {
	t.Parallel()
	answer := fmt.Errorf("probing: %w", &refusal.Error{
		Meaning: "the identity is not permitted to read the account's metadata", Given: "403", Remedy: "give it the role Cosmos DB Operator",
		Command: azurecli.Assign("Cosmos DB Operator", azurecli.Cosmos.ID("")),
	})
	const role = " --role 'Cosmos DB Operator' --scope /subscriptions/SUBSCRIPTION/resourceGroups/RESOURCE_GROUP/providers/Microsoft.DocumentDB/databaseAccounts/ACCOUNT   # give it the role "
	for _, c := range []struct {
		rule   string
		err    error
		who    principal
		detail string
		fix    string // its beginning
	}{
		{"an application", answer, objectID, "the identity is not permitted to read the account's metadata (403)",
			"az role assignment create --assignee-object-id " + objectID + role},
		{"who does not say", answer, "", "the identity is not permitted to read the account's metadata (403)",
			"az role assignment create --assignee-object-id OBJECT_ID" + role},
		{"a refusal without a command", &refusal.Error{Meaning: "the account could not read the account's metadata", Given: "503", Remedy: "the next poll tries again"}, "", "the account could not read the account's metadata (503)", "the next poll tries again"},
		{"what is no refusal", errors.New("connection reset"), "", "connection reset", ""},
	} {
		if got := refused(c.err, c.who); got.status != Fail || got.detail != c.detail || !strings.HasPrefix(got.fix, c.fix) || (c.fix == "") != (got.fix == "") {
			t.Errorf("%s:\ngot  %+v\nwant %s, %s", c.rule, got, c.detail, c.fix)
		}
	}
}

func TestLinesKeepTheOrderOfTheirSections(t *testing.T) {
	t.Parallel()
	ready := make(chan struct{})
	slow, quick := &section{target: "slow"}, &section{target: "quick"}
	slow.try("dns", func(context.Context) finding { <-ready; return good("slow") })
	slower, _ := slow.child("", "slower", "orders")
	slower.try("dns", func(context.Context) finding { return good("slower") })
	quick.try("dns", func(context.Context) finding { close(ready); return good("quick") })
	var got []string
	for _, l := range runAll(t.Context(), 2, "", []*section{slow, quick}) {
		got = append(got, l.Target)
	}
	if fmt.Sprint(got) != "[slow slower quick]" {
		t.Errorf("got %s", got)
	}
}

// TestAfterAFailureTheCauseIsSaid: after a step has failed, the later steps of its target name it as
// the cause.
func TestAfterAFailureTheCauseIsSaid(t *testing.T) {
	t.Parallel()
	s := &section{target: "cosmos.example"}
	fails := func(context.Context) finding { return bad("fix", "no") }
	holds := func(context.Context) finding { return good("yes") }
	s.steps = []step{
		{check: "clock", beside: true, try: fails}, {check: "dns", try: fails}, {check: "connection", try: holds},
		{check: "identity", anyway: true, try: fails}, {check: "nothing", try: func(context.Context) finding { return finding{} }},
	}
	shop, _ := s.child("shop", "cosmos.example/shop", "orders")
	shop.try("read metadata", holds)
	var got []string
	for _, l := range s.run(t.Context(), 1, "") {
		got = append(got, fmt.Sprintf("%s %s", l.Check, l.Status))
		if l.Status == Skip && l.Detail != "not tried, since dns fails for cosmos.example" {
			t.Errorf("%s: %s", l.Check, l.Detail)
		}
	}
	if want := "[clock fail dns fail connection skip identity fail nothing skip read metadata skip]"; fmt.Sprint(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestWhatIsInterruptedNeitherHoldsNorFails(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	s := section{target: "cosmos.example"}
	s.try("dns", func(context.Context) finding {
		interrupt()
		return bad("correct it", "the host cannot be found")
	})
	s.try("connection", func(context.Context) finding { return good("it answers") })
	lines := s.run(ctx, 1, "")
	if l := lines[0]; l.Status != Skip || l.Detail != "not tried, since the check was interrupted" || l.Fix != nil {
		t.Errorf("got %+v", l)
	}
	if l := lines[1]; l.Status != Skip || l.Fix != nil {
		t.Errorf("got %+v", l)
	}
}

func TestMistakesOfTheConfigurationAreALineEach(t *testing.T) {
	t.Parallel()
	got := Misconfigured(errors.New("COSMOS: is missing\nFEEDSCALE_CONCURRENCY: is \"none\"\n"))
	if got.OK || len(got.Checks) != 2 || got.Checks[0].Detail != "COSMOS: is missing" || got.Checks[1].Status != Fail || got.Checks[1].Target != "configuration" {
		t.Errorf("got %+v", got)
	}
}
