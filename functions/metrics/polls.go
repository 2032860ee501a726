package metrics

import (
	"maps"
	"slices"
	"sync"

	dto "github.com/prometheus/client_model/go"

	"github.com/feedscale/feedscale/functions/internal/overview"
	"github.com/feedscale/feedscale/pkg/scaling"
	"github.com/feedscale/feedscale/pkg/state"
)

// polls counts what this process has polled of each processor. There may be thousands, and a vector of the
// library's takes twenty times the memory.
type polls struct {
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

func newPolls(processors []overview.Subject) *polls {
	p := &polls{of: make(map[string]*polled, len(processors))}
	for _, s := range processors {
		p.of[s.Name] = &polled{}
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
	of.polls[slices.Index(pollResults[:], pollResult(s))]++
	if d := s.Decision; d != nil && slices.Contains(directions[:], d.Direction) {
		of.decisions[slices.Index(directions[:], d.Direction)]++
	}
	of.requests += float64(s.Lag.Requests)
	of.charge += s.Lag.Charge
}

// show shows the series.
func (p *polls) show(show func(*dto.MetricFamily)) {
	total, decisions, requests, charge := p.rows()
	each(show, single("feedscale_polls_total", "Polls of a processor by this process: complete, incomplete if a partition is unknown, failed if all of it is."), total)
	each(show, single("feedscale_decisions_total", "Decisions of this process on a processor, by the direction in which they move its replicas."), decisions)
	each(show, single("feedscale_requests_total", "HTTP requests that this process made to Cosmos DB for a processor; a shared one counts once."), requests)
	each(show, single("feedscale_request_charge_total", "Request units that this process spent at Cosmos DB for a processor; a shared request counts once."), charge)
}

// rows are copies of the counts, so that no tick waits for a scrape.
func (p *polls) rows() (total, decisions, requests, charge []row[float64]) {
	var results, moves labels
	for i := range pollResults {
		results, moves = append(results, labelled("result", pollResults[i])...), append(moves, labelled("direction", string(directions[i]))...)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(p.of)) {
		of, named := p.of[name], labelled("processor", name)
		for i := range pollResults {
			total = append(total, row[float64]{labels{named[0], results[i]}, float64(of.polls[i])})
			decisions = append(decisions, row[float64]{labels{moves[i], named[0]}, float64(of.decisions[i])})
		}
		requests, charge = append(requests, row[float64]{named, of.requests}), append(charge, row[float64]{named, of.charge})
	}
	return total, decisions, requests, charge
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
