package keda_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
	kedautil "github.com/kedacore/keda/v2/pkg/util"

	"github.com/feedscale/feedscale/pkg/emulator/servicebusfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
	"github.com/feedscale/feedscale/pkg/events/servicebus"
)

// busCertificate is that of the namespaces here, busPEM the same as text, and busRoots trusts it.
// KEDA trusts it, too: its client of the management API knows TLS alone, and reads what it trusts
// once in a process.
var busCertificate, busPEM, busRoots = func() (tls.Certificate, []byte, *x509.CertPool) {
	fail := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	fail(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	fail(err)
	folder, err := os.MkdirTemp("", "feedscale-ca")
	fail(err)
	defer os.RemoveAll(folder)
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	fail(os.WriteFile(filepath.Join(folder, "ca.pem"), text, 0o600))
	kedautil.SetCACertDirs([]string{folder})
	_ = kedautil.CreateHTTPClient(time.Second, false)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, text, roots
}()

// startBus starts a namespace with TLS and these queues.
func startBus(t *testing.T, queues ...string) *servicebusfake.Server {
	t.Helper()
	return testworld.StartNamespace(t, overTLS(queues...))
}

func overTLS(queues ...string) servicebusfake.Options {
	o := servicebusfake.Options{TLS: &tls.Config{Certificates: []tls.Certificate{busCertificate}}}
	for _, name := range queues {
		o.Queues = append(o.Queues, servicebusfake.QueueSpec{Name: name})
	}
	return o
}

// newSignals keeps signal queues as a tick of feedscale does.
func newSignals(t *testing.T, bus *servicebusfake.Server) *servicebus.Signals {
	t.Helper()
	p, err := servicebus.NewPublisher(bus.ConnectionString(), "replicas", servicebus.PublisherOptions{Client: azservicebus.ClientOptions{TLSConfig: &tls.Config{RootCAs: busRoots, ServerName: "127.0.0.1"}}})
	testworld.Must(t, err)
	s := servicebus.NewSignals(p, servicebus.SignalsOptions{})
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// rule is the scaler of infra/keda/processor-servicebus.yaml, and of the custom rule of a container
// app, which KEDA acts on.
func rule(t *testing.T, connection string, metadata map[string]string) scalers.Scaler {
	t.Helper()
	s, err := scalers.NewAzureServiceBusScaler(&scalersconfig.ScalerConfig{
		ScalableObjectName: "orders", ScalableObjectNamespace: "shop", TriggerType: "azure-servicebus", MetricType: autoscalingv2.AverageValueMetricType,
		TriggerMetadata: metadata, AuthParams: map[string]string{"connection": connection}, GlobalHTTPTimeout: 10 * time.Second,
	})
	testworld.Must(t, err)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

func countOne(queue string) map[string]string {
	return map[string]string{"queueName": queue, "messageCount": "1"}
}

// asked is what KEDA makes of a scaler: how many replicas the HPA is to have, and whether there is
// anything to do.
func asked(t *testing.T, s scalers.Scaler) (replicas int64, active bool, err error) {
	t.Helper()
	spec := s.GetMetricSpecForScaling(t.Context())[0].External
	values, active, err := s.GetMetricsAndActivity(t.Context(), spec.Metric.Name)
	if err != nil {
		return 0, false, err
	}
	target := spec.Target.AverageValue.MilliValue()
	return (values[0].Value.MilliValue() + target - 1) / target, active, nil
}

func TestTheServiceBusScalerAsksForWhatASignalQueueHolds(t *testing.T) {
	bus := startBus(t, "orders-replicas")
	signals, scaler := newSignals(t, bus), rule(t, bus.ConnectionString(), countOne("orders-replicas"))
	for _, replicas := range []int{0, 1, 7, 7, 3, 40, 0} {
		testworld.Must(t, signals.Keep(t.Context(), "orders-replicas", replicas))
		got, active, err := asked(t, scaler)
		if err != nil || got != int64(replicas) || active != (replicas > 0) {
			t.Errorf("%d signals: KEDA asks for %d, active %v, %v", replicas, got, active, err)
		}
	}
}

func TestTheServiceBusScalerNeverSeesFewerThanBothCountsOfAChange(t *testing.T) {
	for _, c := range []struct {
		rule      string
		instances int
		least     int64 // of counts between 3 and 9
	}{
		{"one instance", 1, 3},
		{"two at once, of which each may put back one that it took too much", 2, 1},
	} {
		t.Run(c.rule, func(t *testing.T) {
			bus := startBus(t, "orders-replicas")
			instances, scaler := make([]*servicebus.Signals, c.instances), rule(t, bus.ConnectionString(), countOne("orders-replicas"))
			for i := range instances {
				instances[i] = newSignals(t, bus)
			}
			testworld.Must(t, instances[0].Keep(t.Context(), "orders-replicas", 9))
			done := make(chan struct{})
			go func() {
				defer close(done)
				for i := range 60 {
					var all sync.WaitGroup
					for _, s := range instances {
						all.Go(func() {
							if err := s.Keep(t.Context(), "orders-replicas", 3+6*(i%2)); err != nil {
								t.Error(err)
							}
						})
					}
					all.Wait()
				}
			}()
			seen := map[int64]int{}
			for polling := true; polling; {
				select {
				case <-done:
					polling = false
				default:
				}
				replicas, _, err := asked(t, scaler)
				testworld.Must(t, err)
				if replicas < c.least {
					t.Errorf("KEDA asks for %d replicas, while between 3 and 9 are wanted", replicas)
				}
				seen[replicas]++
			}
			if len(seen) < 2 {
				t.Errorf("KEDA saw no change: %v", seen)
			}
		})
	}
}

func TestTheServiceBusScalerCountsWhatOthersHoldLocked(t *testing.T) {
	bus := startBus(t, "orders-replicas")
	signals, scaler := newSignals(t, bus), rule(t, bus.ConnectionString(), countOne("orders-replicas"))
	testworld.Must(t, signals.Keep(t.Context(), "orders-replicas", 4))
	client, err := azservicebus.NewClientFromConnectionString(bus.ConnectionString(), &azservicebus.ClientOptions{TLSConfig: &tls.Config{RootCAs: busRoots, ServerName: "127.0.0.1"}})
	testworld.Must(t, err)
	defer client.Close(t.Context())
	receiver, err := client.NewReceiverForQueue("orders-replicas", nil)
	testworld.Must(t, err)
	_, err = receiver.ReceiveMessages(t.Context(), 2, nil)
	testworld.Must(t, err)
	testworld.Must(t, signals.Keep(t.Context(), "orders-replicas", 4))
	if got, _, err := asked(t, scaler); err != nil || got != 4 {
		t.Errorf("KEDA asks for %d, %v", got, err)
	}
}

func TestTheServiceBusScalerSaysWhatIsWrong(t *testing.T) {
	bus := startBus(t, "orders-replicas")
	for _, c := range []struct {
		rule, connection, queue, want string
	}{
		{"there is no such queue", bus.ConnectionString(), "orders", "queue orders doesn't exist"},
		{"the key is another", strings.Replace(bus.ConnectionString(), servicebusfake.DefaultKey, "d3Jvbmc=", 1), "orders-replicas", "401"},
	} {
		if _, _, err := asked(t, rule(t, c.connection, countOne(c.queue))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.rule, err)
		}
	}
}

func TestTheServiceBusScalerAddsUpQueuesByAPattern(t *testing.T) {
	bus := startBus(t, "orders-replicas", "payments-replicas", "other")
	signals := newSignals(t, bus)
	for i, queue := range []string{"orders-replicas", "payments-replicas", "other"} {
		testworld.Must(t, signals.Keep(t.Context(), queue, 2+i))
	}
	got, _, err := asked(t, rule(t, bus.ConnectionString(), map[string]string{"queueName": ".*-replicas", "useRegex": "true", "operation": "sum", "messageCount": "1"}))
	if err != nil || got != 5 {
		t.Errorf("KEDA asks for %s, %v; want 5", fmt.Sprint(got), err)
	}
}

// TestTheServiceBusScalerWakesAConsumerOnItsSubscription is infra/keda/consumer.yaml with topicName
// and subscriptionName, as docs/consume.md has it under "Several consumers".
func TestTheServiceBusScalerWakesAConsumerOnItsSubscription(t *testing.T) {
	o := overTLS("orders")
	o.Topics = []servicebusfake.TopicSpec{{Name: "decisions", Subscriptions: []servicebusfake.SubscriptionSpec{{Name: "audit", RequiresSession: true}, {Name: "kubernetes"}}}}
	bus := testworld.StartNamespace(t, o)
	client, err := azservicebus.NewClientFromConnectionString(bus.ConnectionString(), &azservicebus.ClientOptions{TLSConfig: &tls.Config{RootCAs: busRoots, ServerName: "127.0.0.1"}})
	testworld.Must(t, err)
	defer client.Close(t.Context())
	on := func(metadata map[string]string) func(want int64) {
		metadata["messageCount"], metadata["topicName"] = "5", "decisions"
		scaler := rule(t, bus.ConnectionString(), metadata)
		return func(want int64) {
			t.Helper()
			if got, active, err := asked(t, scaler); err != nil || got != want || active != (want > 0) {
				t.Errorf("KEDA asks for %d, active %v, %v; want %d", got, active, err, want)
			}
		}
	}
	audit, kubernetes := on(map[string]string{"subscriptionName": "audit"}), on(map[string]string{"subscriptionName": "Kubernetes"})
	all := on(map[string]string{"subscriptionName": ".*", "useRegex": "true", "operation": "sum"})
	audit(0)
	kubernetes(0)
	sender, err := client.NewSender("decisions", nil)
	testworld.Must(t, err)
	for range 3 {
		testworld.Must(t, sender.SendMessage(t.Context(), &azservicebus.Message{Body: []byte("event"), SessionID: new("orders")}, nil))
	}
	audit(1)
	kubernetes(1)
	all(2) // six messages of five for each replica
	receiver, err := client.NewReceiverForSubscription("decisions", "kubernetes", &azservicebus.ReceiverOptions{ReceiveMode: azservicebus.ReceiveModeReceiveAndDelete})
	testworld.Must(t, err)
	for left := 3; left > 0; {
		got, err := receiver.ReceiveMessages(t.Context(), left, nil)
		testworld.Must(t, err)
		left -= len(got)
	}
	audit(1)
	kubernetes(0)
	for _, c := range []struct{ rule, topic, subscription string }{
		{"no such subscription", "decisions", "absent"},
		{"no such topic", "absent", "kubernetes"},
		{"a queue", "orders", "kubernetes"},
	} {
		_, _, err := asked(t, rule(t, bus.ConnectionString(), map[string]string{"topicName": c.topic, "subscriptionName": c.subscription}))
		if want := "subscription " + c.subscription + " doesn't exist in topic " + c.topic; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", c.rule, err)
		}
	}
}
