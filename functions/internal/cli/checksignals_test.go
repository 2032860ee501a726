package cli_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"

	"github.com/feedscale/feedscale/functions/internal/check"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

const signalQueue = "orders-replicas"

// checkingSignals is checking with a processor that has a signal queue, in a namespace of these options.
func checkingSignals(t *testing.T, o servicebusfake.Options) (*servicebusfake.Server, feedscale) {
	t.Helper()
	_, p := checking(t, cosmosfake.Options{})
	o.Queues = append(o.Queues, servicebusfake.QueueSpec{Name: testworld.Queue})
	bus := testworld.StartNamespace(t, o)
	p.settings["SERVICEBUS"] = bus.ConnectionString()
	p.settings["FEEDSCALE_PROCESSORS"] = strings.Replace(p.settings["FEEDSCALE_PROCESSORS"], "changeFeedLagThreshold", "signalQueue: "+signalQueue+", changeFeedLagThreshold", 1)
	return bus, p
}

// sendOne sends an order to the signal queue.
func sendOne(t *testing.T, bus *servicebusfake.Server) {
	t.Helper()
	client, err := azservicebus.NewClientFromConnectionString(bus.ConnectionString(), nil)
	testworld.Must(t, err)
	defer client.Close(t.Context())
	sender, err := client.NewSender(signalQueue, nil)
	testworld.Must(t, err)
	testworld.Must(t, sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("an order")}, nil))
}

// forbid refuses links to the signal queue.
func forbid(bus *servicebusfake.Server, receiver bool) {
	bus.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
		if r.Op != servicebusfake.OpAttach || r.Entity != signalQueue || r.Receiver != receiver {
			return nil
		}
		return &servicebusfake.Answer{Condition: "amqp:unauthorized-access", Keep: true}
	})
}

func TestASignalQueueIsTriedWithWhatMendsIt(t *testing.T) {
	t.Parallel()
	right := servicebusfake.QueueSpec{Name: signalQueue}
	for _, c := range []struct {
		rule   string
		queues []servicebusfake.QueueSpec
		change func(*testing.T, *servicebusfake.Server)
		want   remedy // no check: all holds
	}{
		{"it is there", []servicebusfake.QueueSpec{right}, nil, remedy{}},
		{"it is not there", nil, nil, remedy{"/" + signalQueue, "keep signals", `queue "orders-replicas" does not exist`,
			"az servicebus queue create --resource-group RESOURCE_GROUP --namespace-name NAMESPACE --name orders-replicas --default-message-time-to-live P10675199DT2H48M5.4775807S"}},
		{"it requires sessions", []servicebusfake.QueueSpec{{Name: signalQueue, RequiresSession: true}}, nil, remedy{"/" + signalQueue, "keep signals", "requires sessions",
			"create it anew without requiresSession"}},
		{"it may not be received from", []servicebusfake.QueueSpec{right}, func(_ *testing.T, bus *servicebusfake.Server) { forbid(bus, true) },
			remedy{"/" + signalQueue, "keep signals", "is refused by Service Bus", "whose policy has the Listen right"}},
		{"it may not be sent to", []servicebusfake.QueueSpec{right}, func(_ *testing.T, bus *servicebusfake.Server) { forbid(bus, false) },
			remedy{"/" + signalQueue, "keep signals", "is refused by Service Bus", "whose policy has the Send right"}},
		{"it holds something else", []servicebusfake.QueueSpec{right}, sendOne,
			remedy{"/" + signalQueue, "keep signals", "holds messages that are no signals", "none"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			bus, p := checkingSignals(t, servicebusfake.Options{Queues: c.queues})
			if c.change != nil {
				c.change(t, bus)
			}
			got, r := p.check(t)
			if c.want.check != "" {
				wantOnly(t, got, c.want)
			} else if !got.OK || !strings.Contains(r.Stdout, "a development emulator without TLS is not asked") {
				t.Errorf("got %s", r.Stdout)
			}
		})
	}
}

// The settings are read over TLS, and whom to trust is read once in a process.
func TestTheSettingsOfASignalQueueAreLookedAtWhereTheyMayBeRead(t *testing.T) {
	t.Parallel()
	trust := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(trust.Close)
	certificate := testworld.CertificateOf(t, trust)
	for _, c := range []struct {
		rule   string
		queue  servicebusfake.QueueSpec
		refuse int // status of the management API
		status check.Status
		detail string
		fix    string
	}{
		{"nothing expires", servicebusfake.QueueSpec{}, 0, check.OK, "its messages have no time to live", ""},
		{"its messages expire", servicebusfake.QueueSpec{DefaultTTL: 14 * 24 * time.Hour}, 0, check.Fail, "its messages expire after P14D, all of them at about once",
			"az servicebus queue update --resource-group RESOURCE_GROUP --namespace-name NAMESPACE --name orders-replicas --default-message-time-to-live P10675199DT2H48M5.4775807S"},
		{"duplicates are detected, which does no harm", servicebusfake.QueueSpec{DuplicateDetectionWindow: time.Hour}, 0, check.OK, "no time to live", ""},
		{"they may not be read", servicebusfake.QueueSpec{}, http.StatusUnauthorized, check.Skip, "which takes the Manage right, or the role Azure Service Bus Data Owner: it answered 401: see that its default time to live is the longest", ""},
		{"the management API is out of order", servicebusfake.QueueSpec{}, http.StatusServiceUnavailable, check.Skip, "answered 503: see that its default time to live is the longest", ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			c.queue.Name = signalQueue
			bus, p := checkingSignals(t, servicebusfake.Options{TLS: trust.TLS.Clone(), Queues: []servicebusfake.QueueSpec{c.queue}})
			p.settings["SSL_CERT_FILE"] = certificate
			if c.refuse > 0 {
				bus.Control(func(r *servicebusfake.Request) *servicebusfake.Answer {
					if r.Op != servicebusfake.OpHTTP {
						return nil
					}
					return &servicebusfake.Answer{Condition: "refused", Status: c.refuse, Keep: true}
				})
			}
			got, r := p.checkApart(t)
			i := slices.IndexFunc(got.Checks, func(l check.Line) bool { return l.Check == "queue settings" })
			if i < 0 {
				t.Fatalf("no line: %s", r.Stdout)
			}
			l, fix := got.Checks[i], ""
			if l.Fix != nil {
				fix = *l.Fix
			}
			if l.Status != c.status || !strings.Contains(l.Detail, c.detail) || fix != c.fix || !slices.Equal(l.Processors, []string{"orders"}) {
				t.Errorf("got  %+v, fix %q\nwant %s, %s, %q", l, fix, c.status, c.detail, c.fix)
			}
		})
	}
}
