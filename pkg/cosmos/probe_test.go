package cosmos_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/pkg/changefeed"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/refusal"
)

// describe, glance and readFeed are what feedscale check tries.
func describe(ctx context.Context, a *cosmos.Account, c cosmos.Container) error {
	_, _, err := a.Describe(ctx, c)
	return err
}

func glance(ctx context.Context, a *cosmos.Account, c cosmos.Container) error {
	_, _, err := a.Glance(ctx, c)
	return err
}

func readFeed(ctx context.Context, a *cosmos.Account, c cosmos.Container) error {
	ranges, _, err := a.Ranges(ctx, c)
	if err == nil {
		_, _, err = a.FeedPage(ctx, c, changefeed.Position{Range: ranges[0].ID, Continuation: "*"})
	}
	return err
}

// probes are all there are, by the kind of request that each one is about.
func probes(a *cosmos.Account) map[cosmosfake.Kind]func(context.Context) error {
	return map[cosmosfake.Kind]func(context.Context) error{
		cosmosfake.ReadAccount: func(ctx context.Context) error { _, err := a.ProbeAccount(ctx); return err },
		cosmosfake.ReadDatabase: func(ctx context.Context) error {
			return describe(ctx, a, cosmos.Container{Database: orders.Database})
		},
		cosmosfake.ReadContainer:  func(ctx context.Context) error { return describe(ctx, a, orders) },
		cosmosfake.ReadRanges:     func(ctx context.Context) error { return readFeed(ctx, a, orders) },
		cosmosfake.ReadChangeFeed: func(ctx context.Context) error { return readFeed(ctx, a, orders) },
		cosmosfake.QueryDocuments: func(ctx context.Context) error { return glance(ctx, a, orders) },
	}
}

func TestAProbeOfWhatIsPermittedHolds(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{})
	for n := range 3 {
		testworld.Must(t, server.Upsert("shop", "orders", processor(0).DotNetPKOld(fmt.Sprint(n), testworld.At(0))))
	}
	for kind, probe := range probes(testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey)) {
		if err := probe(t.Context()); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestAProbeTellsWhatTheServiceSaid(t *testing.T) {
	t.Parallel()
	const message = `{"code":"Forbidden","message":"Request originated from %s through %s. This is blocked by your Cosmos DB account firewall settings."}`
	for _, c := range []struct {
		rule   string
		answer cosmosfake.Answer
		want   []string // in the text of the error
	}{
		{"a missing role", cosmosfake.Answer{Status: 403, Substatus: 5301}, []string{"(403/5301)"}},
		{"a refused key", cosmosfake.Answer{Status: 401}, []string{"(401)"}},
		{"the firewall, with the address it saw", cosmosfake.Answer{Status: 403, Body: fmt.Sprintf(message, "IP 203.0.113.7", "public internet")},
			[]string{"(403)", "refuses 203.0.113.7,", "through the public internet"}},
		{"the firewall, in its other words", cosmosfake.Answer{Status: 403, Body: fmt.Sprintf(message, "client IP 2001:db8::7", "public internet")},
			[]string{"(403)", "refuses 2001:db8::7,", "through the public internet"}},
		{"the firewall, by a service endpoint", cosmosfake.Answer{Status: 403, Body: fmt.Sprintf(message, "client VNET", "service endpoint")},
			[]string{"(403)", "through the service endpoint"}},
		{"the firewall, by a private endpoint", cosmosfake.Answer{Status: 403, Body: fmt.Sprintf(message, "client VNET", "private endpoint")},
			[]string{"(403)", "through the private endpoint"}},
		{"a body that is not what the firewall says", cosmosfake.Answer{Status: 403, Body: "<html>through"}, []string{"(403)"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			server := start(t, cosmosfake.Options{})
			a := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey)
			for kind, probe := range probes(a) {
				remove := server.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
					if r.Kind == kind {
						return &c.answer
					}
					return nil
				})
				var got *refusal.Error
				if err := probe(t.Context()); !errors.As(err, &got) {
					t.Errorf("%s: error %v is no refusal", kind, err)
				} else if slices.ContainsFunc(c.want, func(part string) bool { return !strings.Contains(got.Error(), part) }) {
					t.Errorf("%s: got %v, want %q", kind, got, c.want)
				} else if strings.ContainsAny(got.Error(), "\n<{") {
					t.Errorf("%s: the error repeats the answer: %v", kind, got)
				}
				remove()
			}
		})
	}
}

func TestAProbeTellsWhichNameIsWrong(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{})
	a := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey)
	nowhere := cosmos.Container{Database: "shop", ID: "nowhere"}
	for rule, err := range map[string]error{
		"the database": describe(t.Context(), a, cosmos.Container{Database: "nowhere"}), "the container": describe(t.Context(), a, nowhere), "the container of the feed": readFeed(t.Context(), a, nowhere),
		"the lease container": glance(t.Context(), a, nowhere),
	} {
		if got := (*refusal.Error)(nil); !errors.As(err, &got) || got.Status != 404 {
			t.Errorf("%s: %v, want a refusal with 404", rule, err)
		}
	}
}

func TestAProbeThatIsNotAnsweredIsNoRefusal(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	server := start(t, cosmosfake.Options{})
	for kind, probe := range probes(testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey)) {
		if err := probe(ended); err == nil || errors.As(err, new(*refusal.Error)) {
			t.Errorf("%s: %v, want an error that is no refusal", kind, err)
		}
	}
}

// TestAContainerMayBeCalledDocs: the path of its description ends as that of a list of documents does.
func TestAContainerMayBeCalledDocs(t *testing.T) {
	t.Parallel()
	server := start(t, cosmosfake.Options{})
	testworld.Must(t, server.CreateContainer("shop", cosmosfake.ContainerSpec{ID: "docs", PartitionKey: []string{"/id"}}))
	a := testworld.Client(t, server.Endpoint(), cosmosfake.WellKnownKey)
	docs := cosmos.Container{Database: "shop", ID: "docs"}
	if d, _, err := a.Describe(t.Context(), docs); err != nil || d.ID != "docs" {
		t.Errorf("%+v, %v", d, err)
	}
	testworld.Must(t, glance(t.Context(), a, docs))
}
