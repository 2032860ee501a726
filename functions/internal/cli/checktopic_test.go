package cli_test

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/feedscale/feedscale/functions/internal/check"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// Subscriptions are read over TLS, and a process reads its trusted certificates only once.
func TestATopicThatNobodySubscribesToIsSeenWhereItMayBe(t *testing.T) {
	t.Parallel()
	trust := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(trust.Close)
	certificate := testworld.CertificateOf(t, trust)
	const create = "az servicebus topic subscription create --resource-group RESOURCE_GROUP --namespace-name NAMESPACE --topic-name decisions --name CONSUMER"
	refuse := func(op servicebusfake.Op, receiver bool, answer servicebusfake.Answer) func(*servicebusfake.Request) *servicebusfake.Answer {
		return func(r *servicebusfake.Request) *servicebusfake.Answer {
			if r.Op != op || r.Receiver != receiver || r.Entity != "decisions" {
				return nil
			}
			return &answer
		}
	}
	mayNotReceive := refuse(servicebusfake.OpAttach, true, servicebusfake.Answer{Condition: "amqp:unauthorized-access", Keep: true})
	alone := servicebusfake.Options{Topics: []servicebusfake.TopicSpec{{Name: "decisions"}}}
	subscribed := func(names ...string) servicebusfake.Options {
		topic := servicebusfake.TopicSpec{Name: "decisions"}
		for _, name := range names {
			topic.Subscriptions = append(topic.Subscriptions, servicebusfake.SubscriptionSpec{Name: name})
		}
		return servicebusfake.Options{Topics: []servicebusfake.TopicSpec{topic}}
	}
	queue := servicebusfake.Options{Queues: []servicebusfake.QueueSpec{{Name: "decisions"}}}
	for _, c := range []struct {
		rule    string
		bus     servicebusfake.Options
		plain   bool
		control func(*servicebusfake.Request) *servicebusfake.Answer
		status  check.Status // "" = there is no line
		detail  string
		fix     string
	}{
		{"it has none", alone, false, nil, check.Warn, "the topic has no subscription, so that it drops every event", create},
		{"it has none, and what it is does not show otherwise", alone, false, mayNotReceive, check.Warn, "it drops every event", create},
		{"it has one", subscribed("kubernetes"), false, nil, check.OK, "the topic has 1 subscription", ""},
		{"it has two", subscribed("kubernetes", "audit"), false, nil, check.OK, "the topic has 2 subscriptions", ""},
		{"a queue", queue, false, nil, "", "", ""},
		{"a queue that may be managed, and not received from", queue, false, mayNotReceive, check.OK, "decisions is a queue, which needs none", ""},
		{"it may not be managed", alone, false, refuse(servicebusfake.OpHTTP, false, servicebusfake.Answer{Condition: "refused", Status: http.StatusUnauthorized, Keep: true}), check.Skip,
			"read them with the Manage right, or with the role Azure Service Bus Data Owner: check that decisions has a subscription if it is a topic, since a topic without one drops every event", ""},
		{"the management API is out of order", alone, false, refuse(servicebusfake.OpHTTP, false, servicebusfake.Answer{Condition: "refused", Status: http.StatusServiceUnavailable, Keep: true}), check.Skip,
			"answered 503: check that decisions has a subscription if it is a topic", ""},
		{"a development emulator", alone, true, nil, check.Skip, "without TLS is not asked for subscriptions: a topic without one drops every event", ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			t.Parallel()
			_, p := checking(t, cosmosfake.Options{})
			if !c.plain {
				c.bus.TLS = &tls.Config{Certificates: trust.TLS.Certificates}
				p.settings["SSL_CERT_FILE"] = certificate
			}
			bus := testworld.StartNamespace(t, c.bus)
			if c.control != nil {
				bus.Control(c.control)
			}
			p.settings["SERVICEBUS"], p.settings["FEEDSCALE_EVENTS"] = bus.ConnectionString(), "servicebus:SERVICEBUS/decisions"
			got, r := p.checkApart(t)
			if !got.OK {
				t.Errorf("it fails: %s", r.Stdout)
			}
			i := slices.IndexFunc(got.Checks, func(l check.Line) bool { return l.Check == "subscriptions" })
			if i < 0 {
				if c.status != "" {
					t.Errorf("no line: %s", r.Stdout)
				}
				return
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
