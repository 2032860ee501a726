package throughput_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/feedscale/feedscale/pkg/actions/throughput"
	"github.com/feedscale/feedscale/pkg/bounded"
	"github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/cosmos/manager"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
	"github.com/feedscale/feedscale/pkg/state/boltstore"
)

const accountID = "/subscriptions/00000000-0000-0000-0000-00000000000a/resourceGroups/shop/providers/Microsoft.DocumentDB/databaseAccounts/shop"

var (
	noon   = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	orders = cosmos.Container{Database: testworld.Database, ID: "orders"}
)

// identity gives a token.
type identity struct{}

func (identity) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "good", ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// shop is an account whose container orders has 1,000 RU/s, and a store.
type shop struct {
	t      *testing.T
	server *cosmosfake.Server
	way    throughput.Client
	store  state.Store
	now    time.Time
	log    bytes.Buffer // of all keepers
}

// eachWay runs a test with a shop of its own for each way to its throughput.
func eachWay(t *testing.T, test func(*testing.T, *shop)) {
	t.Helper()
	for _, name := range []string{"by key", "by identity"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newShop(t, name == "by identity"))
		})
	}
}

func newShop(t *testing.T, byIdentity bool) *shop {
	t.Helper()
	w := testworld.New(t, testworld.Options{})
	w.Create(cosmosfake.ContainerSpec{ID: "orders", PartitionKey: []string{"/id"}, Throughput: 1000})
	s := &shop{t: t, server: w.Account, way: testworld.Client(t, w.Account.Endpoint(), cosmosfake.WellKnownKey), now: noon}
	if byIdentity {
		served := httptest.NewTLSServer(w.Account.Manager(cosmosfake.ManagerOptions{Account: accountID}))
		t.Cleanup(served.Close)
		m, err := manager.New(manager.Options{
			ResourceID: accountID, Setting: "COSMOS", Credential: identity{}, Client: policy.ClientOptions{Transport: bounded.Client(bounded.Bodies(served.Client().Transport)), Cloud: cloud.Configuration{
				Services: map[cloud.ServiceName]cloud.ServiceConfiguration{cloud.ResourceManager: {Endpoint: served.URL, Audience: served.URL}},
			}},
		})
		testworld.Must(t, err)
		s.way = m
	}
	store, err := boltstore.Open(filepath.Join(t.TempDir(), "state.db"))
	testworld.Must(t, err)
	t.Cleanup(func() { testworld.Must(t, store.Close()) })
	s.store = store
	return s
}

// keeper is a new one, as after a start of the process.
func (s *shop) keeper() *throughput.Keeper {
	return &throughput.Keeper{Store: s.store, Log: slog.New(slog.NewTextHandler(&s.log, nil)), Open: func(setting string) (throughput.Client, error) {
		if setting != "COSMOS" {
			return nil, fmt.Errorf("the setting %s is missing", setting)
		}
		return s.way, nil
	}}
}

// following is a container, and what its processors want.
type following struct {
	*throughput.Container
	wants map[string]throughput.Want
}

// follow is the container orders, for processors that want replicas of 500 RU/s each.
func (s *shop) follow(apply bool, replicas ...int) following {
	f := following{&throughput.Container{Account: s.server.Endpoint(), Setting: "COSMOS", Container: orders, Client: s.way, Apply: apply,
		Policy: scaling.ThroughputPolicy{Max: 10_000, ScaleDownAfter: time.Hour}}, map[string]throughput.Want{}}
	for i, n := range replicas {
		name := fmt.Sprint("p", i)
		f.Processors = append(f.Processors, throughput.Processor{Name: name, RUPerReplica: 500})
		f.wants[name] = throughput.Want{Replicas: &n}
	}
	return f
}

// begin begins a turn of a keeper with a configuration.
func (s *shop) begin(ctx context.Context, k *throughput.Keeper, all []following) (turn *throughput.Turn, wants map[string]throughput.Want) {
	k.Containers, wants = nil, map[string]throughput.Want{}
	for _, f := range all {
		k.Containers = append(k.Containers, f.Container)
		maps.Copy(wants, f.wants)
	}
	return k.Begin(ctx, s.now), wants
}

// try runs a keeper once, and returns what it tells of the containers that are followed.
func (s *shop) try(ctx context.Context, k *throughput.Keeper, all ...following) []state.Container {
	s.t.Helper()
	turn, wants := s.begin(ctx, k, all)
	turn.Settle(ctx, wants)
	return turn.Shown("p0")
}

// settle is try, and fails where anything did.
func (s *shop) settle(k *throughput.Keeper, all ...following) []state.Container {
	s.t.Helper()
	s.log.Reset()
	shown := s.try(s.t.Context(), k, all...)
	if strings.Contains(s.log.String(), "cannot") {
		s.t.Fatal(s.log.String())
	}
	return shown
}

// provisioned reads what the container has.
func (s *shop) provisioned() int {
	s.t.Helper()
	read, err := s.way.ReadThroughput(s.t.Context(), orders)
	testworld.Must(s.t, err)
	return read.RUPerSecond
}

// provision is somebody else.
func (s *shop) provision(n int) {
	s.t.Helper()
	a := testworld.Client(s.t, s.server.Endpoint(), cosmosfake.WellKnownKey)
	read, err := a.ReadThroughput(s.t.Context(), orders)
	testworld.Must(s.t, err)
	_, err = a.ReplaceThroughput(s.t.Context(), orders, read, n)
	testworld.Must(s.t, err)
}

// remembered are the containers that have something to be given back.
func (s *shop) remembered() (all []state.Container) {
	s.t.Helper()
	documents, err := s.store.Documents(s.t.Context(), ".throughput")
	testworld.Must(s.t, err)
	for _, d := range documents {
		var c state.Container
		if testworld.Must(s.t, d.Decode(&c)); c.Found > 0 {
			all = append(all, c)
		}
	}
	return all
}

func (s *shop) want(what string, n int) {
	s.t.Helper()
	if got := s.provisioned(); got != n {
		s.t.Errorf("%s: %d RU/s are provisioned, want %d", what, got, n)
	}
}

func TestThroughputFollowsTheReplicasAndFallsLater(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, s *shop) {
		k := s.keeper()
		s.settle(k, s.follow(true, 1))
		s.want("what is enough", 1000)
		if n := len(s.remembered()); n != 0 {
			t.Errorf("%d containers are remembered of which nothing was changed", n)
		}
		s.settle(k, s.follow(true, 4, 2))
		s.want("two processors add up", 3000)
		s.settle(k, s.follow(true, 0, 0))
		s.want("less is enough, for no time yet", 3000)
		s.now = s.now.Add(time.Hour)
		s.settle(k, s.follow(true, 0, 0))
		s.want("an hour later, what was found", 1000)
	})
}

func TestNothingIsEverWrittenButToApply(t *testing.T) {
	t.Parallel()
	s := newShop(t, false)
	k := s.keeper()
	for hour := range 4 {
		s.now = noon.Add(time.Duration(hour) * time.Hour)
		out := s.settle(k, s.follow(false, hour*3))
		if want := max(1000, hour*1500); out[0].Decision.RUPerSecond != want {
			t.Errorf("hour %d: %d RU/s are recommended, want %d", hour, out[0].Decision.RUPerSecond, want)
		}
		s.settle(k)
	}
	if n := s.server.Requests().Requests[cosmosfake.ReplaceOffer]; n != 0 || len(s.remembered()) != 0 {
		t.Errorf("%d writes, and %v is remembered", n, s.remembered())
	}
}

func TestWhatWasFoundIsBackAfterEveryKindOfEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule string
		end  func(*shop) []following
	}{
		{"the processor is removed, or its throughput is off", func(*shop) []following { return nil }},
		{"it is paused", func(s *shop) []following {
			f := s.follow(true, 6)
			f.wants["p0"] = throughput.Want{Paused: true}
			return []following{f}
		}},
		{"apply becomes recommend", func(s *shop) []following { return []following{s.follow(false, 6)} }},
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restarted %t", c.rule, restarted), func(t *testing.T) {
				t.Parallel()
				eachWay(t, func(t *testing.T, s *shop) {
					k := s.keeper()
					s.settle(k, s.follow(true, 6))
					s.settle(k, s.follow(true, 7))
					s.want("while it is needed", 3500)
					if restarted {
						k = s.keeper()
					}
					s.settle(k, c.end(s)...)
					s.want("at the end", 1000)
					if !strings.Contains(s.log.String(), "throughput that was found is back") || len(s.remembered()) != 0 {
						t.Errorf("said %s, and %v is remembered", s.log.String(), s.remembered())
					}
				})
			})
		}
	}
}

// TestSomebodyElsesThroughputIsLeftAlone changes it under the keeper.
func TestSomebodyElsesThroughputIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, theirs := range []int{2000, 1000, 5000} { // 1000 is what was found
		t.Run(fmt.Sprint(theirs), func(t *testing.T) {
			t.Parallel()
			eachWay(t, func(t *testing.T, s *shop) {
				k := s.keeper()
				s.settle(k, s.follow(true, 6))
				s.settle(k, s.follow(true, 6)) // sees that the change was made
				s.provision(theirs)
				for range 2 {
					out := s.settle(k, s.follow(true, 8))
					if !strings.Contains(out[0].Note, fmt.Sprintf("somebody else provisioned %d RU/s in place of 3000", theirs)) {
						t.Errorf("said %q", out[0].Note)
					}
					s.want("while it is followed", theirs)
					k = s.keeper()
				}
				s.settle(k)
				s.want("at the end", theirs)
				if len(s.remembered()) != 0 {
					t.Errorf("%v is remembered", s.remembered())
				}
				s.settle(k, s.follow(true, 8))
				s.want("switched on again", max(theirs, 4000)) // what is found now is what is never lowered
			})
		})
	}
}

// mortal ends a process at the nth step that leaves it: nothing it does after that has any effect.
type mortal struct {
	state.Store
	throughput.Client
	left   int
	before bool // it ends before the step is made, not after
}

var errEnded = errors.New("the process has ended")

// step runs do, which changes something, unless the process has ended.
func (m *mortal) step(do func() error) error {
	m.left--
	if m.left < 0 || m.left == 0 && m.before {
		return errEnded
	}
	err := do()
	if m.left == 0 {
		return errEnded
	}
	return err
}

func (m *mortal) Put(ctx context.Context, d state.Document) (version state.Version, err error) {
	err = m.step(func() error {
		version, err = m.Store.Put(ctx, d)
		return err
	})
	return version, err
}

func (m *mortal) ReplaceThroughput(ctx context.Context, c cosmos.Container, from cosmos.Throughput, n int) (replaced cosmos.Throughput, err error) {
	err = m.step(func() error {
		replaced, err = m.Client.ReplaceThroughput(ctx, c, from, n)
		return err
	})
	return replaced, err
}

// TestNoEndBetweenTwoStepsLosesWhatWasFound ends the process before and after each of the steps that it
// makes while it raises, lowers and gives back, starts another one, and sees what becomes of it.
func TestNoEndBetweenTwoStepsLosesWhatWasFound(t *testing.T) {
	t.Parallel()
	const steps = 12 // more than a story makes
	ended := 0
	for n := 1; n <= steps; n++ {
		for _, before := range []bool{true, false} {
			s := newShop(t, false)
			m := &mortal{Store: s.store, Client: s.way, left: n, before: before}
			story := func(end int) bool {
				k := s.keeper()
				if end == 0 {
					k.Store, k.Open = m, func(string) (throughput.Client, error) { return m, nil }
				}
				for _, replicas := range []int{6, 6, 8, 8, -1} {
					var all []following
					if replicas > 0 {
						c := s.follow(true, replicas)
						if end == 0 {
							c.Client = m
						}
						all = append(all, c)
					}
					s.log.Reset()
					s.try(t.Context(), k, all...)
					switch said := s.log.String(); {
					case strings.Contains(said, "left alone"):
						t.Fatalf("step %d, before %t: took its own change for somebody else's: %s", n, before, said)
					case m.left <= 0 && end == 0:
						return false
					case strings.Contains(said, "cannot"):
						t.Fatal(said)
					}
					if replicas > 0 {
						s.want(fmt.Sprintf("step %d, before %t", n, before), replicas*500)
					}
				}
				return true
			}
			if !story(0) {
				ended++
				// Another process finds it removed, at once; and one more time, nothing is left to do.
				s.settle(s.keeper())
				s.settle(s.keeper())
				s.want(fmt.Sprintf("ended at step %d, before %t", n, before), 1000)
				if len(s.remembered()) != 0 {
					t.Errorf("ended at step %d: %v is remembered", n, s.remembered())
				}
				if !story(1) { // or it goes on
					t.Error("the other process ended, too")
				}
			}
			s.want("at the end", 1000)
		}
	}
	if ended < 10 || ended == 2*steps {
		t.Errorf("%d ends of %d prove nothing", ended, 2*steps)
	}
}

func TestTwoProcessesAtOnceDoNotChangeItTwice(t *testing.T) {
	t.Parallel()
	s := newShop(t, false)
	m := &mortal{Store: s.store, Client: s.way, left: 1}
	first := s.keeper()
	first.Store = m // its commit is made, and it learns no more of it
	if out := s.try(t.Context(), first, s.follow(true, 6)); !strings.Contains(out[0].Error, errEnded.Error()) {
		t.Fatal(out[0].Error)
	}
	stale := &late{Store: s.store, t: t}
	second := s.keeper()
	second.Store = stale
	s.log.Reset()
	s.try(t.Context(), second, s.follow(true, 8))
	s.want("nobody made a change", 1000)
	if s.log.Len() > 0 {
		t.Errorf("the loser of the commit said %s", s.log.String())
	}
}

// late is a store to which somebody else commits behind each load.
type late struct {
	state.Store
	t *testing.T
}

func (l *late) Documents(ctx context.Context, prefix string) ([]state.Document, error) {
	found, err := l.Store.Documents(ctx, prefix)
	testworld.Must(l.t, err)
	for _, d := range found {
		_, err := l.Put(ctx, d)
		testworld.Must(l.t, err)
	}
	return found, nil
}

func TestWhatCannotBeGivenBackIsSaid(t *testing.T) {
	t.Parallel()
	t.Run("its setting is gone", func(t *testing.T) {
		t.Parallel()
		s := newShop(t, false)
		c := s.follow(true, 6)
		c.Setting = "GONE"
		s.settle(s.keeper(), c)
		s.try(t.Context(), s.keeper())
		if text := s.log.String(); !strings.Contains(text, "1000 RU/s of shop/orders cannot be given back: the setting GONE is missing") || len(s.remembered()) != 1 {
			t.Errorf("said %s, and %v is remembered", text, s.remembered())
		}
	})
	t.Run("the service allows no less than more", func(t *testing.T) {
		t.Parallel()
		s := newShop(t, false)
		k := s.keeper()
		c := s.follow(true, 300)
		c.Policy.Max = 150_000
		s.settle(k, c)
		_, err := s.server.Split("shop", "orders", "0")
		testworld.Must(t, err)
		s.settle(k)
		if len(s.remembered()) != 1 {
			t.Errorf("it is pending, and %s", s.log.String())
		}
		for ranges := 2; ranges < 16; ranges++ {
			read, _, err := testworld.Client(t, s.server.Endpoint(), cosmosfake.WellKnownKey).Ranges(t.Context(), orders)
			testworld.Must(t, err)
			_, err = s.server.Split("shop", "orders", read[0].ID)
			testworld.Must(t, err)
		}
		s.settle(k)
		s.want("the least of 150,000", 1500)
	})
	t.Run("the container is gone", func(t *testing.T) {
		t.Parallel()
		s := newShop(t, false)
		k := s.keeper()
		s.settle(k, s.follow(true, 6))
		sdk, err := testworld.SDK(t, s.server.ConnectionString()).NewContainer("shop", "orders")
		testworld.Must(t, err)
		_, err = sdk.Delete(t.Context(), nil)
		testworld.Must(t, err)
		s.settle(k)
		if !strings.Contains(s.log.String(), "it is gone") || len(s.remembered()) != 0 {
			t.Errorf("said %s, and %v is remembered", s.log.String(), s.remembered())
		}
	})
}

func TestAFailureOfOneContainerKeepsNoOtherFromItsThroughput(t *testing.T) {
	t.Parallel()
	s := newShop(t, false)
	missing := s.follow(true, 6)
	missing.Container.Container.ID = "nothing"
	out := s.try(t.Context(), s.keeper(), missing, s.follow(true, 6))
	s.want("the other one", 3000)
	if out[0].Error == "" || out[0].Container != "nothing" {
		t.Errorf("%+v", out)
	}
}

// TestWhatAnEarlierReleaseProvisionedIsGivenBack begins with the row that releases up to 0.1 wrote, in the
// middle of a change: what follows is the same whether that was made or not.
func TestWhatAnEarlierReleaseProvisionedIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		for _, follows := range []bool{false, true} {
			t.Run(fmt.Sprintf("the change was made %t, and it is still followed %t", made, follows), func(t *testing.T) {
				t.Parallel()
				eachWay(t, func(t *testing.T, s *shop) {
					_, err := s.store.Put(t.Context(), state.Document{Name: ".throughput", Text: []byte(`{"format":2,"lines":0,"complete":false,"processor":".throughput",` +
						`"attemptedAt":"0001-01-01T00:00:00Z","lag":{"time":"0001-01-01T00:00:00Z","partitions":null,"requestCharge":0,"requests":0},"memory":{},"sequence":0,` +
						`"throughput":{"` + s.server.Endpoint() + `shop/orders":{"setting":"COSMOS","database":"shop","container":"orders","before":1000,"was":1000,"set":3000,"memory":{}}}}` + "\n")})
					testworld.Must(t, err)
					if made {
						s.provision(3000)
					}
					broken := s.keeper()
					broken.Store = &mortal{Store: s.store, left: 2, before: true} // which removes that row
					s.try(t.Context(), broken)
					if len(s.remembered()) != 1 || !strings.Contains(s.log.String(), "throughput cannot be settled") {
						t.Errorf("nothing is left of it: %s", s.log.String())
					}
					k := s.keeper()
					if follows {
						s.settle(k, s.follow(true, 6))
						s.want("while it is followed", 3000)
					}
					s.settle(k)
					s.want("at the end", 1000)
					if strings.Contains(s.log.String(), "left alone") || len(s.remembered()) > 0 {
						t.Errorf("said %s, and %v is remembered", s.log.String(), s.remembered())
					}
					if documents, err := s.store.Documents(t.Context(), ".throughput"); err != nil || len(documents) > 0 {
						t.Errorf("left is %q, %v", documents, err)
					}
				})
			})
		}
	}
}
