package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/feedscale/feedscale/pkg/changefeed"
	client "github.com/feedscale/feedscale/pkg/cosmos"
	"github.com/feedscale/feedscale/pkg/emulator/cosmosfake"
	"github.com/feedscale/feedscale/pkg/estimator"
	"github.com/feedscale/feedscale/pkg/health"
)

// watcher measures processors as feedscale does, by the leases that their SDK keeps.
type watcher struct {
	transport *http.Transport
	account   *client.Account
	estimator *estimator.Estimator
	memory    map[string]health.Memory // by the words of status
}

func newWatcher(server *cosmosfake.Server, secure *tls.Config) (*watcher, error) {
	w := &watcher{transport: &http.Transport{}, estimator: estimator.New(4, time.Now), memory: map[string]health.Memory{}}
	if secure != nil {
		w.transport.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		leaf, err := x509.ParseCertificate(secure.Certificates[0].Certificate[0])
		if err != nil {
			return nil, err
		}
		w.transport.TLSClientConfig.RootCAs.AddCert(leaf)
	}
	var err error
	w.account, err = client.NewAccount(client.Options{
		Endpoint: server.Endpoint(), Setting: "COSMOS", Key: cosmosfake.WellKnownKey, Concurrency: 4, Transport: &http.Client{Transport: w.transport},
	})
	return w, err
}

// measure measures the processor of DATABASE CONTAINER LEASECONTAINER.
func (w *watcher) measure(ctx context.Context, words []string, from changefeed.StartFrom) (changefeed.ProcessorLag, error) {
	if len(words) != 3 {
		return changefeed.ProcessorLag{}, errors.New("it takes a database, a container and a lease container")
	}
	measured := w.estimator.EstimateAll(ctx, []estimator.Processor{{
		Name: words[1], AccountHost: w.account.Host(), StartFrom: from,
		Account: w.account, Container: client.Container{Database: words[0], ID: words[1]},
		LeaseAccount: w.account, LeaseContainer: client.Container{Database: words[0], ID: words[2]},
	}})[0]
	if problem := measured.Problem(); problem != "" {
		return changefeed.ProcessorLag{}, errors.New(problem)
	}
	return measured, nil
}

// lag answers with the lag, and the statuses of the partitions by this reading alone.
func (w *watcher) lag(ctx context.Context, words []string) (string, error) {
	measured, err := w.measure(ctx, words, changefeed.StartFrom{})
	if err != nil {
		return "", err
	}
	answer := fmt.Sprint(*measured.Lag())
	for _, p := range measured.Partitions {
		answer += " " + string(p.Status)
	}
	return answer, nil
}

// The policy for status: its limits are as short as the intervals of the programs.
const (
	stalledAfter    = 4 * time.Second
	leaseExpiration = 5 * time.Second
)

// status answers with the status of the processor by all the readings so far, and the kind of a
// stall. The processor starts from the beginning.
func (w *watcher) status(ctx context.Context, words []string) (string, error) {
	measured, err := w.measure(ctx, words, changefeed.StartFrom{Beginning: true})
	if err != nil {
		return "", err
	}
	key := fmt.Sprint(words)
	lag, memory := health.Assess(health.Input{
		Now: time.Now(), Lag: measured, Memory: w.memory[key],
		Policy: health.Policy{StalledAfter: stalledAfter, StalledPolls: 2, LeaseExpiration: leaseExpiration},
	})
	w.memory[key] = memory
	answer := string(lag.Status())
	for _, p := range lag.Partitions {
		if p.Stall != nil {
			answer += " " + string(p.Stall.Kind)
			break
		}
	}
	return answer, nil
}
