package cosmos_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"

	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/cosmos/manager"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/refusal"
)

const accountID = "/subscriptions/00000000-0000-0000-0000-00000000000a/resourceGroups/shop/providers/Microsoft.DocumentDB/databaseAccounts/shop"

// throughput is what both ways to an account's throughput offer.
type throughput interface {
	ReadThroughput(context.Context, cosmos.Container) (cosmos.Throughput, error)
	ReplaceThroughput(context.Context, cosmos.Container, cosmos.Throughput, int) (cosmos.Throughput, error)
}

// managed serves the account's part of Azure Resource Manager, and returns the way through it.
func managed(t *testing.T, server *cosmosfake.Server, o cosmosfake.ManagerOptions, c *credential) *manager.Manager {
	t.Helper()
	o.Account = accountID
	o.Token = func(bearer string) error {
		switch bearer {
		case "good":
			return nil
		case "weak":
			return cosmosfake.ErrForbidden
		}
		return errors.New("another token")
	}
	served := httptest.NewTLSServer(server.Manager(o))
	t.Cleanup(served.Close)
	m, err := manager.New(manager.Options{
		ResourceID: accountID, Setting: "COSMOS", Credential: c, Client: policy.ClientOptions{Transport: bounded.Client(bounded.Bodies(served.Client().Transport)), Cloud: cloud.Configuration{
			Services: map[cloud.ServiceName]cloud.ServiceConfiguration{cloud.ResourceManager: {Endpoint: served.URL, Audience: served.URL}},
		}},
	})
	testworld.Must(t, err)
	return m
}

// waysTo are the two ways to the throughput of an account.
func waysTo(t *testing.T, server *cosmosfake.Server) map[string]throughput {
	t.Helper()
	return map[string]throughput{
		"by key":                       testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey),
		"by identity":                  managed(t, server, cosmosfake.ManagerOptions{Polls: 1}, &credential{token: "good"}),
		"by identity, with a Location": managed(t, server, cosmosfake.ManagerOptions{Polls: 1, ByLocation: true}, &credential{token: "good"}),
	}
}

// eachWay runs a test with an account of its own for each way. The account has the container fixed with
// 1,000 RU/s, auto with up to 4,000, and in the database both, which has 800, the container sharing.
func eachWay(t *testing.T, o cosmosfake.Options, test func(t *testing.T, server *cosmosfake.Server, way throughput)) {
	t.Helper()
	for _, name := range []string{"by key", "by identity", "by identity, with a Location"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := start(t, o)
			if !o.Serverless {
				testworld.Must(t, server.CreateContainer("shop", cosmosfake.ContainerSpec{ID: "fixed", PartitionKey: []string{"/id"}, Throughput: 1000}))
				sdk := testworld.SDK(t, server.ConnectionString())
				shared, auto := azcosmos.NewManualThroughputProperties(800), azcosmos.NewAutoscaleThroughputPropertiesWithIncrement(4000, 10)
				_, err := sdk.CreateDatabase(t.Context(), azcosmos.DatabaseProperties{ID: "both"}, &azcosmos.CreateDatabaseOptions{ThroughputProperties: &shared})
				testworld.Must(t, err)
				testworld.Must(t, server.CreateContainer("both", cosmosfake.ContainerSpec{ID: "sharing", PartitionKey: []string{"/id"}}))
				database, err := sdk.NewDatabase("shop")
				testworld.Must(t, err)
				_, err = database.CreateContainer(t.Context(), azcosmos.ContainerProperties{ID: "auto", PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/id"}}}, &azcosmos.CreateContainerOptions{ThroughputProperties: &auto})
				testworld.Must(t, err)
			}
			test(t, server, waysTo(t, server)[name])
		})
	}
}

var (
	fixed = cosmos.Container{Database: "shop", ID: "fixed"}
	auto  = cosmos.Container{Database: "shop", ID: "auto"}
	both  = cosmos.Container{Database: "both"}
)

// told returns what can be compared of a throughput.
func told(t cosmos.Throughput) string {
	return fmt.Sprintf("%d autoscale %t, at least %d, pending %t", t.RUPerSecond, t.Autoscale, t.Minimum, t.Pending)
}

func TestThroughputIsReadAndReplacedInStepsThatTheServiceAllows(t *testing.T) {
	t.Parallel()
	eachWay(t, cosmosfake.Options{}, func(t *testing.T, server *cosmosfake.Server, way throughput) {
		for _, c := range []struct {
			rule      string
			container cosmos.Container
			to        int
			read      string // before
			replaced  string
		}{
			{"manual", fixed, 2000, "1000 autoscale false, at least 400, pending false", "2000 autoscale false, at least 400, pending false"},
			{"back", fixed, 400, "2000 autoscale false, at least 400, pending false", "400 autoscale false, at least 400, pending false"},
			{"autoscale, of its maximum", auto, 6000, "4000 autoscale true, at least 1000, pending false", "6000 autoscale true, at least 1000, pending false"},
			{"of a database", both, 900, "800 autoscale false, at least 400, pending false", "900 autoscale false, at least 400, pending false"},
			{"more than the partitions serve", fixed, 10_100, "400 autoscale false, at least 400, pending false", "10100 autoscale false, at least 400, pending true"},
		} {
			read, err := way.ReadThroughput(t.Context(), c.container)
			testworld.Must(t, err)
			if got := told(read); got != c.read {
				t.Errorf("%s: read %s, want %s", c.rule, got, c.read)
			}
			replaced, err := way.ReplaceThroughput(t.Context(), c.container, read, c.to)
			testworld.Must(t, err)
			if got := told(replaced); got != c.replaced {
				t.Errorf("%s: replaced %s, want %s", c.rule, got, c.replaced)
			}
			again, err := way.ReadThroughput(t.Context(), c.container)
			testworld.Must(t, err)
			if told(again) != told(replaced) {
				t.Errorf("%s: read %s after %s", c.rule, told(again), told(replaced))
			}
		}
		sdk, err := testworld.SDK(t, server.ConnectionString()).NewContainer("shop", "auto")
		testworld.Must(t, err)
		seen, err := sdk.ReadThroughput(t.Context(), nil)
		testworld.Must(t, err)
		if most, ok := seen.ThroughputProperties.AutoscaleMaxThroughput(); !ok || most != 6000 {
			t.Errorf("the SDK reads a maximum of %d", most)
		}
	})
}

func TestAThroughputThatCannotBeSaysWhyAndWhatMendsIt(t *testing.T) {
	t.Parallel()
	eachWay(t, cosmosfake.Options{}, func(t *testing.T, server *cosmosfake.Server, way throughput) {
		read, err := way.ReadThroughput(t.Context(), fixed)
		testworld.Must(t, err)
		of := func(_ cosmos.Throughput, err error) error { return err }
		for _, c := range []struct {
			rule string
			err  error
			kind refusal.Kind
			text string
		}{
			{"it shares the database's", of(way.ReadThroughput(t.Context(), cosmos.Container{Database: "both", ID: "sharing"})), "no throughput",
				"container both/sharing has no throughput of its own (a container may share that of its database)"},
			{"neither has any", of(way.ReadThroughput(t.Context(), orders)), "no throughput", "container shop/orders has no throughput"},
			{"nor has the database", of(way.ReadThroughput(t.Context(), cosmos.Container{Database: "shop"})), "no throughput", "database shop has no throughput"},
			{"below the minimum", of(way.ReplaceThroughput(t.Context(), fixed, read, 300)), "not allowed", "valid throughput values between 400 and 1000000"},
			{"not in steps of 100", of(way.ReplaceThroughput(t.Context(), fixed, read, 450)), "not allowed", "keep min and max within what the service allows"},
		} {
			refused, ok := errors.AsType[*refusal.Error](c.err)
			if !ok || refused.Kind != c.kind || !strings.Contains(fmt.Sprint(c.err), c.text) || refused.Remedy == "" {
				t.Errorf("%s: %v", c.rule, c.err)
			}
		}
		if now, err := way.ReadThroughput(t.Context(), fixed); err != nil || now.RUPerSecond != 1000 {
			t.Errorf("what was refused was made: %v, %v", now, err)
		}
	})
}

func TestAServerlessAccountIsRecognised(t *testing.T) {
	t.Parallel()
	eachWay(t, cosmosfake.Options{Serverless: true}, func(t *testing.T, _ *cosmosfake.Server, way throughput) {
		_, err := way.ReadThroughput(t.Context(), orders)
		if refused, ok := errors.AsType[*refusal.Error](err); !ok || refused.Kind != "serverless" || !strings.Contains(err.Error(), "leave throughput out") {
			t.Errorf("%v", err)
		}
	})
}

// TestSomebodyElsesChangeIsNotOverwritten changes the throughput between the read and the write.
func TestSomebodyElsesChangeIsNotOverwritten(t *testing.T) {
	t.Parallel()
	eachWay(t, cosmosfake.Options{}, func(t *testing.T, server *cosmosfake.Server, way throughput) {
		read, err := way.ReadThroughput(t.Context(), fixed)
		testworld.Must(t, err)
		other := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey)
		before, err := other.ReadThroughput(t.Context(), fixed)
		testworld.Must(t, err)
		_, err = other.ReplaceThroughput(t.Context(), fixed, before, 3000)
		testworld.Must(t, err)
		_, err = way.ReplaceThroughput(t.Context(), fixed, read, 2000)
		if refused, ok := errors.AsType[*refusal.Error](err); !ok || refused.Kind != "changed" || !strings.Contains(err.Error(), "left alone") {
			t.Errorf("%v", err)
		}
		if now, err := way.ReadThroughput(t.Context(), fixed); err != nil || now.RUPerSecond != 3000 {
			t.Errorf("it has %d RU/s now, %v", now.RUPerSecond, err)
		}
	})
}

// TestAnOfferKeepsWhatTheSDKKnowsOfIt has azcosmos write an offer back: with the increment by which the
// service raises its maximum, and on the condition that nobody else has changed it.
func TestAnOfferKeepsWhatTheSDKKnowsOfIt(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{})
	testworld.Must(t, server.CreateContainer("shop", cosmosfake.ContainerSpec{ID: "fixed", PartitionKey: []string{"/id"}, Throughput: 1000}))
	const offer = `{"id":"Ab-C","_rid":"Ab-C","_etag":"\"1\"","_self":"offers/Ab-C/","resource":"dbs/","offerVersion":"V2","offerType":"","content":{"offerAutopilotSettings":{"maxThroughput":1000,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":10}}}}}`
	server.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		switch r.Kind {
		case cosmosfake.ListOffers:
			return &cosmosfake.Answer{Status: 200, Body: `{"Offers":[` + offer + `]}`}
		case cosmosfake.ReadOffer:
			return &cosmosfake.Answer{Status: 200, Body: offer}
		}
		return nil
	})
	var sent []byte
	a, err := cosmos.NewAccount(cosmos.Options{Endpoint: server.Endpoint(), Setting: "COSMOS", Key: cosmosfake.WellKnownKey, Concurrency: 4, Transport: transport(func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPut {
			if got := r.Header.Get("If-Match"); got != `"1"` {
				t.Errorf("If-Match is %q", got)
			}
			sent = make([]byte, r.ContentLength)
			_, err := r.Body.Read(sent)
			if err != nil {
				return nil, err
			}
			return nil, errors.New("not sent")
		}
		return http.DefaultTransport.RoundTrip(r)
	})})
	testworld.Must(t, err)
	read, err := a.ReadThroughput(t.Context(), fixed)
	testworld.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := a.ReplaceThroughput(ctx, fixed, read, 5000); err == nil {
		t.Error("what was not sent was answered")
	}
	if got, want := testworld.Canonical(t, sent), testworld.Canonical(t, []byte(strings.Replace(offer, `"maxThroughput":1000`, `"maxThroughput":5000`, 1))); got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
}

// transport is a function as one.
type transport func(*http.Request) (*http.Response, error)

func (f transport) Do(r *http.Request) (*http.Response, error) { return f(r) }

func TestWritesGoToTheRegionThatTakesThem(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{Regions: []string{"West Europe", "North Europe"}})
	testworld.Must(t, server.CreateContainer("shop", cosmosfake.ContainerSpec{ID: "fixed", PartitionKey: []string{"/id"}, Throughput: 1000}))
	server.Failover(otherRegion)
	a, err := cosmos.NewAccount(cosmos.Options{Endpoint: server.Endpoint(), Setting: "COSMOS", Key: cosmosfake.WellKnownKey, Concurrency: 4, Region: "westeurope"})
	testworld.Must(t, err)
	read, err := a.ReadThroughput(t.Context(), fixed)
	testworld.Must(t, err)
	replaced, err := a.ReplaceThroughput(t.Context(), fixed, read, 2000)
	if err != nil || replaced.RUPerSecond != 2000 {
		t.Errorf("%v, %v", replaced, err)
	}
}

func TestAnIdentityIsToldWhereItMayAsk(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{Token: func(string) error { return nil }})
	testworld.Must(t, server.CreateContainer("shop", cosmosfake.ContainerSpec{ID: "fixed", PartitionKey: []string{"/id"}, Throughput: 1000}))
	for rule, c := range map[string]struct {
		way  throughput
		text string
	}{
		"of the data plane, which lets no identity do this":  {withIdentity(t, server.Endpoint(), &credential{token: "good"}), "set COSMOS__resourceId"},
		"of Azure Resource Manager, without the role":        {managed(t, server, cosmosfake.ManagerOptions{}, &credential{token: "weak"}), "Cosmos DB Operator"},
		"of Azure Resource Manager, with a token of another": {managed(t, server, cosmosfake.ManagerOptions{}, &credential{token: "other"}), "Cosmos DB Operator"},
	} {
		_, err := c.way.ReadThroughput(t.Context(), fixed)
		if refused, ok := errors.AsType[*refusal.Error](err); !ok || refused.Kind != "not permitted" || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", rule, err)
		}
	}
}
