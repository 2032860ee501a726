package keda_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"

	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/emulator/testworld"
)

// asking is a ScaledObject that asks feedscale, as infra/keda/processor-external.yaml has it, at a
// pollingInterval in seconds.
func asking(kind string, w *watched, pollingInterval int32) kedav1alpha1.ScaledObjectSpec {
	return kedav1alpha1.ScaledObjectSpec{
		PollingInterval: &pollingInterval, CooldownPeriod: new(int32(0)), MinReplicaCount: new(int32(0)), MaxReplicaCount: new(int32(8)),
		Triggers: []kedav1alpha1.ScaleTriggers{{
			Type: kind, MetricType: autoscalingv2.AverageValueMetricType, Metadata: map[string]string{"scalerAddress": w.scaler, "processor": testworld.Orders},
		}},
	}
}

const (
	never = 3600 // a pollingInterval within which no test asks a second time
	often = 1
)

// sleeping waits until feedscale knows that nothing is pending.
func sleeping(t *testing.T, w *watched) {
	t.Helper()
	w.published(t, 0)
}

func TestAPushWakesWithinASecondOfTheDecision(t *testing.T) {
	w := watch(t, "", nil)
	sleeping(t, w)
	o := operate(t, 0, asking("external-push", w, never))
	testworld.Eventually(t, "the one time that it asks", func() bool { return o.inactive(t) })
	w.Write(testworld.Orders, 5)
	decided := w.published(t, 1)
	if took := o.await(t, 1).Sub(decided); took > time.Second {
		t.Errorf("KEDA set 1 replica %s after the decision was published", took)
	} else {
		t.Logf("KEDA set 1 replica %s after the decision was published", took)
	}
}

func TestTheHPAArrivesAtTheDecisionAndTheStepToZeroIsFeedscales(t *testing.T) {
	for _, kind := range []string{"external", "external-push"} {
		t.Run(kind, func(t *testing.T) {
			w := watch(t, ", cooldownPeriod: 2s, behavior: {scaleDown: {stabilizationWindowSeconds: 0}}, maxChangeAge: 0, startFrom: beginning", nil)
			sleeping(t, w)
			o := operate(t, 0, asking(kind, w, often))
			w.Write(testworld.Orders, 5)
			w.published(t, 1)
			o.await(t, 1)
			if got, err := o.hpa(t.Context()); got != 1 || err != nil {
				t.Errorf("the HPA computes %d, %v; want the decision", got, err)
			}
			w.Checkpoint(5)
			decided := w.published(t, 0)
			if at := o.await(t, 0); at.Before(decided.Add(-time.Second)) {
				t.Errorf("KEDA went to zero %s before the decision", decided.Sub(at))
			}
		})
	}
}

func TestAFloorHoldsThoughNothingIsPending(t *testing.T) {
	w := watch(t, ", minReplicaCount: 1", nil)
	w.published(t, 1)
	o := operate(t, 0, asking("external", w, often))
	o.await(t, 1)
	if got, err := o.hpa(t.Context()); got != 1 || err != nil {
		t.Errorf("the HPA computes %d, %v; want the floor", got, err)
	}
}

func TestWhileFeedscaleKnowsNothingKEDAFallsBack(t *testing.T) {
	w := watch(t, "", nil)
	w.Account.Control(func(r *cosmosfake.Request) *cosmosfake.Answer {
		if r.Header.Get("Authorization") == "" {
			return nil
		}
		return &cosmosfake.Answer{Status: 401}
	})
	w.kill(t) // whatever it measured before that
	testworld.Must(t, os.RemoveAll(filepath.Join(w.folder, "data")))
	w.start(t)
	for _, kind := range []string{"external", "external-push"} {
		t.Run(kind, func(t *testing.T) {
			spec := asking(kind, w, often)
			spec.Fallback = &kedav1alpha1.Fallback{FailureThreshold: 2, Replicas: 3}
			o := operate(t, 1, spec)
			testworld.Eventually(t, "the fallback", func() bool {
				got, err := o.hpa(t.Context())
				return err == nil && got == 3
			})
			if !o.fallingBack(t) {
				t.Error("KEDA does not say that a fallback applies")
			}
		})
	}
}

// TestWhileFeedscaleIsGoneTheReplicasStay is what docs/keda-external-scaler.md says of a fallback.
// KEDA asks an external scaler for the spec of its metric, and needs the spec before it can apply a
// fallback.
func TestWhileFeedscaleIsGoneTheReplicasStay(t *testing.T) {
	w := watch(t, ", minReplicaCount: 1", nil)
	w.published(t, 1)
	spec := asking("external-push", w, often)
	spec.Fallback = &kedav1alpha1.Fallback{FailureThreshold: 1, Replicas: 3}
	o := operate(t, 1, spec)
	if got, err := o.hpa(t.Context()); got != 1 || err != nil {
		t.Fatalf("the HPA computes %d, %v", got, err)
	}
	w.kill(t)
	for range 10 {
		if got, err := o.hpa(t.Context()); err == nil {
			t.Fatalf("the HPA computes %d of a feedscale that is gone", got)
		}
	}
	if got, err := o.replicas(t.Context()); got != 1 || err != nil {
		t.Errorf("%d replicas, %v; want those that were there", got, err)
	}
	w.start(t)
	testworld.Eventually(t, "an answer", func() bool {
		got, err := o.hpa(t.Context())
		return err == nil && got == 1
	})
}

// TestAPushComesThroughAfterFeedscaleWasKilled lets KEDA ask once before the kill. The push must
// then come on the stream that KEDA opened again. After a failed question, KEDA would have closed
// the connection until the next question.
func TestAPushComesThroughAfterFeedscaleWasKilled(t *testing.T) {
	w := watch(t, "", nil)
	sleeping(t, w)
	o := operate(t, 0, asking("external-push", w, never))
	testworld.Eventually(t, "the one time that it asks", func() bool { return o.inactive(t) })
	w.kill(t)
	w.Write(testworld.Orders, 5)
	w.start(t)
	decided := w.published(t, 1)
	took := o.await(t, 1).Sub(decided)
	t.Logf("KEDA set 1 replica %s after the decision was published", took)
	if took > 20*time.Second {
		t.Error("that is more than KEDA's first waits, 2, 4 and 8 s")
	}
}

func TestBothScalersSpeakTLSAndShowACertificate(t *testing.T) {
	ca, cert, key := certificates(t)
	folder := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(folder, name)
		testworld.Must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	w := watch(t, "", map[string]string{
		"FEEDSCALE_SCALER_CERT_FILE": file("tls.crt", cert), "FEEDSCALE_SCALER_KEY_FILE": file("tls.key", key), "FEEDSCALE_SCALER_CLIENT_CA_FILE": file("ca.crt", ca),
	})
	sleeping(t, w)
	scaler := func(auth map[string]string) *scalersconfig.ScalerConfig {
		return &scalersconfig.ScalerConfig{
			ScalableObjectName: deployment, ScalableObjectNamespace: namespace, AuthParams: auth, MetricType: autoscalingv2.AverageValueMetricType,
			TriggerMetadata: map[string]string{"scalerAddress": w.scaler, "processor": testworld.Orders, "enableTLS": "true"},
		}
	}
	trusted := map[string]string{"caCert": ca, "tlsClientCert": cert, "tlsClientKey": key}
	pull, err := scalers.NewExternalScaler(scaler(trusted))
	testworld.Must(t, err)
	defer pull.Close(t.Context())
	push, err := scalers.NewExternalPushScaler(scaler(trusted))
	testworld.Must(t, err)
	defer push.Close(t.Context())
	for _, s := range []scalers.Scaler{pull, push} {
		specs := s.GetMetricSpecForScaling(t.Context())
		if len(specs) != 1 {
			t.Fatalf("%T: %d metrics", s, len(specs))
		}
		if values, active, err := s.GetMetricsAndActivity(t.Context(), specs[0].External.Metric.Name); err != nil || active || len(values) != 1 || !values[0].Value.IsZero() {
			t.Errorf("%T: %v, %v, %v", s, values, active, err)
		}
	}
	pushed := make(chan bool)
	go push.Run(t.Context(), pushed)
	if <-pushed {
		t.Error("nothing to do is active")
	}
	w.Write(testworld.Orders, 5)
	if !<-pushed {
		t.Error("work is not active")
	}
	stranger, err := scalers.NewExternalScaler(scaler(map[string]string{"caCert": ca}))
	testworld.Must(t, err)
	defer stranger.Close(t.Context())
	if specs := stranger.GetMetricSpecForScaling(t.Context()); len(specs) != 0 {
		t.Error("who shows no certificate is answered")
	}
}

// certificates are, in PEM, a CA and what it signed for a server and a client on this machine.
func certificates(t *testing.T) (ca, cert, key string) {
	t.Helper()
	signing, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testworld.Must(t, err)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, signing.Public(), signing)
	testworld.Must(t, err)
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testworld.Must(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "feedscale"}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, authority, own.Public(), signing)
	testworld.Must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(own)
	testworld.Must(t, err)
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return text("CERTIFICATE", authorityDER), text("CERTIFICATE", der), text("PRIVATE KEY", private)
}
