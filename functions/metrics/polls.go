package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// polls counts what this process has polled of each processor. There may be thousands, and a vector of the
// library's takes twenty times the memory.
type polls struct {
	total, decisions, requests, charge *prometheus.Desc

	mu sync.Mutex
	of map[string]*polled
}

// polled are the counts of one processor: of its polls by pollResults, of its decisions by directions.
type polled struct {
	polls            [3]uint64
	decisions        [3]uint64
	requests, charge float64
}

var (
	pollResults = [3]string{resultComplete, resultIncomplete, resultFailed}
	directions  = [3]scaling.Direction{scaling.Out, scaling.In, scaling.None}
)

func newPolls(processors []string) *polls {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, append([]string{"processor"}, labels...), nil)
	}
	p := &polls{
		total:     desc("feedscale_polls_total", "Polls of a processor by this process: complete, incomplete where a partition is unknown, failed where all of it is.", "result"),
		decisions: desc("feedscale_decisions_total", "Decisions of this process on a processor, by where they move its replicas.", "direction"),
		requests:  desc("feedscale_requests_total", "HTTP requests that this process made to Cosmos DB for a processor; a shared one counts once."),
		charge:    desc("feedscale_request_charge_total", "Request units that this process spent at Cosmos DB for a processor; a shared request counts once."),
		of:        make(map[string]*polled, len(processors)),
	}
	for _, name := range processors {
		p.of[name] = &polled{}
	}
	return p
}

// add counts a poll. It is safe for concurrent use.
func (p *polls) add(s state.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of := p.of[s.Processor]
	if of == nil {
		of = &polled{}
		p.of[s.Processor] = of
	}
	for i, result := range pollResults {
		if result == pollResult(s) {
			of.polls[i]++
		}
	}
	for i, direction := range directions {
		if s.Decision != nil && s.Decision.Direction == direction {
			of.decisions[i]++
		}
	}
	of.requests += float64(s.Lag.Requests)
	of.charge += s.Lag.Charge
}

// Describe implements prometheus.Collector.
func (p *polls) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{p.total, p.decisions, p.requests, p.charge} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (p *polls) Collect(to chan<- prometheus.Metric) {
	p.mu.Lock()
	defer p.mu.Unlock()
	counter := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
	}
	for name, of := range p.of {
		for i, n := range of.polls {
			counter(p.total, float64(n), name, pollResults[i])
		}
		for i, n := range of.decisions {
			counter(p.decisions, float64(n), name, string(directions[i]))
		}
		counter(p.requests, of.requests, name)
		counter(p.charge, of.charge, name)
	}
}

func pollResult(s state.State) string {
	switch {
	case s.Lag.Complete():
		return resultComplete
	case s.Lag.Known():
		return resultIncomplete
	default:
		return resultFailed
	}
}
