package cli

import (
	"github.com/feedscale/feedscale/pkg/config"
	"github.com/feedscale/feedscale/pkg/simulate"
)

const (
	leastThroughput = 400 // request units a second that a container can have
	mostThroughput  = 1_000_000
	mostCharge      = 100_000 // of one change, in request units
)

// container reads the container that the replicas use.
func (r *flagReader) container() simulate.Container {
	before := len(r.mistakes)
	c := simulate.Container{RUPerChange: r.fraction("ru-per-change", mostCharge)}
	if r.text("ru-limit") != "0" {
		c.RUPerSecond = int(r.whole("ru-limit", leastThroughput, mostThroughput))
	}
	if len(r.mistakes) == before && c.RUPerChange > 0 != (c.RUPerSecond > 0) {
		r.mistakes.add("--ru-per-change is %s and --ru-limit %s; allowed are both, or neither", r.text("ru-per-change"), r.text("ru-limit"))
	}
	if c.Limited() && r.given("matrix") {
		r.mistakes.add("--ru-limit is given with --matrix, which has no container; leave it out")
	}
	return c
}

// policy is a policy of a file.
func (r *flagReader) policy(p config.NamedPolicy) simulate.Scaler {
	s := simulate.Feedscale(p.Name, p.Policy, p.Every)
	if p.Throughput == nil {
		return s
	}
	if !r.given("ru-limit") {
		r.mistakes.add("policy %s has throughput follow; it takes --ru-per-change and --ru-limit, too", p.Name)
	}
	return simulate.WithThroughput(s, simulate.Provisioning{Policy: p.Throughput.ThroughputPolicy, RUPerReplica: float64(p.Throughput.RUPerReplica)})
}
