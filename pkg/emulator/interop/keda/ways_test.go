package keda_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"

	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

var table = flag.String("table", "", "file to write to how long each way takes, with the intervals that users have; without it they are a second, and nothing is written")

// pace is how often everything is done.
type pace struct {
	processors int
	schedule   string        // FEEDSCALE_TIMER_SCHEDULE
	tick       time.Duration // of the schedule
	hpa        time.Duration // between two queries of an HPA
	polling    func(sample int32) int32
}

// quick is for the test, usual for the table: feedscale's and the HPA's defaults, the samples'
// pollingInterval.
var (
	quick = pace{2, "* * * * * *", time.Second, time.Second, func(int32) int32 { return 1 }}
	usual = pace{20, "*/15 * * * * *", 15 * time.Second, 15 * time.Second, func(sample int32) int32 { return sample }}
)

// way brings the decisions of a fleet to the replicas of its Deployments. Those of KEDA have a
// trigger, the others an action of `feedscale consume`.
type way struct {
	name    string
	polling int32 // pollingInterval of the sample, in seconds
	signals bool  // each processor has a signal queue
	pushes  bool  // it is told by StreamIsActive, whose time is looked at, too
	trigger func(f *fleet, processor string) kedav1alpha1.ScaleTriggers
	consume func(t *testing.T, scaled func(processor string, replicas int, at time.Time)) (args []string)
}

var ways = []way{
	{name: "KEDA, `external-push`", polling: 15, pushes: true, trigger: func(f *fleet, processor string) kedav1alpha1.ScaleTriggers {
		return kedav1alpha1.ScaleTriggers{Type: "external-push", Metadata: map[string]string{"scalerAddress": f.scaler, "processor": processor}}
	}},
	{name: "KEDA, `metrics-api`", polling: 5, trigger: func(f *fleet, processor string) kedav1alpha1.ScaleTriggers {
		return kedav1alpha1.ScaleTriggers{Type: "metrics-api", Metadata: map[string]string{
			"url": f.api + "/api/processors/" + processor, "valueLocation": "desiredReplicas", "targetValue": "1", "activationTargetValue": "0",
		}}
	}},
	{name: "KEDA, `azure-servicebus` on a signal queue", polling: 10, signals: true, trigger: func(_ *fleet, processor string) kedav1alpha1.ScaleTriggers {
		return kedav1alpha1.ScaleTriggers{
			Type: "azure-servicebus", Metadata: map[string]string{"queueName": processor + "-replicas", "messageCount": "1", "activationMessageCount": "0"},
			AuthenticationRef: &kedav1alpha1.AuthenticationRef{Name: "servicebus"},
		}
	}},
	{name: "`consume --action kubernetes`", consume: func(t *testing.T, scaled func(string, int, time.Time)) []string {
		return []string{"--action", "kubernetes", "--kubeconfig", startCluster(t, scaled).kubeconfig(t)}
	}},
	{name: "`consume --action webhook`", consume: func(t *testing.T, scaled func(string, int, time.Time)) []string {
		receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			at := time.Now()
			var event struct {
				Subject string
				Data    struct{ DesiredReplicas int }
			}
			if json.NewDecoder(r.Body).Decode(&event) == nil {
				scaled(event.Subject, event.Data.DesiredReplicas, at)
			}
		}))
		t.Cleanup(receiver.Close)
		return []string{"--action", "webhook", "--url", receiver.URL}
	}},
}

// TestEachWayArrivesAtTheReplicasThatAreWanted has each way act on the same change, written at a
// random moment between two polls, from zero. With -table it writes how long that took.
func TestEachWayArrivesAtTheReplicasThatAreWanted(t *testing.T) {
	p := quick
	if *table != "" {
		p = usual
	}
	var text, pushes strings.Builder
	fmt.Fprintf(&text, "| way | `pollingInterval` | to the decision | to the first replica | to all %d |\n|---|---|---|---|---|\n", wanted)
	pushes.WriteString("\n| external scaler | from the decision to `StreamIsActive` |\n|---|---|\n")
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			f := startFleet(t, p.processors, p.schedule, w.signals)
			arrivals := p.act(t, f, w)
			var streams []*stream
			if w.pushes {
				streams = openStreams(t, f)
			}
			written := make(map[string]time.Time)
			var all []func()
			for _, name := range f.names {
				all = append(all, func() { written[name] = f.change(name) })
			}
			spread(t, p.tick, all)
			var decision, first, full []time.Duration
			for _, name := range f.names {
				testworld.Eventually(t, "the decision of "+name, func() bool { return !f.decidedAt(name).IsZero() })
				decision = append(decision, f.decidedAt(name).Sub(written[name]))
				full = append(full, arrivals.await(t, name, wanted).Sub(written[name]))
				first = append(first, arrivals.await(t, name, 1).Sub(written[name]))
				if most := arrivals.most(name); most != wanted {
					t.Errorf("%s had %d replicas, want %d", name, most, wanted)
				}
			}
			asks := ""
			if w.trigger != nil {
				asks = fmt.Sprintf("%d s", w.polling)
			}
			fmt.Fprintf(&text, "| %s | %s | %s | %s | %s |\n", w.name, asks, summary(decision), summary(first), summary(full))
			for _, s := range streams {
				var after []time.Duration
				for _, name := range f.names {
					after = append(after, s.arrivals.await(t, name, 1).Sub(f.decidedAt(name)))
				}
				fmt.Fprintf(&pushes, "| %s | %s |\n", s.name, summary(after))
			}
		})
	}
	t.Log("\n" + text.String() + pushes.String())
	if *table != "" && !t.Failed() {
		testworld.Must(t, os.WriteFile(*table, []byte(text.String()+pushes.String()), 0o600))
	}
}

// act starts a way, at a different moment for each processor, and returns its effect.
func (p pace) act(t *testing.T, f *fleet, w way) *arrivals {
	t.Helper()
	arrivals := newArrivals()
	if w.trigger == nil {
		f.program(t, nil, append([]string{"consume"}, w.consume(t, arrivals.note)...)...)
		return arrivals
	}
	operators := make(map[string]*operator)
	var all []func()
	for _, name := range f.names {
		all = append(all, func() { operators[name] = p.operate(t, f, w, name, arrivals) })
	}
	spread(t, time.Duration(p.polling(w.polling))*time.Second, all)
	for _, name := range f.names {
		testworld.Eventually(t, "KEDA's first question for "+name, func() bool { return operators[name].inactive(t) })
	}
	return arrivals
}

// operate has KEDA, and an HPA, act on the Deployment of a processor as the sample of a way has it.
func (p pace) operate(t *testing.T, f *fleet, w way, processor string, arrivals *arrivals) *operator {
	t.Helper()
	polling := p.polling(w.polling)
	trigger := w.trigger(f, processor)
	trigger.MetricType = autoscalingv2.AverageValueMetricType
	o := operate(t, 0, kedav1alpha1.ScaledObjectSpec{
		PollingInterval: &polling, CooldownPeriod: new(int32(0)), MinReplicaCount: new(int32(0)), MaxReplicaCount: new(int32(8)), Triggers: []kedav1alpha1.ScaleTriggers{trigger},
	}, secretOf(f)...)
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		for {
			select {
			case s := <-o.scaled:
				arrivals.note(processor, int(s.replicas), s.at)
			case <-ctx.Done():
				return
			}
		}
	})
	work.Go(func() { p.autoscale(ctx, o) })
	t.Cleanup(func() {
		cancel()
		work.Wait()
	})
	return o
}

// autoscale stands in for an HPA: from a random moment on it asks KEDA for the metric at its
// interval, while there is a replica, and sets what it computes of it. The behavior of the samples
// takes away the default's pace and windows.
func (p pace) autoscale(ctx context.Context, o *operator) {
	next := time.NewTimer(rand.N(p.hpa))
	defer next.Stop()
	for {
		select {
		case <-next.C:
			next.Reset(p.hpa)
		case <-ctx.Done():
			return
		}
		current, err := o.replicas(ctx)
		if err != nil || current == 0 {
			continue
		}
		if wants, err := o.hpa(ctx); err == nil && wants > 0 && int32(wants) != current && o.set(ctx, int32(wants)) == nil {
			o.scaled <- scaled{int32(wants), time.Now()}
		}
	}
}

// secretOf are the connection to the namespace, and how a trigger refers to it.
func secretOf(f *fleet) []client.Object {
	in := metav1.ObjectMeta{Name: "servicebus", Namespace: namespace}
	return []client.Object{
		&corev1.Secret{ObjectMeta: in, Data: map[string][]byte{"connection": []byte(f.bus.ConnectionString())}},
		&kedav1alpha1.TriggerAuthentication{ObjectMeta: in, Spec: kedav1alpha1.TriggerAuthenticationSpec{
			SecretTargetRef: []kedav1alpha1.AuthSecretTargetRef{{Parameter: "connection", Name: "servicebus", Key: "connection"}},
		}},
	}
}

// stream is KEDA's external-push scaler for each processor, at an external scaler.
type stream struct {
	name, address string
	arrivals      *arrivals
}

// openStreams opens those of both external scalers: that of the `feedscale run` that decides, and a
// `feedscale scaler` that asks its API. They are opened at different moments of a second, since the
// latter looks once a second from then on. It returns once each was told that there is nothing to
// do.
func openStreams(t *testing.T, f *fleet) []*stream {
	t.Helper()
	apart := testworld.FreeAddress(t)
	f.program(t, nil, "scaler", "--url", f.api, "--listen", apart)
	streams := []*stream{{"`feedscale run`", f.scaler, newArrivals()}, {"`feedscale scaler`, of an API", apart, newArrivals()}}
	var all []func()
	for _, s := range streams {
		for _, processor := range f.names {
			all = append(all, func() { s.follow(t, processor) })
		}
	}
	spread(t, time.Second, all)
	for _, s := range streams {
		for _, processor := range f.names {
			s.arrivals.await(t, processor, 0)
		}
	}
	return streams
}

// follow opens the stream of one processor, and notes what it is told until the end of the test.
func (s *stream) follow(t *testing.T, processor string) {
	t.Helper()
	scaler, err := scalers.NewExternalPushScaler(&scalersconfig.ScalerConfig{
		ScalableObjectName: processor, ScalableObjectNamespace: namespace, MetricType: autoscalingv2.AverageValueMetricType,
		TriggerMetadata: map[string]string{"scalerAddress": s.address, "processor": processor},
	})
	testworld.Must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	told := make(chan bool)
	go scaler.Run(ctx, told)
	go func() {
		for {
			select {
			case active := <-told:
				replicas := 0
				if active {
					replicas = 1
				}
				s.arrivals.note(processor, replicas, time.Now())
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		testworld.Must(t, scaler.Close(context.Background()))
	})
}

// arrivals are when each processor first had at least a count of replicas.
type arrivals struct {
	mu    sync.Mutex
	times map[string]map[int]time.Time
}

func newArrivals() *arrivals { return &arrivals{times: make(map[string]map[int]time.Time)} }

func (a *arrivals) note(processor string, replicas int, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.times[processor] == nil {
		a.times[processor] = make(map[int]time.Time)
	}
	for n := range replicas + 1 {
		if a.times[processor][n].IsZero() {
			a.times[processor][n] = at
		}
	}
}

// most is the highest count that a processor had.
func (a *arrivals) most(processor string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.times[processor]) - 1
}

func (a *arrivals) await(t *testing.T, processor string, replicas int) (at time.Time) {
	t.Helper()
	late := time.After(3 * testworld.Deadline)
	looks := time.NewTicker(20 * time.Millisecond)
	defer looks.Stop()
	for {
		a.mu.Lock()
		at = a.times[processor][replicas]
		a.mu.Unlock()
		if !at.IsZero() {
			return at
		}
		select {
		case <-looks.C:
		case <-late:
			t.Fatalf("%s never had %d replicas", processor, replicas)
		}
	}
}

// spread does things one after the other in a random order, each at a random moment of its share of
// a time, so that every way meets early and late moments alike.
func spread(t *testing.T, within time.Duration, things []func()) {
	t.Helper()
	began, share := time.Now(), within/time.Duration(len(things))
	for i, thing := range rand.Perm(len(things)) {
		select {
		case <-time.After(time.Until(began.Add(time.Duration(i)*share + rand.N(share)))):
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
		things[thing]()
	}
}

// summary is the median and the longest of some times.
func summary(times []time.Duration) string {
	slices.Sort(times)
	median := (times[(len(times)-1)/2] + times[len(times)/2]) / 2
	seconds := func(d time.Duration) string {
		if d < time.Second {
			return fmt.Sprintf("%.2f", d.Seconds())
		}
		return fmt.Sprintf("%.1f", d.Seconds())
	}
	return seconds(median) + " s, " + seconds(times[len(times)-1]) + " s"
}
