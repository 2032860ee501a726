package emulator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/feedscale/feedscale/pkg/emulator"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

func start(t *testing.T, o emulator.Options) *emulator.Emulator {
	t.Helper()
	e, err := emulator.Start(o)
	testworld.Must(t, err)
	t.Cleanup(func() { testworld.Must(t, e.Close()) })
	return e
}

// orders is a container of two ranges.
func orders() emulator.Container {
	return emulator.Container{Database: "shop", ContainerSpec: cosmosfake.ContainerSpec{ID: "orders", Partitions: 2}}
}

// TestAChangeFeedLoopMissesNothingThroughASplitAndAMerge reads with azcosmos as an application
// does.
func TestAChangeFeedLoopMissesNothingThroughASplitAndAMerge(t *testing.T) {
	t.Parallel()
	e := start(t, emulator.Options{Containers: []emulator.Container{orders()}, Control: "127.0.0.1:0"})
	client, err := azcosmos.NewClientFromConnectionString(e.Cosmos.ConnectionString(), nil)
	testworld.Must(t, err)
	c, err := client.NewContainer("shop", "orders")
	testworld.Must(t, err)
	seen := map[string]int{}
	all := azcosmos.FeedRange{MinInclusive: "", MaxExclusive: "FF"}
	next := &azcosmos.ChangeFeedOptions{FeedRange: &all}
	read := func() {
		t.Helper()
		for {
			page, err := c.ReadChangeFeed(t.Context(), next)
			testworld.Must(t, err)
			for _, text := range page.Items {
				seen[testworld.Decode[struct{ ID string }](t, text).ID]++
			}
			next = &azcosmos.ChangeFeedOptions{Continuation: &page.ContinuationToken}
			if len(page.Items) == 0 {
				return
			}
		}
	}
	write := func(from, to int) {
		for i := from; i < to; i++ {
			id := fmt.Sprint("order-", i)
			_, err := c.UpsertItem(t.Context(), azcosmos.NewPartitionKeyString(id), []byte(`{"id":"`+id+`"}`), nil)
			testworld.Must(t, err)
		}
	}
	check := func(written, atMost int) {
		t.Helper()
		for i := range written {
			if id := fmt.Sprint("order-", i); seen[id] < 1 || seen[id] > atMost {
				t.Errorf("%s was seen %d times", id, seen[id])
			}
		}
	}
	write(0, 20)
	read()
	if got := post(t, e, `{"split": {"database": "shop", "container": "orders", "range": "0"}}`); got.status != 200 || len(got.Ranges) != 2 {
		t.Errorf("the split is answered %+v", got)
	}
	write(20, 40)
	read()
	check(40, 1)
	if got := post(t, e, `{"merge": {"database": "shop", "container": "orders", "ranges": ["2", "3"]}}`); got.status != 200 || len(got.Ranges) != 1 {
		t.Errorf("the merge is answered %+v", got)
	}
	write(40, 60)
	read()
	// azcosmos 1.5.0 reads a merged range once for each continuation that it had.
	check(60, 2)
}

// posted is what POST /faults answers.
type posted struct {
	status int
	Ranges []string
	Error  string
}

func post(t *testing.T, e *emulator.Emulator, fault string) posted {
	t.Helper()
	response, err := http.Post(e.Control()+"/faults", "application/json", strings.NewReader(fault))
	testworld.Must(t, err)
	defer response.Body.Close()
	var got posted
	testworld.Must(t, json.NewDecoder(response.Body).Decode(&got))
	got.status = response.StatusCode
	return got
}

func reset(t *testing.T, e *emulator.Emulator) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, e.Control()+"/faults", nil)
	testworld.Must(t, err)
	response, err := http.DefaultClient.Do(request)
	testworld.Must(t, err)
	if response.Body.Close(); response.StatusCode != http.StatusNoContent {
		t.Errorf("the reset is answered %s", response.Status)
	}
}

// TestAFaultIsMetAsOftenAsItSays: after the reset no fault is left.
func TestAFaultIsMetAsOftenAsItSays(t *testing.T) {
	t.Parallel()
	e := start(t, emulator.Options{
		Cosmos: cosmosfake.Options{Regions: []string{"West", "East"}}, Containers: []emulator.Container{orders()}, Control: "127.0.0.1:0",
	})
	status := func() int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.Cosmos.RegionEndpoint(1), nil)
		testworld.Must(t, err)
		response, err := http.DefaultClient.Do(request)
		testworld.Must(t, err)
		response.Body.Close()
		return response.StatusCode
	}
	plain := status() // without a key, since only the difference counts
	for fault, want := range map[string][]int{
		`{"cosmos": {"kind": "read account", "status": 429, "substatus": 3200}}`:                  {429, plain, plain},
		`{"cosmos": {"kind": "read account", "status": 429, "times": 2}}`:                         {429, 429, plain},
		`{"cosmos": {"kind": "read account", "status": 503, "times": 0}}`:                         {503, 503, 503},
		`{"cosmos": {"kind": "read account", "status": 503, "region": "West"}}`:                   {plain, plain, plain},
		`{"region": {"name": "East", "state": "unavailable"}}`:                                    {503, 503, 503},
		`{"cosmos": {"kind": "query documents", "container": "orders", "status": 400}}`:           {plain, plain, plain},
		`{"cosmos": {"kind": "read account", "status": 200, "body": "{}", "headers": {"a":"b"}}}`: {200, plain, plain},
	} {
		if got := post(t, e, fault); got.status != 200 {
			t.Errorf("%s: %+v", fault, got)
		}
		for i, want := range want {
			if got := status(); got != want {
				t.Errorf("%s: answer %d is %d, want %d", fault, i, got, want)
			}
		}
		reset(t, e)
		if got := status(); got != plain {
			t.Errorf("%s: %d after the reset", fault, got)
		}
	}
	response, err := http.Get(e.Control() + "/faults")
	testworld.Must(t, err)
	defer response.Body.Close()
	var list struct{ Faults []any }
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil || len(list.Faults) != 0 {
		t.Errorf("%v, %v are left after the reset", list.Faults, err)
	}
}

func TestAQueueRefusesWhatAFaultSays(t *testing.T) {
	t.Parallel()
	e := start(t, emulator.Options{ServiceBus: servicebusfake.Options{Queues: []servicebusfake.QueueSpec{{Name: "events"}}}, Control: "127.0.0.1:0"})
	client, err := azservicebus.NewClientFromConnectionString(e.ServiceBus.ConnectionString(), &azservicebus.ClientOptions{RetryOptions: azservicebus.RetryOptions{MaxRetries: -1}})
	testworld.Must(t, err)
	defer client.Close(context.WithoutCancel(t.Context()))
	sender, err := client.NewSender("events", nil)
	testworld.Must(t, err)
	send := func() error {
		return sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("a")}, nil)
	}
	testworld.Must(t, send())
	if got := post(t, e, `{"serviceBus": {"operation": "send", "entity": "Events", "condition": "com.microsoft:server-busy", "description": "scripted"}}`); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	if err := send(); err == nil {
		t.Error("the message was taken")
	}
	testworld.Must(t, send())
	if got := len(e.ServiceBus.Messages("events")); got != 2 {
		t.Errorf("%d messages are in the queue, want 2", got)
	}
}

// TestTheSchemaAndTheServerTakeTheSameFaults compares both on each document.
func TestTheSchemaAndTheServerTakeTheSameFaults(t *testing.T) {
	t.Parallel()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(emulator.FaultsSchema)))
	testworld.Must(t, err)
	compiler := jsonschema.NewCompiler()
	testworld.Must(t, compiler.AddResource("faults.json", document))
	schema, err := compiler.Compile("faults.json")
	testworld.Must(t, err)
	e := start(t, emulator.Options{Containers: []emulator.Container{orders()}, Control: "127.0.0.1:0"})
	texts := map[string]bool{
		`{"cosmos": {"kind": "read change feed", "delayMs": 10}}`:                                                          true,
		`{"cosmos": {"kind": "read change feed", "database": "shop", "container": "orders", "range": "0", "break": true}}`: true,
		`{"cosmos": {"kind": "query documents", "emptyPage": true, "times": 3}}`:                                           true,
		`{"cosmos": {"kind": "query documents", "cutShort": true}}`:                                                        true,
		`{"cosmos": {"kind": "query documents"}}`:                                                                          false,
		`{"cosmos": {"kind": "query documents", "emptyPage": false}}`:                                                      false,
		`{"cosmos": {"kind": "query documents", "delayMs": 0}}`:                                                            false,
		`{"cosmos": {"kind": "query documents", "status": 99}}`:                                                            false,
		`{"cosmos": {"kind": "query documents", "status": 429, "times": -1}}`:                                              false,
		`{"cosmos": {"kind": "query documents", "status": 429, "headers": {"a": 1}}}`:                                      false,
		`{"cosmos": {"kind": "query documents", "status": 429, "retry": 1}}`:                                               false,
		`{"cosmos": {"kind": "nothing", "status": 429}}`:                                                                   false,
		`{"cosmos": {"status": 429}}`:                                                                                      false,
		`{"serviceBus": {"operation": "settle", "loseReply": true}}`:                                                       true,
		`{"serviceBus": {"operation": "receive", "drop": true, "delayMs": 1}}`:                                             true,
		`{"serviceBus": {"operation": "put-token", "condition": "amqp:unauthorized-access", "status": 401}}`:               true,
		`{"serviceBus": {"operation": "send", "condition": ""}}`:                                                           false,
		`{"serviceBus": {"operation": "send"}}`:                                                                            false,
		`{"serviceBus": {"operation": "nothing", "drop": true}}`:                                                           false,
		`{"split": {"database": "shop", "container": "orders", "range": "0", "durationMs": 1}}`:                            true,
		`{"split": {"database": "shop", "container": "orders"}}`:                                                           false,
		`{"merge": {"database": "shop", "container": "orders", "ranges": ["0", ""]}}`:                                      false,
		`{"region": {"name": "Local", "state": "online"}}`:                                                                 true,
		`{"region": {"name": "Local", "state": "slow"}}`:                                                                   false,
		`{"failover": {"name": "Local"}}`:                                                                                  true,
		`{"failover": {}}`:                                                                                                 false,
		`{"failover": {"name": "Local"}, "region": {"name": "Local", "state": "online"}}`:                                  false,
		`{"failure": {}}`: false,
		`{}`:              false,
		`[]`:              false,
	}
	// Each kind and operation that there is can be scripted.
	for _, kind := range cosmosfake.Kinds() {
		texts[fmt.Sprintf(`{"cosmos": {"kind": %q, "delayMs": 1}}`, kind)] = true
	}
	for _, operation := range servicebusfake.Ops() {
		texts[fmt.Sprintf(`{"serviceBus": {"operation": %q, "delayMs": 1}}`, operation)] = true
	}
	for text, want := range texts {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		testworld.Must(t, err)
		if got := schema.Validate(value) == nil; got != want {
			t.Errorf("%s: the schema says %t, want %t", text, got, want)
		}
		if got := post(t, e, text); (got.status == 200) != want || !want && got.Error == "" {
			t.Errorf("%s: the server answers %+v, want %t", text, got, want)
		}
	}
}

func TestAFaultOfWhatIsNotThereIsAConflict(t *testing.T) {
	t.Parallel()
	e := start(t, emulator.Options{Containers: []emulator.Container{orders()}, Control: "127.0.0.1:0"})
	for fault, says := range map[string]string{
		`{"split": {"database": "shop", "container": "orders", "range": "9"}}`:         "there is no such range",
		`{"merge": {"database": "shop", "container": "orders", "ranges": ["0", "0"]}}`: "they are no neighbours",
		`{"region": {"name": "Nowhere", "state": "hanging"}}`:                          `no region "Nowhere"; there are Local`,
		`{"failover": {"name": "Nowhere"}}`:                                            `no region "Nowhere"`,
	} {
		if got := post(t, e, fault); got.status != http.StatusConflict || !strings.Contains(got.Error, says) {
			t.Errorf("%s: %+v", fault, got)
		}
	}
}

// TestAnyTokenIsTakenOnLoopbackOnly also gets a token with DefaultAzureCredential. Clients need
// TLS; the snippets of docs/stand-ins.md test them.
func TestAnyTokenIsTakenOnLoopbackOnly(t *testing.T) {
	for _, o := range []emulator.Options{
		{Cosmos: cosmosfake.Options{Addr: "0.0.0.0:0"}}, {ServiceBus: servicebusfake.Options{Addr: ":0"}}, {Control: "[::]:0"}, {Control: "example.com:0"},
	} {
		o.AnyToken = true
		if e, err := emulator.Start(o); err == nil || !strings.Contains(err.Error(), "on loopback only") {
			t.Errorf("%+v: %v", o, err)
			if err == nil {
				e.Close()
			}
		}
	}
	e := start(t, emulator.Options{AnyToken: true, Containers: []emulator.Container{orders()}})
	endpoint, header := e.Identity()
	t.Setenv("IDENTITY_ENDPOINT", endpoint)
	t.Setenv("IDENTITY_HEADER", header)
	credential, err := azidentity.NewDefaultAzureCredential(nil)
	testworld.Must(t, err)
	token, err := credential.GetToken(t.Context(), policy.TokenRequestOptions{Scopes: []string{"https://cosmos.azure.com/.default"}})
	if err != nil || strings.Count(token.Token, ".") != 2 || time.Until(token.ExpiresOn) < 30*time.Minute {
		t.Fatalf("%v, until %s", err, token.ExpiresOn)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint+"?resource=a", nil)
	testworld.Must(t, err)
	request.Header.Set("X-IDENTITY-HEADER", "another")
	response, err := http.DefaultClient.Do(request)
	testworld.Must(t, err)
	if response.Body.Close(); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("another header is answered %s", response.Status)
	}
	// Without the option a token is refused.
	plain := start(t, emulator.Options{Control: "127.0.0.1:0"})
	if endpoint, header := plain.Identity(); endpoint != "" || header != "" {
		t.Errorf("tokens are served at %s", endpoint)
	}
}

// TestImportingTheEmulatorAddsNoModule holds what the package comment and docs/stand-ins.md
// promise.
func TestImportingTheEmulatorAddsNoModule(t *testing.T) {
	t.Parallel()
	listed, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".").Output()
	testworld.Must(t, err)
	for module := range strings.FieldsSeq(string(listed)) {
		if module != "github.com/feedscale/feedscale" {
			t.Errorf("it brings %s", module)
		}
	}
}
